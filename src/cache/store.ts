import { type CommandVariant, isOfMissingKey } from '../commands/fast-commands.js';
import { copyOfText } from '../reads/names.js';
import { deepCopy, hashOf, memoryOf, sizeOf } from '../util/values.js';
import type { Prediction } from './prefetch/prediction.js';

/** Approximate bytes of memory per key and per answer, without their own text. */
const KEY_OVERHEAD = 200;
const READ_OVERHEAD = 140;
/** The most answers of one key that are searched one by one; for more there is an index. */
const MAX_LISTED = 8;

/** The answers kept in predictions' room, at most; and the approximate bytes of memory that they take. */
const MOST_PREDICTIONS = 4096;
const MOST_BYTES_OF_PREDICTIONS = 16 * 1024 * 1024;

/** A read that is on its way, or its answer: the value as decoded, before the command's reply transformer. */
export class CachedRead {
  /** The next one of the same key. */
  next: CachedRead | undefined;
  /** Whether its reply has not come. Until then `value` is for those who were promised the earlier answer. */
  pending = true;
  /** The answer, with `KeptBytes` in place of Buffers. */
  value: unknown = undefined;
  bytes = 0;
  /** Milliseconds of `now()` when the bytes of its answer came, without fractions. */
  readAt = 0;
  /** The position of a read on its way, see `IssuedCommands`. */
  position = -1;
  /** Whether the value was decoded here, or is the host's `raw` one. */
  form: 'decoded' | 'raw' = 'decoded';
  /** The host's reply to a read on its way, until it is kept. */
  declare raw?: unknown;

  constructor(
    public key: CachedKey,
    readonly variant: CommandVariant,
    /** The arguments after the key, see `readArguments`. */
    readonly text: string,
    /** Whether Redis tracks the key because of this read, as `CLIENT CACHING YES` asks. */
    public tracked: boolean,
    /** Until it is kept like any other. */
    public prediction: Prediction | undefined,
  ) {}

  /** A copy of the value for a caller. */
  get reply(): unknown {
    return deepCopy(this.value, keptToBuffer);
  }
}

/** The reads of one key, whose answers all become invalid at once. */
export class CachedKey {
  /** False once it has been forgotten. */
  kept = true;
  /** Whether an answer was used since the hand of the clock last passed it. */
  used = false;
  /** Answers, and reads on their way. */
  reads = 0;
  pending = 0;
  /** Whether reads were found, and wait for the end of the turn. */
  waiting = false;
  bytes = 0;
  /** Until the reply at this position has come, only the answer `newest` may be used; see `IssuedCommands`. */
  heldUntil = -1;
  newest: CachedRead | undefined;
  /** When it expires, in milliseconds of `now()`; undefined, and no answer is used, until the server has told. */
  expiresAt: number | undefined;
  /** The neighbours in the ring of keys that the clock's hand goes round. */
  before: CachedKey = this;
  after: CachedKey = this;
  /** Until when its predictions may be used; 0 if it has had none. */
  predictedUntil = 0;
  #first: CachedRead | undefined;
  #index: Map<CommandVariant, Map<string, CachedRead>> | undefined;

  constructor(
    readonly name: string,
    /** Where it counts: the store, or its room for predictions. */
    public room: Room,
  ) {}

  /** No answer is used until the reply at this position has come. */
  hold(position: number): void {
    this.heldUntil = position;
    this.newest = undefined;
  }

  find(variant: CommandVariant, text: string): CachedRead | undefined {
    if (this.#index !== undefined) return this.#index.get(variant)?.get(text);
    let read = this.#first;
    while (read !== undefined && (read.variant !== variant || read.text !== text)) read = read.next;
    return read;
  }

  add(read: CachedRead): void {
    read.key = this;
    read.bytes = 0;
    read.next = this.#first;
    this.#first = read;
    this.pending += 1;
    if (this.#index !== undefined) this.#addToIndex(this.#index, read);
    else if (this.reads + this.pending > MAX_LISTED) {
      this.#index = new Map();
      for (const listed of this.all()) this.#addToIndex(this.#index, listed);
    }
  }

  /** Whether a missing key has all these answers, too. */
  get isMissing(): boolean {
    for (const { pending, variant, value } of this.all())
      if (!pending && !isOfMissingKey(variant.command, value)) return false;
    return true;
  }

  *all(): Generator<CachedRead> {
    for (let read = this.#first; read !== undefined; read = read.next) yield read;
  }

  #addToIndex(index: Map<CommandVariant, Map<string, CachedRead>>, read: CachedRead): void {
    let reads = index.get(read.variant);
    if (reads === undefined) {
      reads = new Map();
      index.set(read.variant, reads);
    }
    reads.set(read.text, read);
  }
}

/** What keys count to, and their ring. */
class Room {
  /** Answers. */
  entries = 0;
  bytes = 0;
  /** Reads on their way. */
  pending = 0;
  /** The key that the clock's hand is at; of predictions, the oldest. */
  hand: CachedKey | undefined;

  /** @param keys - by name, those of the other room, too. */
  constructor(protected keys: Map<string, CachedKey>) {}

  *all(): Generator<CachedKey> {
    let key = this.hand;
    do {
      if (key !== undefined) yield key;
      key = key?.after;
    } while (key !== this.hand);
  }

  /** The hand comes to it last. */
  enter(key: CachedKey): CachedKey {
    key.room = this;
    this.keys.set(key.name, key);
    this.#count(key, 1);
    this.hand ??= key;
    key.after = this.hand;
    key.before = this.hand.before;
    key.before.after = key;
    this.hand.before = key;
    return key;
  }

  leave(key: CachedKey): void {
    this.keys.delete(key.name);
    this.#count(key, -1);
    if (this.hand === key) this.hand = key.after === key ? undefined : key.after;
    key.before.after = key.after;
    key.after.before = key.before;
    // What is garbage in V8's old generation keeps alive what it points to in the young one.
    key.before = key;
    key.after = key;
  }

  reset(keys: Map<string, CachedKey>): void {
    this.keys = keys;
    this.entries = 0;
    this.bytes = 0;
    this.pending = 0;
    this.hand = undefined;
  }

  #count(key: CachedKey, sign: 1 | -1): void {
    this.entries += sign * key.reads;
    this.pending += sign * key.pending;
    this.bytes += sign * key.bytes;
  }
}

/**
 * Answers to reads, and the reads whose replies will be kept, by key, within limits of number and bytes. Predictions
 * have a room of their own, so that a full store does not close it to them.
 *
 * Eviction is by the clock algorithm: a hand goes round a ring of the keys, clears the mark of each key that was used
 * since it last passed, and removes the first key without a mark. So a hit costs one store, while an order by last use
 * would cost a deletion and an insertion. The ring is our own: an iterator of the Map that does not advance retains
 * every table that the Map has replaced since.
 *
 * Without room, an answer is admitted only when it is asked for again soon (`RecentReads`): to keep it costs more than
 * to read it, and a scan over many keys, or over one large key, would leave nothing else in memory.
 */
export class CacheStore extends Room {
  /** Answers that were removed for lack of room. */
  evictions = 0;
  /** Whether a key was forgotten while reads waited for answers of it. */
  lostWaiting = false;
  /** The reads asked for recently; made when there is no more room. */
  #recent: RecentReads | undefined;
  readonly predictions = new Room(this.keys);

  constructor(
    readonly maxEntries: number,
    readonly maxBytes: number,
  ) {
    super(new Map());
  }

  /** Whether there are neither answers nor reads on their way. */
  get isEmpty(): boolean {
    return this.hand === undefined && this.predictions.hand === undefined;
  }

  key(name: string): CachedKey | undefined {
    return this.keys.get(name);
  }

  /**
   * Whether the answer to a read that is not here should be kept. If there is no room, only when it was asked for
   * recently, and the hand does not meet a key that was used.
   */
  admits(name: string, text: string): boolean {
    const taken = this.entries + this.pending;
    if (taken < this.maxEntries && this.bytes < this.maxBytes - KEY_OVERHEAD - READ_OVERHEAD) return true;
    this.#recent ??= new RecentReads(taken);
    if (!this.#recent.knows(hashOf(text, hashOf(name)))) return false;
    const { hand } = this;
    if (hand === undefined || !hand.used) return true;
    hand.used = false;
    this.hand = hand.after;
    return false;
  }

  /**
   * A read is about to be sent whose answer will be kept, or used once if it is a `prediction`.
   *
   * @param of - its key, or the name of one that is not here.
   */
  expect(
    of: CachedKey | string,
    variant: CommandVariant,
    text: string,
    tracked: boolean,
    prediction?: Prediction,
  ): CachedRead {
    const isOwn = prediction !== undefined;
    // Texts of a prediction were made here, and refer to nothing else.
    const room = isOwn ? this.predictions : this;
    const key = typeof of === 'string' ? room.enter(new CachedKey(isOwn ? of : copyOfText(of), room)) : of;
    const read = new CachedRead(key, variant, isOwn ? text : copyOfText(text), tracked, undefined);
    key.add(read);
    key.room.pending += 1;
    this.#expected(read, prediction);
    return read;
  }

  /** An answer is about to be asked for again. It is not used any more. */
  expectAgain(read: CachedRead, tracked: boolean, prediction?: Prediction): void {
    const { room } = read.key;
    read.pending = true;
    read.tracked = tracked;
    read.key.reads -= 1;
    read.key.pending += 1;
    room.entries -= 1;
    room.pending += 1;
    this.#expected(read, prediction);
  }

  #expected(read: CachedRead, prediction: Prediction | undefined): void {
    read.prediction?.unused();
    read.prediction = prediction;
    if (prediction !== undefined) read.key.predictedUntil = prediction.until;
    else this.keep(read.key);
  }

  /** A key of the predictions' room is kept like any other. */
  keep(key: CachedKey): void {
    if (key.room === this) return;
    key.room.leave(key);
    this.enter(key);
    if (this.#full) this.#evict();
  }

  /** Forgets predictions whose time is over, and the oldest of too many. */
  forgetPredictions(time: number): void {
    const { predictions } = this;
    const most = Math.min(MOST_BYTES_OF_PREDICTIONS, this.maxBytes);
    for (let key = predictions.hand; key !== undefined; key = predictions.hand) {
      const isFull = predictions.entries + predictions.pending >= MOST_PREDICTIONS || predictions.bytes > most;
      if (!isFull && time < key.predictedUntil) return;
      this.#remove(key);
    }
  }

  /** Keeps the answer to a read, unless its key has been forgotten since. The value may be changed by others later. */
  put(read: CachedRead, value: unknown, now: number): void {
    const { key } = read;
    if (!key.kept) return;
    const bytes = READ_OVERHEAD + memoryOf(read.text) + sizeOf(value);
    const keyBytes = key.bytes === 0 ? KEY_OVERHEAD + memoryOf(key.name) : 0;
    const { room } = key;
    if (read.pending) {
      read.pending = false;
      room.entries += 1;
      key.reads += 1;
      key.pending -= 1;
      room.pending -= 1;
    }
    const more = keyBytes + bytes - read.bytes;
    key.bytes += more;
    room.bytes += more;
    read.value = deepCopy(value, bufferToKept);
    read.bytes = bytes;
    read.readAt = Math.floor(now);
    if (this.#full) this.#evict();
  }

  /** The key has changed: forgets its answers, but not reads on their way that will see it. Returns how many. */
  invalidate(name: string): number {
    const key = this.key(name);
    if (key === undefined) return 0;
    const onTheirWay = [...key.all()].filter((read) => read.pending && read.tracked);
    this.#remove(key);
    if (onTheirWay.length > 0) {
      const next = key.room.enter(new CachedKey(key.name, key.room));
      next.heldUntil = key.heldUntil;
      next.predictedUntil = key.predictedUntil;
      for (const read of onTheirWay) next.add(read);
      next.room.pending += next.pending;
    }
    return key.reads;
  }

  /** All keys may have changed: invalidates each. */
  invalidateAll(): number {
    const { entries } = this;
    for (const { name } of [...this.all(), ...this.predictions.all()]) this.invalidate(name);
    return entries;
  }

  /** Forgets a key, its pending reads included: their replies are not kept. */
  drop(key: CachedKey | undefined): void {
    if (key?.kept) this.#remove(key);
  }

  /** Forgets every answer; replies to reads that are on their way are not kept. */
  clear(): void {
    for (const key of [...this.all(), ...this.predictions.all()]) this.#forget(key);
    // V8: a cleared table refers to its successor; once in the old generation, it would keep that alive.
    const keys = new Map<string, CachedKey>();
    this.reset(keys);
    this.predictions.reset(keys);
  }

  #forget(key: CachedKey): void {
    key.kept = false;
    this.lostWaiting ||= key.waiting;
    if (key.predictedUntil > 0) for (const { prediction } of key.all()) prediction?.unused();
  }

  #remove(key: CachedKey): void {
    this.#forget(key);
    key.room.leave(key);
  }

  #evict(): void {
    for (let key = this.hand; key !== undefined && this.#full; key = this.hand) {
      if (key.used) {
        key.used = false;
        this.hand = key.after;
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

/** The bytes of a Buffer as Latin-1 text, which takes a third of the memory, and keeps no pool of Node's. */
class KeptBytes {
  constructor(readonly text: string) {}
}

function bufferToKept(value: object): object {
  return value instanceof Buffer ? new KeptBytes(value.latin1Slice(0, value.length)) : value;
}

function keptToBuffer(value: object): object {
  return value instanceof KeptBytes ? Buffer.from(value.text, 'latin1') : value;
}

const SMALLEST_TABLE = 1 << 10;
const LARGEST_TABLE = 1 << 20;

/**
 * Remembers reads that were asked for recently, in four bytes each: hashes in a table, where later ones replace earlier
 * ones (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017, section 3.4.2).
 */
export class RecentReads {
  readonly #hashes: Int32Array;
  #random = 0;

  /** @param reads - about as many are remembered. */
  constructor(reads: number) {
    this.#hashes = new Int32Array(tableSize(reads));
  }

  /** Whether the read with this hash was asked for recently. It is remembered now. */
  knows(hash: number): boolean {
    const hashes = this.#hashes;
    // Each hash has two places, and which one it takes is random: reads that are asked for in turn replace each other
    // in a table of one place per hash, for good.
    const place = placeIn(hashes, hash);
    if (hashes[place] === hash || hashes[place ^ 1] === hash) return true;
    this.#random = nextRandom(this.#random);
    hashes[this.#random < 0 ? place : place ^ 1] = hash;
    return false;
  }
}

function tableSize(least: number): number {
  let size = SMALLEST_TABLE;
  while (size < least && size < LARGEST_TABLE) size *= 2;
  return size;
}

function placeIn(table: { readonly length: number }, hash: number): number {
  return (hash ^ (hash >>> 15)) & (table.length - 1);
}

/** A linear congruential generator (Numerical Recipes). Its lower bits repeat soon. */
function nextRandom(state: number): number {
  return (Math.imul(state, 1664525) + 1013904223) | 0;
}
