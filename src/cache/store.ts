import { type CommandVariant, isOfMissingKey } from '../commands/fast-commands.js';
import type { Entry } from '../core/entry.js';
import { copyOfText } from '../reads/names.js';
import { deepCopy, hashOf, memoryOf, sizeOf } from '../util/values.js';
import type { PredictedEntry } from './prefetch/prediction.js';

/** Approximate bytes of memory per key and per answer, without their own text. */
const KEY_OVERHEAD = 200;
const READ_OVERHEAD = 140;
/** The most answers of one key that are searched one by one; more have an index. */
const MAX_LISTED = 8;

/** The quota of predictions: their number, and their approximate bytes of memory. */
const MAX_PREDICTIONS = 4096;
const MAX_PREDICTION_BYTES = 16 * 1024 * 1024;

/** A pending read, or its answer: the decoded value, before the command's reply transformer. */
export class CachedRead {
  /** The next read of the same key. */
  next: CachedRead | undefined;
  /** Whether its reply is outstanding. Until it arrives, `value` is for reads decided on the previous answer. */
  pending = true;
  /** The answer, with `KeptBytes` in place of Buffers. */
  value: unknown = undefined;
  bytes = 0;
  /** When the bytes of its answer arrived, in whole milliseconds of `now()`; of a pending read, when it was sent. */
  readAt = 0;
  /** The last entry that was sent for it. While it is pending, identical reads may follow that. */
  leader: Entry | undefined;
  /** The position of a pending read, see `IssuedCommands`. */
  position = -1;
  /** Whether the value was decoded here, or by the host (`raw`). */
  form: 'decoded' | 'raw' = 'decoded';
  /** The host's reply to a pending read, until it is kept. */
  declare raw?: unknown;

  constructor(
    public key: CachedKey,
    readonly variant: CommandVariant,
    /** The arguments after the key, see `readArguments`. */
    readonly text: string,
    /** Whether Redis tracks the key because of this read, as `CLIENT CACHING YES` asks. */
    public tracked: boolean,
    /** Set until the answer is kept like any other. */
    public prediction: PredictedEntry | undefined,
  ) {}

  /** A copy of the value for a caller. */
  get reply(): unknown {
    return deepCopy(this.value, keptToBuffer);
  }
}

/** The reads of one key, whose answers are invalidated together. */
export class CachedKey {
  /** False as soon as it has been removed from the store. */
  kept = true;
  /** Whether an answer was used since the clock hand last passed this key. */
  used = false;
  /** The numbers of answers, and of pending reads. */
  reads = 0;
  pending = 0;
  /** Whether calls wait for the end of the turn with answers of this key. */
  waiting = false;
  bytes = 0;
  /** Until the reply at this position has arrived, only the answer `newest` may be used; see `IssuedCommands`. */
  heldUntil = -1;
  newest: CachedRead | undefined;
  /** When it expires, in milliseconds of `now()`. Undefined until PTTL is answered; no answer is used before. */
  expiresAt: number | undefined;
  /** The neighbours in the ring of keys. */
  before: CachedKey = this;
  after: CachedKey = this;
  /** The time until which its predictions may be used; 0 if it has had none. */
  predictedUntil = 0;
  #first: CachedRead | undefined;
  #index: Map<CommandVariant, Map<string, CachedRead>> | undefined;

  constructor(
    readonly name: string,
    /** The quota that it counts towards: the store's own, or that of predictions. */
    public quota: Quota,
  ) {}

  /** Prevents the use of all answers until the reply at this position has arrived. */
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

  /** Whether a missing key would have the same answers. */
  get couldBeMissing(): boolean {
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

/** A ring of keys, with their number of answers and bytes. */
class Quota {
  /** The number of answers. */
  entries = 0;
  bytes = 0;
  /** The number of pending reads. */
  pending = 0;
  /** The key at the clock hand; among predictions, the oldest. */
  hand: CachedKey | undefined;

  /** @param keys - the keys of all quotas by name. */
  constructor(protected keys: Map<string, CachedKey>) {}

  *all(): Generator<CachedKey> {
    let key = this.hand;
    do {
      if (key !== undefined) yield key;
      key = key?.after;
    } while (key !== this.hand);
  }

  /** Adds a key just behind the hand, which reaches it last. */
  add(key: CachedKey): CachedKey {
    key.quota = this;
    this.keys.set(key.name, key);
    this.#count(key, 1);
    this.hand ??= key;
    key.after = this.hand;
    key.before = this.hand.before;
    key.before.after = key;
    this.hand.before = key;
    return key;
  }

  remove(key: CachedKey): void {
    this.keys.delete(key.name);
    this.#count(key, -1);
    if (this.hand === key) this.hand = key.after === key ? undefined : key.after;
    key.before.after = key.after;
    key.after.before = key.before;
    // V8: garbage in the old generation keeps alive the young objects that it refers to.
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
 * Answers, and pending reads whose replies will be kept, by key, up to a number and a size. Predictions have their own
 * quota, so that a full store still admits them.
 *
 * The clock algorithm evicts: a hand goes round the ring of keys, clears the mark of each key that was used since it
 * last passed, and removes the first key without a mark. So a hit only sets a mark, whereas LRU would cost a deletion
 * and an insertion. The ring is our own, because an idle iterator of a Map retains every table that the Map has
 * replaced since.
 *
 * When full, the store admits an answer only on a second request within a short time (`RecentReads`): keeping an answer
 * costs more than reading it, and a scan over many keys, or one large key, would evict everything else.
 */
export class CacheStore extends Quota {
  /** The number of answers evicted. */
  evictions = 0;
  /** Whether a key was removed while calls waited with its answers. */
  lostWaiting = false;
  /** The recent reads; created when the store is full. */
  #recent: RecentReads | undefined;
  readonly predictions = new Quota(this.keys);

  constructor(
    readonly maxEntries: number,
    readonly maxBytes: number,
  ) {
    super(new Map());
  }

  /** Whether there are neither answers nor pending reads. */
  get isEmpty(): boolean {
    return this.hand === undefined && this.predictions.hand === undefined;
  }

  key(name: string): CachedKey | undefined {
    return this.keys.get(name);
  }

  /**
   * Whether to keep the answer to a new read. When full, only if it was requested recently, and the key at the hand was
   * not used.
   */
  admits(name: string, text: string): boolean {
    const taken = this.entries + this.pending;
    if (taken < this.maxEntries && this.bytes < this.maxBytes - KEY_OVERHEAD - READ_OVERHEAD) return true;
    this.#recent ??= new RecentReads(taken);
    if (!this.#recent.remember(hashOf(text, hashOf(name)))) return false;
    const { hand } = this;
    if (hand === undefined || !hand.used) return true;
    hand.used = false;
    this.hand = hand.after;
    return false;
  }

  /**
   * Adds a read that is about to be sent. Its answer will be kept, or used once if it is a `prediction`.
   *
   * @param of - its key, or the name of a key that is not in the store.
   */
  addPending(
    of: CachedKey | string,
    variant: CommandVariant,
    text: string,
    tracked: boolean,
    prediction?: PredictedEntry,
  ): CachedRead {
    const isOwn = prediction !== undefined;
    // A prediction's texts were built here, so they keep no other text alive.
    const quota = isOwn ? this.predictions : this;
    const key = typeof of === 'string' ? quota.add(new CachedKey(isOwn ? of : copyOfText(of), quota)) : of;
    const read = new CachedRead(key, variant, isOwn ? text : copyOfText(text), tracked, undefined);
    key.add(read);
    key.quota.pending += 1;
    this.#setPrediction(read, prediction);
    return read;
  }

  /** Makes an answer pending again, because its read is about to be sent. It is no longer used. */
  refresh(read: CachedRead, tracked: boolean, prediction?: PredictedEntry): void {
    const { quota } = read.key;
    read.pending = true;
    read.tracked = tracked;
    read.key.reads -= 1;
    read.key.pending += 1;
    quota.entries -= 1;
    quota.pending += 1;
    this.#setPrediction(read, prediction);
  }

  #setPrediction(read: CachedRead, prediction: PredictedEntry | undefined): void {
    read.prediction?.unused();
    read.prediction = prediction;
    if (prediction !== undefined) read.key.predictedUntil = prediction.until;
    else this.keep(read.key);
  }

  /** Moves a key from the quota of predictions to the store's own. */
  keep(key: CachedKey): void {
    if (key.quota === this) return;
    key.quota.remove(key);
    this.add(key);
    if (this.#full) this.#evict();
  }

  /** Removes expired predictions, and the oldest ones beyond their quota. */
  forgetPredictions(time: number): void {
    const { predictions } = this;
    const most = Math.min(MAX_PREDICTION_BYTES, this.maxBytes);
    for (let key = predictions.hand; key !== undefined; key = predictions.hand) {
      const isFull = predictions.entries + predictions.pending >= MAX_PREDICTIONS || predictions.bytes > most;
      if (!isFull && time < key.predictedUntil) return;
      this.#remove(key);
    }
  }

  /** Keeps a copy of the answer to a read, unless its key has been removed meanwhile. */
  put(read: CachedRead, value: unknown, now: number): void {
    const { key } = read;
    if (!key.kept) return;
    const bytes = READ_OVERHEAD + memoryOf(read.text) + sizeOf(value);
    const keyBytes = key.bytes === 0 ? KEY_OVERHEAD + memoryOf(key.name) : 0;
    const { quota } = key;
    read.leader = undefined;
    if (read.pending) {
      read.pending = false;
      quota.entries += 1;
      key.reads += 1;
      key.pending -= 1;
      quota.pending -= 1;
    }
    const more = keyBytes + bytes - read.bytes;
    key.bytes += more;
    quota.bytes += more;
    read.value = deepCopy(value, bufferToKept);
    read.bytes = bytes;
    read.readAt = Math.floor(now);
    if (this.#full) this.#evict();
  }

  /** Removes and counts the answers of a changed key, but not pending reads that will see the change. */
  invalidate(name: string): number {
    const key = this.key(name);
    if (key === undefined) return 0;
    const stillValid = [...key.all()].filter((read) => read.pending && read.tracked);
    this.#remove(key);
    if (stillValid.length > 0) {
      const next = key.quota.add(new CachedKey(key.name, key.quota));
      next.heldUntil = key.heldUntil;
      next.predictedUntil = key.predictedUntil;
      for (const read of stillValid) next.add(read);
      next.quota.pending += next.pending;
    }
    return key.reads;
  }

  /** Invalidates every key, because all may have changed. */
  invalidateAll(): number {
    const { entries } = this;
    for (const { name } of [...this.all(), ...this.predictions.all()]) this.invalidate(name);
    return entries;
  }

  /** Removes a key with its pending reads, whose replies will not be kept. */
  drop(key: CachedKey | undefined): void {
    if (key?.kept) this.#remove(key);
  }

  /** Removes all keys with their pending reads, whose replies will not be kept. */
  clear(): void {
    for (const key of [...this.all(), ...this.predictions.all()]) this.#forget(key);
    // A new Map, because V8 would link the old table to its successor and, in the old generation, keep that alive.
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
    key.quota.remove(key);
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

/** The bytes of a Buffer as Latin-1 text, which takes a third of the memory and keeps none of Node's pools alive. */
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
 * Remembers recent reads in four bytes each, as hashes in a table in which newer ones replace older ones (Einziger,
 * Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017, section 3.4.2).
 */
export class RecentReads {
  readonly #hashes: Int32Array;
  #random = 0;

  /** @param reads - the approximate number of reads to remember. */
  constructor(reads: number) {
    let size = SMALLEST_TABLE;
    while (size < reads && size < LARGEST_TABLE) size *= 2;
    this.#hashes = new Int32Array(size);
  }

  /** Whether the read with this hash is remembered. Remembers it from now on. */
  remember(hash: number): boolean {
    const hashes = this.#hashes;
    // Each hash has two places and takes a random one. With only one, alternating reads would replace each other.
    const place = (hash ^ (hash >>> 15)) & (hashes.length - 1);
    if (hashes[place] === hash || hashes[place ^ 1] === hash) return true;
    // A linear congruential generator (Numerical Recipes). Its low bits have short periods.
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) | 0;
    hashes[this.#random < 0 ? place : place ^ 1] = hash;
    return false;
  }
}
