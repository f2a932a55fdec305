import { Doorkeeper } from './doorkeeper.js';
import type { CommandVariant } from './entry.js';
import { ReadSampling } from './read-sampling.js';
import type { ReplyCount } from './reply-count.js';

/** Approximate bytes of memory per key and per read, without their own text. */
const KEY_OVERHEAD = 150;
const READ_OVERHEAD = 100;
/** Approximate bytes per element of a reply; each is a separate string or number. */
const ELEMENT_OVERHEAD = 24;

/** Up to this many reads of one key are searched one by one; for more there is an index. */
const MAX_LISTED = 8;

/** The arguments of a read after its key. */
export interface ReadArguments {
  /** Number of arguments, the key included. */
  readonly count: number;
  /** The only one, or all of them joined so that no two lists give the same text. */
  readonly text: string;
}

/** One read's answer: the value as decoded, before the command's reply transformer. */
export class CachedRead {
  /** The next one of the same key. */
  next: CachedRead | undefined;

  constructor(
    readonly key: CachedKey,
    readonly variant: CommandVariant,
    readonly count: number,
    readonly text: string,
    public value: unknown,
    public bytes: number,
    /** Milliseconds of `now()`. */
    public readAt: number,
  ) {}
}

/** The reads of one key, which all become invalid at once. */
class CachedKey {
  /** Whether it was read since the hand of the clock last passed it. */
  used = false;
  reads = 0;
  bytes = 0;
  /** Until the reply at this position has come, only the newest of its reads may be used; see `OwnCommands`. */
  heldUntil = -1;
  newest: CachedRead | undefined;
  /** Its neighbours in the ring of keys that the clock's hand goes round. */
  before: CachedKey = this;
  after: CachedKey = this;
  #first: CachedRead | undefined;
  #index: Map<CommandVariant, Map<string, CachedRead>> | undefined;

  constructor(readonly name: string) {}

  find(variant: CommandVariant, count: number, text: string): CachedRead | undefined {
    if (this.#index !== undefined) return this.#index.get(variant)?.get(indexed(count, text));
    let read = this.#first;
    while (read !== undefined) {
      if (read.variant === variant && read.text === text && read.count === count) return read;
      read = read.next;
    }
    return undefined;
  }

  add(read: CachedRead): void {
    this.reads += 1;
    read.next = this.#first;
    this.#first = read;
    if (this.#index !== undefined) this.#addToIndex(this.#index, read);
    else if (this.reads > MAX_LISTED) {
      this.#index = new Map();
      for (let listed: CachedRead | undefined = read; listed !== undefined; listed = listed.next) {
        this.#addToIndex(this.#index, listed);
      }
    }
  }

  #addToIndex(index: Map<CommandVariant, Map<string, CachedRead>>, read: CachedRead): void {
    let reads = index.get(read.variant);
    if (reads === undefined) {
      reads = new Map();
      index.set(read.variant, reads);
    }
    reads.set(indexed(read.count, read.text), read);
  }
}

function indexed(count: number, text: string): string {
  return `${count}:${text}`;
}

/**
 * Answers to reads, by key, within limits of number and bytes.
 *
 * Eviction is by the clock algorithm: a hand goes round a ring of the keys, clears the mark of each key that was used
 * since it last passed, and removes the first key without a mark. So a hit costs one store, while an order by last use
 * would cost a deletion and an insertion. The ring is our own: an iterator of the Map that does not advance retains
 * every table that the Map has replaced since.
 *
 * Keys that are asked for only once are not admitted in place of others (`Doorkeeper`): to keep an answer costs twice
 * as much as to read it, and a scan over many keys would leave nothing else in memory.
 */
export class CacheStore {
  /** Reads. */
  entries = 0;
  bytes = 0;
  /** Reads that were removed for lack of room. */
  evictions = 0;
  /** Which reads to deal with at all. */
  readonly sampling: ReadSampling;
  readonly #keys = new Map<string, CachedKey>();
  /** Made when there is no more room. */
  #doorkeeper: Doorkeeper | undefined;
  #hand: CachedKey | undefined;

  constructor(
    readonly maxEntries: number,
    readonly maxBytes: number,
    replies: ReplyCount,
  ) {
    this.sampling = new ReadSampling(replies);
  }

  key(name: string): CachedKey | undefined {
    return this.#keys.get(name);
  }

  /**
   * Whether an answer of a key that is not here should be kept. If there is no room, only when the key was asked for
   * recently, and the hand does not meet a key that was used.
   */
  admits(name: string): boolean {
    if (this.entries < this.maxEntries && this.bytes < this.maxBytes - KEY_OVERHEAD - READ_OVERHEAD) return true;
    if (!this.isKnown(name)) return false;
    const hand = this.#hand;
    if (hand === undefined || !hand.used) return true;
    hand.used = false;
    this.#hand = hand.after;
    return false;
  }

  /** Whether a key that is not here was asked for recently. It is remembered now. */
  isKnown(name: string): boolean {
    this.#doorkeeper ??= new Doorkeeper(this.entries);
    this.#doorkeeper.passOver(this.sampling.takeSkipped());
    const known = this.#doorkeeper.knows(name);
    if (known) this.sampling.fruitful();
    else this.sampling.fruitless();
    return known;
  }

  /** Keeps an answer; it replaces an earlier answer to the same read. */
  put(name: string, variant: CommandVariant, { count, text }: ReadArguments, value: unknown, now: number): CachedRead {
    let key = this.#keys.get(name);
    if (key === undefined) {
      key = new CachedKey(name);
      this.#keys.set(name, key);
      this.#link(key);
      this.#grow(key, KEY_OVERHEAD + name.length);
    }
    const bytes = READ_OVERHEAD + text.length + sizeOf(value);
    let read = key.find(variant, count, text);
    if (read === undefined) {
      read = new CachedRead(key, variant, count, text, value, bytes, now);
      key.add(read);
      this.entries += 1;
      this.#grow(key, bytes);
    } else {
      this.#grow(key, bytes - read.bytes);
      read.value = value;
      read.bytes = bytes;
      read.readAt = now;
    }
    if (this.#full) this.#evict();
    return read;
  }

  /** Forgets a key; returns how many reads of it there were. */
  drop(name: string): number {
    const key = this.#keys.get(name);
    if (key === undefined) return 0;
    this.#remove(key);
    return key.reads;
  }

  /** Forgets everything; returns how many reads there were. */
  clear(): number {
    const { entries } = this;
    this.#keys.clear();
    this.#hand = undefined;
    this.sampling.fruitful();
    this.entries = 0;
    this.bytes = 0;
    return entries;
  }

  #grow(key: CachedKey, bytes: number): void {
    key.bytes += bytes;
    this.bytes += bytes;
  }

  /** The hand comes to a new key last. */
  #link(key: CachedKey): void {
    const hand = this.#hand;
    if (hand === undefined) {
      this.#hand = key;
      return;
    }
    key.after = hand;
    key.before = hand.before;
    key.before.after = key;
    hand.before = key;
  }

  #remove(key: CachedKey): void {
    this.#keys.delete(key.name);
    if (this.#hand === key) this.#hand = key.after === key ? undefined : key.after;
    key.before.after = key.after;
    key.after.before = key.before;
    // What is garbage in V8's old generation keeps alive what it points to in the young one.
    key.before = key;
    key.after = key;
    this.entries -= key.reads;
    this.bytes -= key.bytes;
  }

  #evict(): void {
    for (let key = this.#hand; key !== undefined && this.#full; key = this.#hand) {
      if (key.used) {
        key.used = false;
        this.#hand = key.after;
      } else {
        this.#remove(key);
        this.evictions += key.reads;
      }
    }
  }

  get #full(): boolean {
    return this.entries > this.maxEntries || this.bytes > this.maxBytes;
  }
}

/** Approximate bytes of a decoded reply. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (value instanceof Buffer) return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let bytes = ELEMENT_OVERHEAD;
  if (Array.isArray(value)) {
    for (const element of value) bytes += ELEMENT_OVERHEAD + sizeOf(element);
    return bytes;
  }
  for (const [name, element] of Object.entries(value)) bytes += 2 * ELEMENT_OVERHEAD + name.length + sizeOf(element);
  return bytes;
}
