import type { Duplex } from 'node:stream';
import { effectOf } from '../commands/effects.js';
import type { CommandVariant } from '../commands/fast-commands.js';
import type { ClusterRouting } from '../host/cluster.js';
import { settlesLate } from '../host/command-class.js';
import { SocketTimeout } from '../host/socket-timeout.js';
import { commandTimeoutOf, publishCommand, selectedDatabase, unansweredOf } from '../host/state.js';
import type { AnyFunction, HostClient, HostCommandClass } from '../host/types.js';
import type { CallOptions, ResolvedOptions } from '../options.js';
import type { Part } from '../resp/encoder.js';
import type { FallbackReason, Stats } from '../stats.js';
import { scheduleFunction } from '../util/schedule.js';
import { CallArguments } from './cache/names.js';
import type { Predictor } from './cache/prediction.js';
import { ReadCache } from './cache/read-cache.js';
import type { CachedRead } from './cache/store.js';
import { type Deadline, Deadlines } from './entries/deadlines.js';
import { AbortableEntry, CallEntry, type Entry, type EntryContext, type InternalEntry } from './entries/entry.js';
import { LayeredEntry } from './entries/layered-entry.js';
import { encodePipeline, PipelineEntry, type PipelineRecording } from './entries/pipeline-entry.js';
import { SharedReads } from './entries/shared-reads.js';
import { AbortList } from './entries/signals.js';
import type { ReplyCount } from './reply-count.js';
import { Batch, type BatchOwner } from './sending/batch.js';
import { FusedReads } from './sending/fused-reads.js';
import { type InFlightBound, InFlightGate } from './sending/in-flight-gate.js';
import type { PendingBound } from './sending/pending-bound.js';
import type { TransactionState } from './transaction-state.js';

/** A command's bytes: text assumed to be ASCII, or exact parts; undefined if it is encoded with its neighbours. */
type Encoded = string | readonly Part[] | undefined;

/** What the connections of one client have in common. */
export interface ConnectionSetup {
  readonly client: HostClient;
  readonly options: ResolvedOptions;
  readonly counters: Stats;
  readonly inFlightBound: InFlightBound;
  readonly commandClass: HostCommandClass;
  /** Prefixes of the keys that are cached, as they are on the wire. */
  readonly cachePrefixes: readonly string[] | undefined;
  /** The bound of the option `maxPending`, if it is set. */
  readonly pendingBound: PendingBound | undefined;
  /** With the option `cache.prefetch`. */
  readonly predictor: Predictor | undefined;
}

/**
 * How an *observed* command is sent, one that others see: *layered*, as others have put layers over `sendCommand`
 * (fallback reason `patched`), or *published* to subscribers of the host's channel `ioredis:command` (`traced`).
 */
export interface Observing {
  /** Whether it is layered; otherwise it is published. */
  readonly isLayered: boolean;
  /** The node's or single client, or the Cluster, whose `sendCommand` has layers. */
  readonly through: { sendCommand: AnyFunction };
}

/** The connection on which it is sent. */
interface OutgoingConnection {
  readonly stream: Duplex;
  readonly address: string;
  /** False once the stream ends or fails, or the client is detached. */
  readonly open: boolean;
  readonly transaction: TransactionState;
  readonly replies: ReplyCount;
  connectionFallbackReason(): FallbackReason | undefined;
  /** Looks whether what the host wrote last is in its queue, before something is put behind it. */
  checkQueue(): void;
  failed(error: unknown): void;
}

/**
 * The way of this package's own commands to the wire:
 *
 *     from memory ─▶ shared with an identical read ─▶ fused with its neighbour ─▶ held by the gate ─▶ in the batch
 *
 * A step that takes a command ends its way; each hands on what it does not take. The host's writes come from
 * `HostWriteHook`.
 */
export class Outgoing implements BatchOwner {
  readonly client: HostClient;
  readonly options: ResolvedOptions;
  readonly stats: Stats;
  readonly stream: Duplex;
  readonly transaction: TransactionState;
  readonly replies: ReplyCount;
  readonly context: EntryContext;
  readonly batch: Batch;
  readonly gate: InFlightGate;
  readonly cache: ReadCache | undefined;
  readonly shared: SharedReads | undefined;
  readonly fused: FusedReads | undefined;
  /** The timer of the option `socketTimeout`, while the client has it. */
  socketTimeout: SocketTimeout | undefined;
  readonly #maxPending: number;
  readonly #deadlines = new Deadlines();
  #clusterContext: EntryContext | undefined;

  constructor(
    { client, options, counters, inFlightBound, commandClass, cachePrefixes, pendingBound, predictor }: ConnectionSetup,
    readonly connection: OutgoingConnection,
  ) {
    const { stream, transaction, replies } = connection;
    this.client = client;
    this.options = options;
    this.stats = counters;
    this.stream = stream;
    this.transaction = transaction;
    this.replies = replies;
    this.#maxPending = pendingBound?.maxPending ?? Number.POSITIVE_INFINITY;
    this.context = { client, commandClass, settlesLate: settlesLate(commandClass) };
    this.gate = new InFlightGate(options, inFlightBound, client);
    this.batch = new Batch(this, scheduleFunction(options.schedule), stream.write as Batch['write']);
    if (options.cache) this.cache = new ReadCache(this, options.cache, cachePrefixes, predictor);
    else if (options.fuseReads) this.fused = new FusedReads(client, this);
    if (options.shareReads || options.cache) this.shared = new SharedReads(transaction);
  }

  get open(): boolean {
    return this.connection.open;
  }

  get address(): string {
    return this.connection.address;
  }

  failed(error: unknown): void {
    this.connection.failed(error);
  }

  /**
   * Ordering: the bytes and the entry are appended in one synchronous step (invariant 1).
   *
   * @param sent - its arguments, `keyPrefix` applied, all of which can be encoded.
   * @param routing - of the Cluster that sends it here, if any.
   * @param call - the caller's options, if there are any.
   * @param answer - from memory: the command waits for it, and is encoded if it has to be sent.
   * @param chained - is given the promise that the reply settles, and returns the one that the caller gets.
   */
  send(
    variant: CommandVariant,
    sent: readonly unknown[],
    routing: ClusterRouting | undefined,
    call: CallOptions | undefined,
    answer?: CachedRead,
    chained?: (promise: Promise<unknown>) => Promise<unknown>,
  ): Promise<unknown> {
    const context = routing === undefined ? this.context : this.#contextIn(routing);
    const select = selectedDatabase(this.client);
    const signal = call?.signal;
    const entry =
      signal === undefined
        ? new CallEntry(variant, context, sent, select)
        : new AbortableEntry(variant, context, sent, select, AbortList.of(signal));
    if (chained !== undefined) entry.promise = chained(entry.promise);
    if (answer !== undefined) this.cache?.defer(answer, entry, call);
    else if (this.fused?.takes(entry)) this.#issue(entry, undefined, call);
    else this.#issue(entry, this.batch.encode(variant, sent) ?? entry.encode(), call);
    if (entry instanceof AbortableEntry) entry.abortList.add(entry);
    return entry.promise;
  }

  /**
   * Sends an observed command. A layered one goes through `sendCommand` as others have replaced it: what they do with
   * it counts, and what they return. The host's own, below them, asks the entry for its bytes (`HostWriteHook`) and
   * queues it.
   */
  sendObserved(
    { isLayered, through }: Observing,
    variant: CommandVariant,
    sent: readonly unknown[],
    routing: ClusterRouting | undefined,
    answer?: CachedRead,
    chained?: (promise: Promise<unknown>) => Promise<unknown>,
  ): Promise<unknown> {
    const { client } = this;
    const isNodes = routing !== undefined && through === client;
    const context = isNodes ? this.#contextIn(routing) : this.context;
    const kind = isLayered ? LayeredEntry : CallEntry;
    const entry = new kind(variant, context, sent, selectedDatabase(client));
    if (chained !== undefined) entry.promise = chained(entry.promise);
    // Host: a Cluster returns the promise of the command, whatever its node returns.
    if (!(entry instanceof LayeredEntry)) {
      if (answer !== undefined) this.cache?.defer(answer, entry, undefined);
      else this.#issue(entry, this.batch.encode(variant, sent) ?? entry.encode(), undefined);
      this.stats.observedCommands += 1;
      const published = publishCommand(client, entry);
      return isNodes ? entry.promise : published;
    }
    try {
      const returned = through.sendCommand(entry) as Promise<unknown>;
      return isNodes ? entry.promise : returned;
    } finally {
      // A layer that sends it later sends its arguments as they are then.
      entry.writable = undefined;
    }
  }

  /** The steps between a command's entry and the queue, in their order. */
  #issue(entry: CallEntry, encoded: Encoded, call: CallOptions | undefined): void {
    const { client, cache, shared } = this;
    const { shareable, cacheable } = entry.variant.command;
    // One that has waited for a prediction has its own.
    const ms = call?.timeout ?? commandTimeoutOf(client);
    const deadline = (entry.deadline as Deadline | undefined) ?? (ms === undefined ? ms : this.#deadlines.for(ms));
    const shares = shareable && (this.options.shareReads || (cacheable && cache?.isPending(entry)));
    let name = shares ? shared?.nameOf(entry, encoded) : undefined;
    if (name !== undefined && shared?.follow(name, entry, deadline)) {
      this.stats.sharedReads += 1;
      return;
    }
    const kept = cache?.sends(entry, call) ?? false;
    // Reads that waited may have been sent just now, before this one.
    if (!shareable) shared?.close();
    if (kept) name ??= shared?.nameOf(entry, encoded);
    this.#enqueue(entry, encoded, deadline, name);
    if (kept) cache?.sentKept(entry);
  }

  /** @param name - by which identical reads find it, if they may share its reply. */
  #enqueue(entry: Entry, encoded: Encoded, deadline: Deadline | undefined, name?: string): void {
    const { client, gate, batch, replies, fused } = this;
    if (replies.lengthDue !== undefined) this.connection.checkQueue();
    const { begun } = this.transaction;
    // Whatever can throw does so before the entry is queued.
    const exact = gate.mustWait(1, begun) ? entry.exactParts(encoded ?? entry.encode()) : undefined;
    if (name !== undefined) this.shared?.lead(name, entry);
    this.stats.commands += 1;
    this.stats.fastCommands += 1;
    if (entry.deadline === undefined) deadline?.add(entry);
    if (client.options.socketTimeout !== undefined) this.#startSocketTimeout();
    // Before it may be sent: a Connector's stream may answer within the write.
    replies.expected += 1;
    if (encoded === undefined && exact === undefined) {
      if (!batch.addRead(entry as CallEntry, fused as FusedReads)) replies.expected -= 1;
      return;
    }
    client.commandQueue.push(entry);
    if (exact === undefined) batch.addFast(encoded as string, entry);
    else gate.holdFast(exact, begun);
    if (entry.variant.script !== undefined) batch.scriptAdded();
  }

  /** Sends a read that waited for its answer from memory. */
  sendEntry(entry: CallEntry, call: CallOptions | undefined): void {
    const { client } = this;
    const reason = this.connection.connectionFallbackReason();
    // A traced one was published when it was called.
    if (reason === undefined || reason === 'traced') this.#issue(entry, entry.encodeAssumingAscii(), call);
    // Host: it holds a command back, or rejects it, as the state of the connection demands.
    else client.sendCommand(entry);
  }

  startTimeout(entry: CallEntry, call: CallOptions | undefined): void {
    this.#deadlines.for(call?.timeout ?? commandTimeoutOf(this.client))?.add(entry);
  }

  get serverIsNear(): boolean {
    return this.batch.serverIsNear;
  }

  /** Half of what `maxInFlight` and `maxPending` allow is left to callers, behind a read, CLIENT CACHING and PTTL. */
  get hasRoom(): boolean {
    const { gate, client } = this;
    const most = Math.min(gate.inFlightBound.current, this.#maxPending);
    return gate.waiting === 0 && 2 * (unansweredOf(client) + 3) <= most;
  }

  /** Sends a command of the cache's own. */
  sendInternal(entry: InternalEntry, encoded: Encoded = entry.encodeAssumingAscii()): void {
    const timeout = entry.deadline === undefined ? commandTimeoutOf(this.client) : undefined;
    this.#enqueue(entry, encoded, this.#deadlines.for(timeout));
  }

  #startSocketTimeout(): void {
    this.socketTimeout ??= new SocketTimeout(this.client, this.stream);
    this.socketTimeout.sent();
  }

  /**
   * Sends an explicit pipeline or a transaction in one step.
   * Ordering: nothing comes between its bytes, and nothing between its entries (invariants 1 and 10).
   *
   * @param recording - of a pipeline whose commands are fast entries, and commands of the host's.
   */
  sendPipeline(recording: PipelineRecording): void {
    const { client, gate, cache, fused, transaction } = this;
    const { commands } = recording;
    // Whatever can throw does so before anything is queued, and the pipeline still is not sent.
    const encoded = encodePipeline(commands, client);
    const { replies } = this;
    const select = selectedDatabase(client);
    recording.sentWith(this.context, select);
    const deadline = this.#deadlines.for(commandTimeoutOf(client));
    const queue = client.commandQueue;
    if (replies.lengthDue !== undefined) this.connection.checkQueue();
    const { begun } = transaction;
    this.stats.commands += commands.length;
    cache?.sendsPipeline(commands);
    // Behind it: reads that waited are sent before the pipeline.
    this.shared?.close();
    const waits = gate.mustWait(commands.length, begun);
    if (client.options.socketTimeout !== undefined) this.#startSocketTimeout();
    let fast = 0;
    for (const command of commands) {
      if (command instanceof PipelineEntry) {
        fast += 1;
        command.isTraced = true;
        deadline?.add(command);
        replies.expected += 1;
        queue.push(command);
        fused?.sends(command.name);
      } else {
        const effect = effectOf(new CallArguments().of(command.name, command.args));
        transaction.issued(effect);
        fused?.sends(command.name, effect);
        queue.push({ command, select, stream: recording });
      }
    }
    if (recording.isTransaction) transaction.becomes('closed');
    this.stats.fastCommands += fast;
    if (waits) gate.hold(encoded, commands.length, fast, begun);
    else this.batch.addExact(encoded, commands.length, fast);
  }

  /**
   * The context of entries that are sent for a Cluster: one that is rejected is handed to the Cluster, once.
   * Ordering: these are handed over in the order of their calls, since the host rejects entries in the order they were
   * sent in, one at a time when the reader has forwarded an error, the whole queue when the connection is lost.
   */
  #contextIn(routing: ClusterRouting): EntryContext {
    this.#clusterContext ??= { ...this.context, redirect: (entry) => routing.redirect(this.client, entry) };
    return this.#clusterContext;
  }
}
