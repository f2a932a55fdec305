import { CallArguments, wireName } from '../commands/call-arguments.js';
import { type Arguments, type Effect, effectOf, effectOfName, keysOf } from '../commands/effects.js';
import type { CommandVariant } from '../commands/fast-commands.js';
import { CallEntry, Entry } from '../core/entry.js';
import type { Call, Incoming } from '../core/features.js';
import type { Outgoing } from '../core/outgoing.js';
import { unansweredOf } from '../host/state.js';
import type { HostCommand } from '../host/types.js';
import type { ResolvedCacheOptions } from '../options.js';
import { InternalEntry, sendInternal } from '../reads/internal-entry.js';
import { keyName, readArguments } from '../reads/names.js';
import { MEANING_LENGTH, meaningOfError } from '../resp/error-meaning.js';
import { nextTick, now, setImmediate } from '../util/clock.js';
import { SETTLED } from '../util/deadlines.js';
import { InvalidationReader } from './invalidations.js';
import { IssuedCommands } from './issued-commands.js';
import type { Form } from './prefetch/forms.js';
import { type Foreseen, PredictedEntry, type Predictor } from './prefetch/prediction.js';
import { type CachedKey, type CachedRead, CacheStore } from './store.js';
import { AskedWithReads, Liveness, Tracking, warnUncached } from './tracking.js';

/** Milliseconds for which a predicted answer may be used. */
const PREDICTED_FOR = 1_000;

/**
 * The answers to reads that one connection keeps in memory: the same read needs no command as long as Redis has
 * announced no change of its key. It ends with its connection.
 *
 * 1. A read is looked up (`lookUp`). If there is an answer that may be used, the read waits until the loop has read its
 *   sockets.
 * 2. At the end of the turn all reads that wait are looked up again (`#endTurn`): answered, or sent if the answer has
 *   been revoked or is too old. So nothing is delivered that bytes already read have revoked.
 * 3. A command that may change what a waiting read answers, or show a newer one, has all of them decided first.
 * 4. To decide runs no code of users. To deliver runs reply transformers, which may do anything: so answers are
 *   delivered at the end of the turn, or before the replies of the next chunk, when nothing is half done.
 * 5. When a read is sent, it is decided whether its answer is kept (`sends`). Then it is put into the store, pending,
 *   and identical reads of the batch share it. CLIENT CACHING YES goes before it, PTTL behind it (`AskedWithReads`).
 * 6. Each command that is sent drops the keys that it changes, pending reads too. While it is on its way, answers of
 *   keys that it shows are not used (`heldUntil`); while one of unknown keys is, none is (`IssuedCommands`).
 * 7. The reply fills the pending read, in the order of the bytes (`answered`). PTTL's has to come before it is used.
 * 8. An invalidation drops the answers of a key, and of its pending reads only those with a CACHING YES of their own
 *   stay.
 * 9. An error drops its key, or everything if it is not about one command (`failed`).
 */
export class ReadCache implements Incoming {
  readonly invalidations: InvalidationReader;
  readonly store: CacheStore;
  readonly #issued: IssuedCommands;
  /** The server's part: nothing is kept until it has agreed to it. */
  readonly tracking: Tracking;
  readonly #asked: AskedWithReads;
  readonly liveness = new Liveness();
  /** Reads that wait, in the order of their calls. `read` is the answer that was found. */
  #waiting: CallEntry[] = [];
  /** Reads whose answer is decided, and not delivered yet. */
  #decided: CallEntry[] = [];
  /** The options of the calls that have any. */
  readonly #calls = new WeakMap<CallEntry, Call>();
  readonly #args = new CallArguments();
  /** Forms that the server does not allow on this connection. */
  readonly #forbidden = new Set<Form>();
  /** Reads that were told to leave the cache alone. */
  readonly #past = new WeakSet<Entry>();

  constructor(
    readonly outgoing: Outgoing,
    readonly options: ResolvedCacheOptions,
    /** Prefixes of the cached keys, as they are on the wire; undefined for all keys. */
    readonly prefixes: readonly string[] | undefined,
    readonly predictor: Predictor | undefined,
    /** Sends a read that was not answered from memory, behind everything that was sent before. */
    readonly resend: (entry: CallEntry, call: Call | undefined) => void,
  ) {
    const { context, transaction } = outgoing;
    this.store = new CacheStore(options.maxEntries, options.maxBytes);
    this.#issued = new IssuedCommands(outgoing, this.store, prefixes !== undefined, options.scripts);
    this.tracking = new Tracking(context, prefixes ?? [], transaction);
    // The server does not allow `CLIENT CACHING`.
    this.#asked = new AskedWithReads(outgoing, this.store, (error) => {
      if (this.tracking.on) warnUncached(`the server says "${error.message}"`);
      nextTick(() => this.ended());
    });
    this.invalidations = new InvalidationReader((keys) => this.#invalidate(keys));
  }

  /** At rest while the server is near: a predicted read costs more than a round trip does. */
  get #predicting(): Predictor | undefined {
    return this.outgoing.batch.serverIsNear ? undefined : this.predictor;
  }

  /** Half of the commands that `maxInFlight` and `maxPending` allow are left to callers, behind a read and its two. */
  get #hasRoom(): boolean {
    const { gate, client, options } = this.outgoing;
    const most = Math.min(gate.inFlightBound.current, options.maxPending ?? Number.POSITIVE_INFINITY);
    return gate.waiting === 0 && 2 * (unansweredOf(client) + 3) <= most;
  }

  // ---- Asked ----

  /** The answer to a read from memory, for which it may wait; undefined if it has to be sent. */
  lookUp(variant: CommandVariant, args: readonly unknown[]): CachedRead | undefined {
    const name = keyName(args[0]);
    if (name === undefined || !this.tracking.on || this.outgoing.transaction.open) return undefined;
    const rest = readArguments(args.length === 1 ? name : args);
    const key = this.store.key(name);
    const read = rest === undefined ? undefined : key?.find(variant, rest);
    if (read !== undefined && (this.#mayUse(read) || this.#mayFollow(read))) return read;
    const { stats } = this.outgoing;
    if (this.tracking.tracks(name)) stats.cache.misses += 1;
    if (read !== undefined && !read.pending) stats.cache.held += 1;
    return undefined;
  }

  /** @param call - its options, if it has any; they count if it has to be sent. */
  defer(answer: CachedRead, entry: CallEntry, call: Call | undefined): void {
    if (call !== undefined) this.#calls.set(entry, call);
    if (this.#waiting.length === 0) setImmediate(this.#endTurn);
    this.#waiting.push(entry);
    entry.slot = answer;
    answer.key.waiting = true;
  }

  /**
   * Whether a read may share the reply to a predicted one that is on its way: what was issued since does not matter to
   * it. It waits for the end of the turn, too: that reply may have come, and its invalidation with it.
   */
  #mayFollow({ pending, prediction, key, position }: CachedRead): boolean {
    const { transaction } = this.outgoing;
    if (!pending || prediction === undefined || !key.kept || key.heldUntil > position) return false;
    return this.tracking.on && this.#issued.settled && !transaction.watching;
  }

  #follow(read: CachedRead, entry: CallEntry): void {
    const leader = read.prediction as PredictedEntry;
    leader.followers ??= [];
    leader.followers.push(entry);
    read.key.hold(read.position);
    this.outgoing.deadlineOf(entry, this.#calls.get(entry))?.add(entry);
    this.outgoing.stats.cache.hits += 1;
    this.#use(read);
  }

  /** A caller gets an answer. One that was predicted is used once, and then kept if there is room. */
  #use(read: CachedRead): void {
    const { key, prediction, text } = read;
    if (prediction === undefined) return;
    if (!prediction.isUsed) this.outgoing.stats.cache.predictionsUsed += 1;
    (prediction as PredictedEntry).used();
    if (key.room === this.store || this.store.admits(key.name, text)) {
      this.store.keep(key);
      if (!read.pending) read.prediction = undefined;
    } else if (key.reads === 1 && key.pending === 0) this.store.drop(key);
  }

  #find(name: string, variant: CommandVariant, wireArgs: unknown): CachedRead | undefined {
    const key = this.store.key(name);
    if (key === undefined) return undefined;
    const rest = readArguments(wireArgs);
    return rest === undefined ? undefined : key.find(variant, rest);
  }

  /**
   * Whether no command on its way, and nothing received, keeps an answer from being used. No read waits while a
   * transaction is open: `lookUp` sees to that, and MULTI decides all.
   */
  #mayUse(read: CachedRead): boolean {
    const { key } = read;
    const { transaction, replies } = this.outgoing;
    return (
      !read.pending &&
      read.prediction?.isUsed !== true &&
      key.kept &&
      key.expiresAt !== undefined &&
      this.tracking.on &&
      this.#issued.settled &&
      !transaction.watching &&
      (replies.all > key.heldUntil || key.newest === read)
    );
  }

  /** Whether an answer is young enough at `time`. */
  #isFresh(read: CachedRead, time: number): boolean {
    return this.#isYoung(read, time) && this.liveness.allows(time);
  }

  #isYoung({ readAt, key, prediction }: CachedRead, time: number): boolean {
    if (prediction !== undefined && time >= prediction.until) return false;
    return time - readAt < this.options.ttl && time < (key.expiresAt as number);
  }

  readonly #endTurn = (): void => {
    this.decideAll();
    this.deliver();
  };

  /** Whether reads wait, about which `decideAll` decides. */
  get hasDeferred(): boolean {
    return this.#waiting.length > 0;
  }

  /** Reads that wait will be answered from memory, or are sent if their answers have been revoked. Then none waits. */
  decideAll(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    // Now: those behind one that is sent come later than it does.
    this.#waiting = [];
    const time = now();
    for (const entry of waiting) this.#decide(entry, time);
    this.store.lostWaiting = false;
  }

  /** Answers the reads that were decided from memory. Runs code of users. */
  deliver(): void {
    const decided = this.#decided;
    if (decided.length === 0) return;
    this.#decided = [];
    for (const entry of decided) {
      // No reply has come since it was decided, so it has not changed.
      const { reply, form } = entry.slot as CachedRead;
      entry.slot = undefined;
      // Else its caller's signal has rejected it.
      if (entry.deadline === undefined) entry.answer(reply, form);
    }
  }

  #decide(entry: CallEntry, time: number): void {
    const asked = entry.slot as CachedRead;
    entry.slot = undefined;
    asked.key.waiting = false;
    // Its caller's signal has rejected it.
    if (entry.deadline !== undefined) return;
    const { outgoing } = this;
    const read = asked.key.kept ? asked : this.#find(asked.key.name, entry.variant, entry.wireArgs);
    if (read !== undefined && this.#mayFollow(read) && time < (read.prediction as PredictedEntry).until) {
      this.#follow(read, entry);
      return;
    }
    if (read === undefined || !this.#mayUse(read) || !this.#isFresh(read, time)) {
      if (read !== undefined && (read.key.expiresAt ?? Number.NaN) <= time) this.store.drop(read.key);
      outgoing.stats.cache.misses += 1;
      this.#send(entry);
      return;
    }
    outgoing.stats.cache.hits += 1;
    read.key.used = true;
    entry.slot = read;
    this.#decided.push(entry);
    this.#use(read);
    this.#predicting?.got(entry, read.value, time);
  }

  #send(entry: CallEntry): void {
    try {
      this.resend(entry, this.#calls.get(entry));
    } catch (error) {
      // Of user code in the host's way. The reads behind this one must not wait for ever.
      entry.fail(error);
    }
  }

  /** Ordering: whether reads that wait must be decided before a command that concerns this key. */
  #mustDecide(name: string, key = this.store.key(name)): boolean {
    return this.hasDeferred && (this.store.lostWaiting || key?.waiting === true);
  }

  // ---- Sent ----

  /** Whether the last read of the key is this one, and its answer will be kept: so that it may be shared. */
  isPending({ variant, wireArgs }: Entry): boolean {
    if (this.store.pending === 0) return false;
    const name = keyName(Array.isArray(wireArgs) ? wireArgs[0] : wireArgs);
    const read = name === undefined ? undefined : this.#find(name, variant, wireArgs);
    return read?.pending === true && read.position === read.key.heldUntil;
  }

  /**
   * A fast command's entry is about to be queued.
   *
   * @returns whether the answer will be kept.
   */
  sends(entry: Entry, call?: Call): boolean {
    const { command } = entry.variant;
    if (this.predictor !== undefined && call?.cache === false) this.#past.add(entry);
    if (command.cacheable) return this.#sendsRead(entry);
    this.sendsOther(effectOfName(command.name), this.#argsOf(entry));
    return false;
  }

  #sendsRead(entry: Entry): boolean {
    const { wireArgs } = entry;
    const argument = Array.isArray(wireArgs) ? wireArgs[0] : wireArgs;
    const text = keyName(argument);
    const name = text ?? wireName(argument);
    let key = this.store.key(name);
    if (this.#mustDecide(name, key)) {
      this.decideAll();
      key = this.store.key(name);
    }
    const keeps = text !== undefined && this.#keeps(entry, name, key);
    if (key === undefined && !keeps) return false;
    const read = entry.slot as CachedRead | undefined;
    const position = this.#nextPosition;
    if (!keeps) this.#issued.noteShown(name, position);
    (read?.key ?? key)?.hold(position);
    if (read !== undefined) read.position = position;
    return keeps;
  }

  /** Whether the answer to a read will be kept; then `entry.slot` is set, and Redis has been asked to track the key. */
  #keeps(entry: Entry, name: string, key: CachedKey | undefined, prediction?: PredictedEntry): boolean {
    const { variant, wireArgs } = entry;
    if (!this.tracking.on || this.outgoing.transaction.open || !this.tracking.tracks(name)) return false;
    const rest = readArguments(wireArgs);
    if (rest === undefined) return false;
    let read = key?.find(variant, rest);
    // The same read is on its way, and its answer will be kept.
    if (read?.pending) return false;
    const needsRoom = prediction === undefined && (read === undefined || read.key.room !== this.store);
    if (needsRoom && !this.store.admits(name, rest)) return false;
    if (read === undefined) {
      // A lone surrogate becomes another character on the wire, and also in the invalidation.
      if (!name.isWellFormed() || !rest.isWellFormed()) return false;
      // While there is an answer, the key is tracked, or the push that ends it comes first.
      const tracked = this.prefixes !== undefined || key === undefined || key.reads === 0;
      read = this.store.expect(key ?? name, variant, rest, tracked, prediction);
      if (tracked && this.prefixes === undefined) this.#asked.track(read);
    } else this.store.expectAgain(read, this.prefixes !== undefined, prediction);
    entry.slot = read;
    return true;
  }

  /**
   * A caller has issued a read.
   *
   * @param answer - that it waits for.
   */
  issued(variant: CommandVariant, args: readonly unknown[], answer: CachedRead | undefined): void {
    const predictor = this.#predicting;
    const { transaction } = this.outgoing;
    if (predictor === undefined || !this.tracking.on || transaction.open || transaction.watching) return;
    const prediction = answer?.prediction as PredictedEntry | undefined;
    predictor.read({ variant, wireArgs: args.length === 1 ? args[0] : args }, prediction);
  }

  /** Asks for a read that is likely to be issued; returns whether it was sent. */
  predict(foreseen: Foreseen, name: string, time: number): boolean {
    const { outgoing, store } = this;
    const { variant, text } = foreseen.pair.form;
    const { transaction } = outgoing;
    if (!this.tracking.on || transaction.open || transaction.watching || !this.#issued.settled) return false;
    if (!this.#hasRoom || this.#forbidden.has(foreseen.pair.form)) return false;
    store.forgetPredictions(time);
    const key = store.key(name);
    // One that waits has an answer.
    if (this.#mustDecide(name, key)) return false;
    const read = key?.find(variant, text);
    if (read?.pending || (read && !read.prediction?.isUsed && (!read.key.expiresAt || this.#isYoung(read, time))))
      return false;
    const until = time + Math.min(PREDICTED_FOR, this.options.ttl);
    const entry = new PredictedEntry(foreseen, name, outgoing.context, until, this.#refusedPrediction);
    if (!this.#keeps(entry, name, key, entry)) return false;
    (entry.slot as CachedRead).position = this.#nextPosition;
    sendInternal(outgoing, entry);
    this.sentKept(entry);
    outgoing.stats.cache.predicted += 1;
    return true;
  }

  readonly #refusedPrediction = (form: Form, message: string, followers: readonly Entry[]): void => {
    if (meaningOfError(message) === 'forbidden') this.#forbidden.add(form);
    for (const follower of followers) if (follower.deadline !== SETTLED) this.#send(follower as CallEntry);
  };

  /** A read was sent whose answer will be kept: what else is asked goes out in the same step. */
  sentKept({ slot: read }: Entry): void {
    this.#asked.timeToLive(read as CachedRead);
  }

  /** Commands of a pipeline or transaction are about to be queued together; they count as issued with the last. */
  sendsPipeline(commands: readonly HostCommand[]): void {
    if (this.hasDeferred) {
      for (const command of commands) this.#decideFor(effectOf(this.#argsOf(command)), this.#args);
    }
    const position = this.#nextPosition + commands.length - 1;
    for (const command of commands) {
      const args = this.#argsOf(command);
      const effect = command instanceof Entry ? effectOfName(command.variant.command.name) : effectOf(args);
      this.#note(effect, args, position);
    }
  }

  /** What is no cacheable read is about to be queued, or written by the host: `transaction` is told of it later. */
  sendsOther(effect: Effect, args: Arguments): void {
    if (this.hasDeferred) this.#decideFor(effect, args);
    this.#note(effect, args, this.#nextPosition);
  }

  /** The host is about to write bytes that are no command. */
  hostSendsUnknown(): void {
    this.decideAll();
    this.store.clear();
    this.#issued.changesAnything(this.#nextPosition);
  }

  /** Ordering: reads that wait were issued before a command that may change their answers, or show newer ones. */
  #decideFor(effect: Effect, args: Arguments): void {
    const keyed = this.#issued.keyed(effect);
    const must = keyed === undefined ? effect !== 'none' : keysOf(keyed, args).some((name) => this.#mustDecide(name));
    if (must) this.decideAll();
  }

  /** @param position - where the command counts as issued. */
  #note(effect: Effect, args: Arguments, position: number): void {
    if (effect !== 'end' && effect !== 'no replies' && effect !== 'reset') this.#issued.note(effect, args, position);
    else if (!this.tracking.isOwn(args)) this.ended();
  }

  // ---- Answered ----

  /**
   * The head of the queue has its reply.
   *
   * @param entry - the head, if it is a fast entry.
   * @param value - the decoded reply; undefined if the host has decoded it.
   */
  answered(entry: Entry | undefined, value: unknown): void {
    this.#issued.answer(this.outgoing.client.commandQueue);
    const predictor = this.#predicting;
    if (predictor !== undefined) {
      predictor.forms.replies += 1;
      const isCallers = entry instanceof CallEntry ? !this.#past.has(entry) : entry?.followers !== undefined;
      if (entry && isCallers && value !== undefined) predictor.got(entry, value, this.liveness.lastByteAt);
    }
    const read = entry?.slot as CachedRead | undefined;
    if (read === undefined) return;
    const { raw } = read;
    if (raw !== undefined) read.raw = undefined;
    if (!read.key.kept) return;
    if (value !== undefined) this.#fill(read, value, 'decoded');
    else if (raw !== undefined) this.#fill(read, raw, 'raw');
    else this.store.drop(read.key);
  }

  #fill(read: CachedRead, value: unknown, form: CachedRead['form']): void {
    const { replies, stats } = this.outgoing;
    const { key } = read;
    // Ordering: if this reply shows a change, earlier answers of the key must not be used after it (`IssuedCommands`).
    const showsMore = this.#issued.pushesLate && key.reads > 0;
    const { evictions } = this.store;
    read.form = form;
    this.store.put(read, value, this.liveness.lastByteAt);
    stats.cache.evictions += this.store.evictions - evictions;
    if (read.prediction?.isUsed) {
      if (key.room === this.store) read.prediction = undefined;
      else if (key.reads === 1 && key.pending === 0) this.store.drop(key);
    }
    if (!showsMore) return;
    key.newest = replies.all > key.heldUntil ? read : undefined;
    key.heldUntil = this.#nextPosition;
  }

  /**
   * The head of the queue has an error as its reply.
   *
   * @param error - its first `MEANING_LENGTH` characters; fewer if the others have not come yet.
   */
  failed(item: HostCommand, error: string): void {
    const meaning = meaningOfError(error);
    // What the user may do says nothing about our commands, and the other way round.
    if (meaning === 'forbidden' && item instanceof InternalEntry && !(item instanceof PredictedEntry)) return;
    if (error.length < MEANING_LENGTH || meaning !== 'other') {
      // A client without a cache would be told this now, whatever the key.
      this.store.clear();
    } else {
      const effect = effectOf(this.#argsOf(item));
      if (typeof effect !== 'object') return;
      for (const name of keysOf(effect, this.#args)) this.store.drop(this.store.key(name));
    }
  }

  // ---- Pushed ----

  started(): void {
    void this.tracking.arm();
  }

  chunkCame(): void {
    this.liveness.bytesReceived();
  }

  get holdsPush(): boolean {
    return this.invalidations.open;
  }

  push(chunk: Buffer, position: number): number {
    if (this.invalidations.read(chunk, position)) return this.invalidations.end;
    // One that is no invalidation is about to be handed to user code.
    this.#issued.pushed(this.#nextPosition);
    return -1;
  }

  release(): Buffer | undefined {
    return this.invalidations.open ? this.invalidations.release() : undefined;
  }

  #invalidate(keys: readonly string[] | undefined): void {
    const { stats } = this.outgoing;
    if (keys === undefined) stats.cache.invalidations += this.store.invalidateAll();
    else for (const name of keys) stats.cache.invalidations += this.store.invalidate(name);
  }

  // ---- Ended ----

  ended(staysOpen = false): void {
    this.decideAll();
    if (staysOpen) this.tracking.disarm();
    this.tracking.end();
    this.store.clear();
  }

  #argsOf(command: HostCommand): CallArguments {
    const { name } = command;
    if (command instanceof Entry) return this.#args.of(name, command.wireArgs, command.variant.script?.leading);
    return this.#args.of(name, command.args);
  }

  /** The position of the command that is issued next. */
  get #nextPosition(): number {
    return this.outgoing.replies.nextPosition(this.outgoing.client.commandQueue);
  }
}
