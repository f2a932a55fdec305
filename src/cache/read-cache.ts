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
import { NO_DEADLINE, SETTLED } from '../util/deadlines.js';
import { InvalidationReader } from './invalidations.js';
import { IssuedCommands } from './issued-commands.js';
import type { KeyPattern } from './prefetch/key-patterns.js';
import { PredictedEntry, type PredictionOrigin, type Predictor } from './prefetch/prediction.js';
import { type CachedKey, type CachedRead, CacheStore } from './store.js';
import { CompanionCommands, Liveness, MAX_SILENCE_MS, Tracking, warnUncached } from './tracking.js';

/** Milliseconds for which a predicted answer may be used, and a read in flight be followed. */
const FOLLOWED_MS = 1_000;

/**
 * One connection's cache of read answers. A cached read needs no command until Redis announces a change of its key. The
 * cache ends with its connection.
 *
 * 1. `lookUp` looks for an answer. If there is a usable one, the read waits until the event loop has read its sockets.
 * 2. At the end of the turn, all waiting reads are looked up again (`#endTurn`), then answered, or sent if the answer
 *   was invalidated or is too old. So no answer is delivered that received bytes have invalidated.
 * 3. All waiting reads are decided before a command that may change the answer of one, or show a newer one; before any
 *   command if one has lost its answer, and before one that may block.
 * 4. Deciding runs no user code. Delivering runs reply transformers, which may do anything, so answers are delivered at
 *   the end of the turn, or before the replies of the next chunk, when no other step is half done.
 * 5. `sends` decides whether the answer to a sent read will be kept. If so, the store has it as pending, identical
 *   reads of the batch share it, and those of later turns follow it. CLIENT CACHING YES precedes it, and PTTL comes
 *   behind it (`CompanionCommands`).
 * 6. Each command sent drops the keys that it changes, pending reads included. While it is in flight, answers of keys
 *   it shows are not used (`heldUntil`); if its keys are unknown, no answer is used (`IssuedCommands`).
 * 7. The reply fills the pending read, in wire order (`answered`). It is not used before the reply to PTTL.
 * 8. An invalidation drops the answers of a key, and pending reads without their own CACHING YES.
 * 9. An error drops its key, or everything if it is not about one command (`failed`).
 */
export class ReadCache implements Incoming {
  readonly invalidations: InvalidationReader;
  readonly store: CacheStore;
  readonly #issued: IssuedCommands;
  /** Tracking by the server: nothing is kept until it is on. */
  readonly tracking: Tracking;
  readonly #companions: CompanionCommands;
  readonly liveness = new Liveness();
  /** Waiting reads in call order. `entry.slot` is the answer found. */
  #waiting: CallEntry[] = [];
  /** When they were looked up: they share the time. */
  #lookedUpAt = 0;
  /** Reads whose answers are decided, but not delivered yet. */
  #decided: CallEntry[] = [];
  /** The options of calls, if they have any. */
  readonly #calls = new WeakMap<CallEntry, Call>();
  readonly #args = new CallArguments();
  /** Patterns that the server forbids on this connection. */
  readonly #forbidden = new Set<KeyPattern>();
  /** The position of the last command that may block the connection. */
  #blockedAt = -1;
  /** Reads whose options bypass the cache. */
  readonly #bypassing = new WeakSet<Entry>();

  constructor(
    readonly outgoing: Outgoing,
    readonly options: ResolvedCacheOptions,
    /** Prefixes of the cached keys on the wire; undefined for all keys. */
    readonly prefixes: readonly string[] | undefined,
    readonly predictor: Predictor | undefined,
    /** Sends a read that was not answered from memory, after everything sent before. */
    readonly resend: (entry: CallEntry, call: Call | undefined) => void,
  ) {
    const { context, transaction } = outgoing;
    this.store = new CacheStore(options.maxEntries, options.maxBytes);
    this.#issued = new IssuedCommands(outgoing, this.store, prefixes !== undefined, options.scripts);
    this.tracking = new Tracking(context, prefixes ?? [], transaction);
    // The server does not allow `CLIENT CACHING`.
    this.#companions = new CompanionCommands(outgoing, this.store, (error) => {
      if (this.tracking.on) warnUncached(`the server says "${error.message}"`);
      nextTick(() => this.ended());
    });
    this.invalidations = new InvalidationReader((keys) => this.#invalidate(keys));
  }

  /** Disabled for nearby servers, where a predicted read costs more than a round trip. */
  get #predicting(): Predictor | undefined {
    return this.outgoing.batch.serverIsNear ? undefined : this.predictor;
  }

  /** Leaves half of `maxInFlight` and `maxPending` to callers; a predicted read and its companions are 3 commands. */
  get #hasCapacity(): boolean {
    const { gate, client, options } = this.outgoing;
    const most = Math.min(gate.inFlightBound.current, options.maxPending ?? Number.POSITIVE_INFINITY);
    return gate.waiting === 0 && 2 * (unansweredOf(client) + 3) <= most;
  }

  // ---- Reads from memory ----

  /** The cached answer to a read, or a pending one that it may wait for; undefined if the read has to be sent. */
  lookUp(variant: CommandVariant, args: readonly unknown[]): CachedRead | undefined {
    const name = keyName(args[0]);
    if (name === undefined || !this.tracking.on || this.outgoing.transaction.open) return undefined;
    const read = this.#find(name, variant, args.length === 1 ? name : args);
    const isUsable = read !== undefined && (this.#mayUse(read) || this.#mayFollow(read));
    // Ordering: a read that would be sent at the end of the turn anyway is sent in its place.
    if (isUsable && this.#isFreshFor(read)) return read;
    const { stats } = this.outgoing;
    if (this.tracking.tracks(name)) stats.cache.misses += 1;
    if (read !== undefined && !isUsable && !read.pending) stats.cache.held += 1;
    return undefined;
  }

  /** Whether an answer may be used now. Hits are frequent: those that wait together share the time of the first. */
  #isFreshFor(read: CachedRead): boolean {
    if (this.hasDeferred && this.#isYoung(read, this.#lookedUpAt)) return true;
    this.#lookedUpAt = now();
    return this.#isFresh(read, this.#lookedUpAt);
  }

  /** @param call - the call's options, if it has any, in case the read has to be sent. */
  defer(answer: CachedRead, entry: CallEntry, call: Call | undefined): void {
    if (call !== undefined) this.#calls.set(entry, call);
    if (this.#waiting.length === 0) setImmediate(this.#endTurn);
    this.#waiting.push(entry);
    entry.slot = answer;
    answer.key.waiting = true;
  }

  /**
   * Whether a read may share the reply to an identical one in flight, because no command since then affects it. Even so
   * it waits for the end of the turn: that reply may have arrived already, and an invalidation after it. If a hot key's
   * reads were all sent until one is answered, there would always be one in flight, and no answer could be used.
   */
  #mayFollow({ pending, leader, raw, key, position }: CachedRead): boolean {
    const { transaction, batch } = this.outgoing;
    if (!pending || leader === undefined || !key.kept || key.heldUntil > position) return false;
    // Within its batch, `SharedReads` shares it.
    const unsent = leader instanceof CallEntry ? batch.commands : 0;
    // Not while the host settles it, nor after the host has flushed its queue: it would never settle the read.
    if (raw !== undefined || position >= this.#nextPosition() - unsent) return false;
    return this.tracking.on && this.#issued.settled && !transaction.watching;
  }

  #follow(read: CachedRead, entry: CallEntry): void {
    const leader = read.leader as Entry;
    leader.followers ??= [];
    leader.followers.push(entry);
    read.key.hold(read.position);
    const deadline = this.outgoing.deadlineOf(entry, this.#calls.get(entry));
    if (deadline === undefined) entry.deadline = NO_DEADLINE;
    else deadline.add(entry);
    this.outgoing.stats.cache.hits += 1;
    this.#use(read);
  }

  /** A caller gets an answer. A predicted one is used once, then kept if the store admits it. */
  #use(read: CachedRead): void {
    const { key, prediction, text } = read;
    if (prediction === undefined) return;
    if (!prediction.isUsed) this.outgoing.stats.cache.predictionsUsed += 1;
    prediction.used();
    if (key.quota === this.store || this.store.admits(key.name, text)) {
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
   * Whether the commands in flight and the bytes received leave an answer usable. No read waits during a transaction,
   * because `lookUp` returns none then, and MULTI decides all waiting reads.
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

  /** Whether an answer's age, and that of the last byte received, allow its use at `time`. Drops an expired key. */
  #isFresh(read: CachedRead, time: number): boolean {
    const { pending, key } = read;
    if (this.#isYoung(read, time) && (pending || this.liveness.allows(time))) return true;
    if (!pending && (key.expiresAt ?? Number.NaN) <= time) this.store.drop(key);
    if (time - this.liveness.lastByteAt >= MAX_SILENCE_MS) this.liveness.asks(time, this.#nextPosition());
    return false;
  }

  #isYoung({ pending, readAt, key, prediction }: CachedRead, time: number): boolean {
    if (prediction !== undefined && time >= prediction.until) return false;
    const age = time - readAt;
    // Unknown while the first read of the key is pending.
    const isExpired = key.expiresAt !== undefined && time >= key.expiresAt;
    return age < this.options.ttl && !isExpired && (!pending || age < FOLLOWED_MS);
  }

  readonly #endTurn = (): void => {
    this.decideAll();
    this.deliver();
  };

  /** Whether reads wait for `decideAll`. */
  get hasDeferred(): boolean {
    return this.#waiting.length > 0;
  }

  /** Decides each waiting read: its answer will be delivered, or the read is sent if its answer was invalidated. */
  decideAll(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    // Before deciding: sending one of them calls `decideAll` again.
    this.#waiting = [];
    const time = now();
    for (const entry of waiting) this.#decide(entry, time);
    this.store.lostWaiting = false;
  }

  /** Delivers the decided answers. Runs user code. */
  deliver(): void {
    const decided = this.#decided;
    if (decided.length === 0) return;
    this.#decided = [];
    for (const entry of decided) {
      // No reply has arrived since the decision, so the answer has not changed.
      const { reply, form } = entry.slot as CachedRead;
      entry.slot = undefined;
      // Skip it if its caller's signal has already rejected it.
      if (entry.deadline === undefined) entry.answer(reply, form);
    }
  }

  #decide(entry: CallEntry, time: number): void {
    const asked = entry.slot as CachedRead;
    entry.slot = undefined;
    asked.key.waiting = false;
    // Skip: already aborted.
    if (entry.deadline !== undefined) return;
    const { outgoing } = this;
    const read = asked.key.kept ? asked : this.#find(asked.key.name, entry.variant, entry.wireArgs);
    if (read !== undefined && this.#mayUse(read) && this.#isFresh(read, time)) {
      outgoing.stats.cache.hits += 1;
      read.key.used = true;
      entry.slot = read;
      this.#decided.push(entry);
      this.#use(read);
      this.#predicting?.onReply(entry, read.value, time);
    } else if (read !== undefined && this.#mayFollow(read) && this.#isFresh(read, time)) this.#follow(read, entry);
    else {
      outgoing.stats.cache.misses += 1;
      this.#send(entry);
    }
  }

  #send(entry: CallEntry): void {
    try {
      const refusal = this.outgoing.admission?.refusalOf(1);
      if (refusal !== undefined) entry.fail(refusal);
      else this.resend(entry, this.#calls.get(entry));
    } catch (error) {
      // User code called by the host has thrown. The remaining reads still have to be sent.
      entry.fail(error);
    }
  }

  /** Ordering: whether waiting reads must be decided before a command on this key. */
  #mustDecide(name: string, key = this.store.key(name)): boolean {
    return this.hasDeferred && (this.store.lostWaiting || key?.waiting === true);
  }

  // ---- Commands sent ----

  /** Whether this read equals the key's last one in flight, whose answer will be kept, so that they may share it. */
  isPending({ variant, wireArgs }: Entry): boolean {
    if (this.store.pending === 0) return false;
    const name = keyName(Array.isArray(wireArgs) ? wireArgs[0] : wireArgs);
    const read = name === undefined ? undefined : this.#find(name, variant, wireArgs);
    return read?.pending === true && read.position === read.key.heldUntil;
  }

  /**
   * Called before a fast command's entry is queued.
   *
   * @returns whether the answer will be kept.
   */
  sends(entry: Entry, call?: Call): boolean {
    const { command } = entry.variant;
    if (this.predictor !== undefined && call?.cache === false) this.#bypassing.add(entry);
    if (command.cacheable) return this.#sendsRead(entry);
    this.sendsOther(effectOfName(command.name), this.#argsOf(entry));
    return false;
  }

  #sendsRead(entry: Entry): boolean {
    const { wireArgs } = entry;
    const argument = Array.isArray(wireArgs) ? wireArgs[0] : wireArgs;
    const text = keyName(argument);
    // As the server knows it, so that a text with a lone surrogate holds the key that it shows.
    const name = text?.isWellFormed() ? text : wireName(argument);
    let key = this.store.key(name);
    if (this.#mustDecide(name, key)) {
      this.decideAll();
      key = this.store.key(name);
    }
    const willKeep = text === name && this.#keeps(entry, name, key);
    if (key === undefined && !willKeep) return false;
    const read = entry.slot as CachedRead | undefined;
    const position = this.#nextPosition();
    if (!willKeep) this.#issued.noteShown(name, position);
    (read?.key ?? key)?.hold(position);
    if (read !== undefined) read.position = position;
    return willKeep;
  }

  /** Whether the answer to a read will be kept. If so, sets `entry.slot` and has Redis track the key. */
  #keeps(entry: Entry, name: string, key: CachedKey | undefined, prediction?: PredictedEntry): boolean {
    const { variant, wireArgs } = entry;
    if (!this.tracking.on || this.outgoing.transaction.open || !this.tracking.tracks(name)) return false;
    const rest = readArguments(wireArgs);
    if (rest === undefined) return false;
    let read = key?.find(variant, rest);
    // The same read is in flight, and its answer will be kept.
    if (read?.pending) return false;
    const needsAdmission = prediction === undefined && (read === undefined || read.key.quota !== this.store);
    if (needsAdmission && !this.store.admits(name, rest)) return false;
    if (read === undefined) {
      // On the wire, and in the invalidation, a lone surrogate becomes another character.
      if (!name.isWellFormed() || !rest.isWellFormed()) return false;
      // A key with answers is tracked already, or the push that drops them arrives before this reply.
      const tracked = this.prefixes !== undefined || key === undefined || key.reads === 0;
      read = this.store.addPending(key ?? name, variant, rest, tracked, prediction);
      if (tracked && this.prefixes === undefined) this.#companions.track(read);
    } else this.store.refresh(read, this.prefixes !== undefined, prediction);
    entry.slot = read;
    return true;
  }

  /**
   * A caller has issued a read.
   *
   * @param answer - the answer it waits for.
   */
  issued(variant: CommandVariant, args: readonly unknown[], answer: CachedRead | undefined): void {
    const predictor = this.#predicting;
    const { transaction } = this.outgoing;
    if (predictor === undefined || !this.tracking.on || transaction.open || transaction.watching) return;
    predictor.read({ variant, wireArgs: args.length === 1 ? args[0] : args }, answer?.prediction);
  }

  /** Sends a read that is likely to be issued, unless it has an answer already; returns whether it was sent. */
  predict(origin: PredictionOrigin, name: string, time: number): boolean {
    const { outgoing, store } = this;
    const { variant, text } = origin.successor.pattern;
    const { transaction } = outgoing;
    if (!this.tracking.on || transaction.open || transaction.watching || !this.#issued.settled) return false;
    if (!this.#hasCapacity || this.#forbidden.has(origin.successor.pattern)) return false;
    store.forgetPredictions(time);
    const key = store.key(name);
    // Reads wait for this key, so it has answers.
    if (this.#mustDecide(name, key)) return false;
    const read = key?.find(variant, text);
    if (read?.pending || (read && !read.prediction?.isUsed && (!read.key.expiresAt || this.#isYoung(read, time))))
      return false;
    const until = time + Math.min(FOLLOWED_MS, this.options.ttl);
    const entry = new PredictedEntry(origin, name, outgoing.context, until, this.#refusedPrediction);
    if (!this.#keeps(entry, name, key, entry)) return false;
    (entry.slot as CachedRead).position = this.#nextPosition();
    sendInternal(outgoing, entry);
    this.sentKept(entry);
    outgoing.stats.cache.predicted += 1;
    return true;
  }

  readonly #refusedPrediction = (pattern: KeyPattern, message: string, followers: readonly Entry[]): void => {
    if (meaningOfError(message) === 'forbidden') this.#forbidden.add(pattern);
    for (const follower of followers) if (follower.deadline !== SETTLED) this.#send(follower as CallEntry);
  };

  /** Called right after a read whose answer will be kept, in the same synchronous step. */
  sentKept(entry: Entry): void {
    const read = entry.slot as CachedRead;
    read.leader = entry;
    read.readAt = now();
    this.#companions.timeToLive(read);
  }

  /** Called before the commands of a pipeline or transaction are queued; all count as issued with the last one. */
  sendsPipeline(commands: readonly HostCommand[]): void {
    if (this.hasDeferred) {
      for (const command of commands) this.#decideFor(effectOf(this.#argsOf(command)), this.#args);
    }
    const position = this.#nextPosition() + commands.length - 1;
    for (const command of commands) {
      const args = this.#argsOf(command);
      const effect = command instanceof Entry ? effectOfName(command.variant.command.name) : effectOf(args);
      this.#note(effect, args, position);
    }
  }

  /** Called before any other command is queued, or written by the host, and before `transaction` is updated. */
  sendsOther(effect: Effect, args: Arguments): void {
    if (this.hasDeferred) this.#decideFor(effect, args);
    this.#note(effect, args, this.#nextPosition());
  }

  /** Called before a command is queued that may block the connection. */
  sendsBlocking(): void {
    this.decideAll();
    this.#blockedAt = this.#nextPosition();
  }

  /** The host is about to write bytes that are not a command. */
  hostSendsUnknown(): void {
    this.decideAll();
    this.store.clear();
    this.#issued.changesAnything(this.#nextPosition());
  }

  /**
   * Ordering: waiting reads precede a command that may change their answers, or show newer ones. If one has lost its
   * answer, they precede any command.
   */
  #decideFor(effect: Effect, args: Arguments): void {
    const keyed = this.#issued.keyed(effect);
    const must = keyed === undefined ? effect !== 'none' : keysOf(keyed, args).some((name) => this.#mustDecide(name));
    if (must || this.store.lostWaiting) this.decideAll();
  }

  /** @param position - where the command counts as issued. */
  #note(effect: Effect, args: Arguments, position: number): void {
    if (effect !== 'end' && effect !== 'no replies' && effect !== 'reset') this.#issued.note(effect, args, position);
    else if (!this.tracking.isOwn(args)) this.ended();
  }

  // ---- Replies ----

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
      predictor.patterns.replies += 1;
      const isCallers = entry instanceof CallEntry ? !this.#bypassing.has(entry) : entry?.followers !== undefined;
      if (entry && isCallers && value !== undefined) predictor.onReply(entry, value, this.liveness.lastByteAt);
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
    const showsMore = this.#issued.usesBroadcast && key.reads > 0;
    const { evictions } = this.store;
    read.form = form;
    this.store.put(read, value, this.liveness.lastByteAt);
    stats.cache.evictions += this.store.evictions - evictions;
    if (read.prediction?.isUsed) {
      if (key.quota === this.store) read.prediction = undefined;
      else if (key.reads === 1 && key.pending === 0) this.store.drop(key);
    }
    if (!showsMore) return;
    key.newest = replies.all > key.heldUntil ? read : undefined;
    key.heldUntil = this.#nextPosition();
  }

  /**
   * The head of the queue has an error as its reply.
   *
   * @param error - its first `MEANING_LENGTH` characters, or fewer if the rest has not arrived yet.
   */
  failed(item: HostCommand, error: string): void {
    if (item instanceof PredictedEntry) {
      const read = item.slot as CachedRead;
      const mayResend = !this.outgoing.transaction.open && this.#blockedAt < read.position && this.#mayFollow(read);
      item.isOutdated ||= !mayResend;
    }
    const meaning = meaningOfError(error);
    // A refusal of our own commands does not affect those of users.
    if (meaning === 'forbidden' && item instanceof InternalEntry && !(item instanceof PredictedEntry)) return;
    if (error.length < MEANING_LENGTH || meaning !== 'other') {
      // Without a cache, a read of any key would fail too.
      this.store.clear();
    } else {
      const effect = effectOf(this.#argsOf(item));
      if (typeof effect !== 'object') return;
      for (const name of keysOf(effect, this.#args)) this.store.drop(this.store.key(name));
    }
  }

  // ---- Pushes ----

  started(): void {
    void this.tracking.arm();
  }

  chunkCame(): void {
    const position = this.liveness.bytesReceived(this.#nextPosition);
    if (position !== undefined) this.#issued.holdUntil(position);
  }

  get holdsPush(): boolean {
    return this.invalidations.open;
  }

  push(chunk: Buffer, position: number): number {
    if (this.invalidations.read(chunk, position)) return this.invalidations.end;
    // Other pushes are about to be handed to user code. No waiting answer may be used before the next reply.
    this.#issued.pushed(this.#nextPosition());
    this.store.lostWaiting ||= this.hasDeferred;
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

  // ---- The end ----

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

  /** The position of the next command to be issued. */
  readonly #nextPosition = (): number => this.outgoing.replies.nextPosition(this.outgoing.client.commandQueue);
}
