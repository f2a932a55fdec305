import type { Effect } from '../commands/effects.js';
import { changesKeys, type HotCommand } from '../commands/hot-commands.js';
import { transformsReply } from '../host/transformers.js';
import type { HostClient } from '../host/types.js';
import type { ResolvedCacheOptions } from '../options.js';
import type { Stats } from '../stats.js';
import { nextTick } from '../util/clock.js';
import { answersWait, endOfTurn, turnTime } from '../util/turn.js';
import { type CachedRead, CacheStore } from './cache-store.js';
import { CallEntry, type CommandVariant, type Entry, type EntryContext, transformDecodedReply } from './entry.js';
import { InvalidationReader } from './invalidation-reader.js';
import { Liveness } from './liveness.js';
import { OwnCommands } from './own-commands.js';
import { ownCopy, sameValue } from './own-values.js';
import { areText, argumentsOf, keyName, keysOf, NO_ARGUMENTS, wireName } from './read-names.js';
import type { ReplyCount } from './reply-count.js';
import type { Requests } from './requests.js';
import { Tracking } from './tracking.js';
import type { TransactionState } from './transaction-state.js';

/**
 * The answers to reads that one connection keeps in memory: the same read needs no command as long as Redis has
 * announced no change of its key. It is filled and emptied by the reply reader, in the order of the bytes, and ends
 * with its connection.
 */
export class ReadCache {
  readonly invalidations: InvalidationReader;
  readonly #store: CacheStore;
  readonly #own: OwnCommands;
  readonly #tracking: Tracking;
  readonly #liveness = new Liveness();
  /** The position of the last MULTI; an EXEC at the same one was sent together with it. */
  #multiAt = -1;

  constructor(
    readonly client: HostClient,
    readonly options: ResolvedCacheOptions,
    /** Prefixes of the cached keys, as they are on the wire; undefined for all keys. */
    readonly prefixes: readonly string[] | undefined,
    readonly context: EntryContext,
    readonly replies: ReplyCount,
    readonly stats: Stats,
    readonly transaction: TransactionState,
  ) {
    this.#store = new CacheStore(options.maxEntries, options.maxBytes, replies);
    this.#own = new OwnCommands(replies, prefixes !== undefined, (keys, position) => {
      for (const name of keys) this.#hold(name, position);
    });
    this.#tracking = new Tracking(client, prefixes ?? [], this.transaction);
    this.invalidations = new InvalidationReader((keys) => this.#invalidate(keys));
  }

  get entries(): number {
    return this.#store.entries;
  }

  get bytes(): number {
    return this.#store.bytes;
  }

  /** Asks the server for invalidations. Nothing is kept until it has agreed. */
  arm(): Promise<void> {
    return this.#tracking.arm();
  }

  /** The connection is gone, or its replies are no longer decoded here. */
  end(): void {
    this.#tracking.end();
    this.#store.clear();
  }

  /** The connection becomes plain and stays open. */
  detach(): void {
    this.#tracking.disarm();
    this.end();
  }

  /** Forgets every answer; replies to reads that are in flight are not kept. */
  clear(): void {
    this.#forget(this.nextPosition);
  }

  #forget(position: number): void {
    this.#store.clear();
    this.#own.forgetBefore(position);
  }

  /** A chunk of bytes has come. */
  heard(): void {
    this.#liveness.heard();
    this.#store.sampling.heard(this.#liveness.heardAt);
  }

  /** A promise of the answer to a read, from memory; undefined if the read has to be sent. */
  read(variant: CommandVariant, args: readonly unknown[]): Promise<unknown> | undefined {
    const read = this.#store.sampling.passesLookup() ? undefined : this.#find(variant, args);
    if (read !== undefined) return this.#serve(variant, read);
    if (this.#mayKeep(args)) this.stats.cacheMisses += 1;
    return undefined;
  }

  /** Whether the answer to a read that is issued now may be kept, if not just now. */
  #mayKeep(args: readonly unknown[]): boolean {
    if (!this.#tracking.agreed || this.transaction.open || !areText(args)) return false;
    return this.prefixes === undefined || this.#hasPrefix(String(args[0]));
  }

  #serve(variant: CommandVariant, { key, value }: CachedRead): Promise<unknown> {
    key.used = true;
    this.#store.sampling.fruitful();
    this.stats.cacheHits += 1;
    if (answersWait()) return endOfTurn().then(() => this.#answer(variant, value));
    try {
      return Promise.resolve(this.#answer(variant, value));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The answer to a read, if it may be used now. */
  #find(variant: CommandVariant, args: readonly unknown[]): CachedRead | undefined {
    const name = keyName(args[0]);
    const key = name === undefined ? undefined : this.#store.key(name);
    if (key === undefined || !this.#serves()) return undefined;
    const rest = argumentsOf(args);
    const read = rest === undefined ? undefined : key.find(variant, rest.count, rest.text);
    if (read === undefined) return undefined;
    if (this.replies.all <= key.heldUntil && key.newest !== read) return undefined;
    const time = turnTime();
    return time - read.readAt < this.options.ttl && this.#liveness.allows(time) ? read : undefined;
  }

  /** Whether a read may show more than the answers that are kept, so that it has to be noted when it is issued. */
  get notesReads(): boolean {
    return this.#own.pushesLate;
  }

  /**
   * A hot command is about to be queued; not called for a cacheable one if `notesReads` is false.
   * Invariant 12: noted before the entry is queued, so that a read issued next already knows of it.
   */
  sends({ command, script }: CommandVariant, args: readonly unknown[]): void {
    const position = this.nextPosition;
    // A script may change more than the keys that it names.
    if (script !== undefined) this.#own.changesAnything(position);
    else if (!command.cacheable || this.#mayShowMore(args)) {
      this.#touch(command, args.length, (index) => wireName(args[index]), position);
    }
  }

  /** Bytes are about to be sent that are no command. */
  sendsUnknown(): void {
    const position = this.nextPosition;
    this.#forget(position);
    this.#own.changesAnything(position);
  }

  /**
   * A command is about to be sent that is not a hot command's entry of its own: by the host, or in a pipeline. Called
   * before `transaction` knows of it.
   *
   * @param position - of the last command that is sent together with it: all of them count as issued there.
   */
  issued(effect: Effect, requests: Requests, position: number): void {
    const own = this.#own;
    if (typeof effect === 'object') {
      this.#touch(effect, requests.count - 1, (index) => requests.text(index + 1), position);
      return;
    }
    switch (effect) {
      case 'none':
      case 'watch':
      case 'unwatch':
        break;
      case 'multi':
        // RESP: MULTI within a transaction is refused, and EXEC ends the one that was open.
        if (!this.transaction.open) this.#multiAt = position;
        break;
      case 'exec':
      case 'discard':
        if (this.#multiAt === position) break;
        if (effect === 'exec') own.changesAnything(position);
        // RESP: reads within it were answered with QUEUED.
        own.forgetBefore(position);
        break;
      case 'clear':
        this.#forget(position);
        break;
      case 'end':
      case 'no replies':
      case 'reset':
        if (this.#tracking.isOwnOff(requests)) this.#trackingEnds(position);
        else if (!this.#tracking.isOwnOn(requests)) this.end();
        break;
      default:
        own.changesAnything(position);
    }
  }

  /**
   * The head of the queue has its reply. Not called for light entries before `replies.quietUntil`.
   *
   * @param entry - the head, if it is a hot command's entry.
   * @param value - the decoded reply; undefined if the host has decoded it.
   */
  answered(entry: Entry | undefined, value: unknown): void {
    const own = this.#own;
    own.answer(this.client.commandQueue);
    const { passedUntil } = this.#store.sampling;
    const passed = this.replies.light <= passedUntil;
    // Without late pushes, what is kept for a key is as new as any reply that comes.
    if (passed && !own.pushesLate) this.replies.quietUntil = passedUntil;
    else this.#noteReply(entry, value, passed);
  }

  #noteReply(entry: Entry | undefined, value: unknown, passed: boolean): void {
    const own = this.#own;
    if (!(entry instanceof CallEntry) || !entry.variant.command.cacheable) return;
    const { sent } = entry;
    const name = keyName(Array.isArray(sent) ? sent[0] : sent);
    if (name === undefined || !this.#hasPrefix(name)) return;
    const { on, resting } = this.#tracking;
    if (!passed && value !== undefined && on && !this.transaction.open && own.mayFill(name)) {
      this.#fill(entry, name, value);
    } else if (resting) {
      if (!passed && this.#store.isKnown(name)) nextTick(() => this.#tracking.wake());
    } else if (own.pushesLate) {
      // Ordering: its caller may have seen a newer value than the kept answers.
      this.#hold(name, this.nextPosition);
    }
  }

  #fill({ sent, variant }: CallEntry, name: string, value: unknown): void {
    const before = this.#store.key(name);
    if (before === undefined && !this.#store.admits(name)) {
      if (this.#store.sampling.hopeless && !this.#own.pushesLate) nextTick(() => this.#rest());
      return;
    }
    const rest = Array.isArray(sent) ? argumentsOf(sent) : NO_ARGUMENTS;
    // A lone surrogate becomes another character on the wire, and also in the invalidation.
    if (rest === undefined || !name.isWellFormed()) return;
    // Ordering: if this reply shows a change, earlier answers of the key must not be served after it (`OwnCommands`).
    const showsMore =
      this.#own.pushesLate &&
      before !== undefined &&
      !sameValue(before.find(variant, rest.count, rest.text)?.value, value);
    const { evictions } = this.#store;
    const read = this.#store.put(name, variant, rest, ownCopy(value), this.#liveness.heardAt);
    if (showsMore) {
      read.key.heldUntil = this.nextPosition;
      read.key.newest = read;
    }
    this.stats.cacheEvictions += this.#store.evictions - evictions;
  }

  /** Not within the reader: the host's `call` may run user code (invariant 7). */
  #rest(): void {
    if (!this.#store.sampling.hopeless) return;
    this.clear();
    this.#tracking.rest();
  }

  #trackingEnds(position: number): void {
    this.#tracking.switchesOff();
    this.#forget(position);
  }

  #hold(name: string, position: number): void {
    const key = this.#store.key(name);
    if (key === undefined) return;
    key.heldUntil = position;
    key.newest = undefined;
  }

  #invalidate(keys: readonly string[] | undefined): void {
    if (keys === undefined) this.stats.cacheInvalidations += this.#store.clear();
    else for (const name of keys) this.stats.cacheInvalidations += this.#store.drop(name);
  }

  /** The position of the command that is issued next. */
  get nextPosition(): number {
    return this.replies.nextPosition(this.client.commandQueue);
  }

  #serves(): boolean {
    return this.#tracking.on && this.#own.settled && !this.transaction.open && !this.transaction.watching;
  }

  /** Whether a read is of a cached key, but its own answer is not kept. */
  #mayShowMore(args: readonly unknown[]): boolean {
    return !(areText(args) && String(args[0]).isWellFormed()) && this.#hasPrefix(wireName(args[0]));
  }

  #hasPrefix(name: string): boolean {
    const { prefixes } = this;
    if (prefixes === undefined) return true;
    for (const prefix of prefixes) if (name.startsWith(prefix)) return true;
    return false;
  }

  /** Notes the keys that a command may change, or whose change its reply may show. */
  #touch(command: HotCommand, count: number, argument: (index: number) => string, position: number): void {
    const own = this.#own;
    const changes = changesKeys(command);
    if (!changes && !own.pushesLate) return;
    const keys = keysOf(command, count, argument);
    // A read without keys may show any.
    if (keys === undefined || (!changes && command.keys === 'none')) {
      own.changesAnything(position);
      return;
    }
    const cached = keys.filter((name) => this.#hasPrefix(name));
    if (cached.length === 0) return;
    if (!changes) {
      own.shows(cached, position);
      return;
    }
    for (const name of cached) this.#store.drop(name);
    own.writes(cached, position);
  }

  /** @throws what a user's reply transformer throws */
  #answer(variant: CommandVariant, kept: unknown): unknown {
    const value = ownCopy(kept);
    const { name } = variant.command;
    if (!transformsReply(this.context.commandClass, name)) return value;
    return transformDecodedReply({ name, context: this.context }, value);
  }
}
