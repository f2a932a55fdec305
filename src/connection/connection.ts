import type { Duplex } from 'node:stream';
import { reportConnection } from '../channels.js';
import { effectOf } from '../commands/effects.js';
import type { CommandVariant } from '../commands/fast-commands.js';
import type { ClusterRouting } from '../host/cluster.js';
import { HostWrites } from '../host/pipeline.js';
import { settlesLate } from '../host/probe.js';
import { SocketTimeout } from '../host/socket-timeout.js';
import {
  addressOf,
  clientFallbackReason,
  commandTimeoutOf,
  isLayered,
  isLayeredInClass,
  publishCommand,
  selectedDatabase,
} from '../host/state.js';
import type { AnyFunction, HostClient, HostCommandClass, HostWrite, QueueItem } from '../host/types.js';
import type { CallOptions, ResolvedOptions } from '../options.js';
import type { Part } from '../resp/encoder.js';
import { RequestReader } from '../resp/request-reader.js';
import type { FallbackReason, Stats } from '../stats.js';
import { nextTick, setImmediate } from '../util/clock.js';
import { hookStream } from '../util/hook-stream.js';
import { drainAtExit } from '../util/process-exit.js';
import { scheduleFunction } from '../util/schedule.js';
import { CallArguments } from './cache/names.js';
import { ReadCache } from './cache/read-cache.js';
import type { CachedRead } from './cache/store.js';
import { type Deadline, Deadlines } from './entries/deadlines.js';
import { AbortableEntry, CallEntry, type Entry, type EntryContext, type InternalEntry } from './entries/entry.js';
import { entryWrittenAs, LayeredEntry } from './entries/layered-entry.js';
import { encodePipeline, PipelineEntry, type PipelineRecording } from './entries/pipeline-entry.js';
import { SharedReads } from './entries/shared-reads.js';
import { AbortList } from './entries/signals.js';
import { ReplyReader } from './replies/reply-reader.js';
import { ReplyCount } from './reply-count.js';
import { Batch, type BatchOwner } from './sending/batch.js';
import { FusedReads } from './sending/fused-reads.js';
import { type InFlightBound, InFlightGate } from './sending/in-flight-gate.js';
import type { PendingBound } from './sending/pending-bound.js';
import { TransactionState } from './transaction-state.js';

const NOT_READ = 'replies or the queue are not as expected, the client decodes all replies';

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
}

/**
 * How a *watched* command is sent, one that others see: *layered*, as others have put layers over `sendCommand`
 * (fallback reason `patched`), or *published* to subscribers of the host's channel `ioredis:command` (`traced`).
 */
export interface Watched {
  readonly connection: Connection;
  /** Whether it is layered; otherwise it is published. */
  readonly isLayered: boolean;
  /** The node's or single client, or the Cluster, whose `sendCommand` has layers. */
  readonly through: { sendCommand: AnyFunction };
}

/**
 * One connection's life: hooks its stream, owns its batch, its reader and its backlog, and ends with the stream.
 * Everything is tied to the stream for which it was made; the client's next stream gets a new connection.
 */
export class Connection implements BatchOwner {
  readonly client: HostClient;
  readonly options: ResolvedOptions;
  readonly stats: Stats;
  /** False once the stream ends or fails, or the client is detached. */
  open = true;
  /** Whether the user has a transaction open. */
  readonly transaction: TransactionState;
  readonly batch: Batch;
  readonly gate: InFlightGate;
  readonly replies = new ReplyCount();
  /** Replies to the handshake. */
  #repliesBefore = 0;
  readonly reader: ReplyReader;
  readonly cache: ReadCache | undefined;
  readonly shared: SharedReads | undefined;
  readonly fused: FusedReads | undefined;
  readonly pendingBound: PendingBound | undefined;
  readonly context: EntryContext;
  readonly #deadlines = new Deadlines();
  #clusterContext: EntryContext | undefined;
  /** The timer of the option `socketTimeout`, while the client has it. */
  #socketTimeout: SocketTimeout | undefined;
  readonly #writes = new HostWrites();
  #unhook = () => {};
  #address: string | undefined;
  #forgetExit = () => {};

  /** Makes the parts; none of them does anything before `start()`. */
  constructor(
    { client, options, counters, inFlightBound, commandClass, cachePrefixes, pendingBound }: ConnectionSetup,
    readonly stream: Duplex,
    /** The host's `data` listener on it. */
    listener: AnyFunction,
    /** Whether nothing has been received on the stream yet. */
    readonly fresh: boolean,
  ) {
    this.client = client;
    this.options = options;
    this.stats = counters;
    this.pendingBound = pendingBound;
    this.transaction = new TransactionState(fresh ? undefined : client.commandQueue);
    this.gate = new InFlightGate(options, inFlightBound, client);
    this.batch = new Batch(this, scheduleFunction(options.schedule), stream.write as Batch['write']);
    if (options.fuseReads && !options.cache) this.fused = new FusedReads(client, this);
    this.context = { client, commandClass, settlesLate: settlesLate(commandClass) };
    if (options.cache) this.cache = new ReadCache(this, options.cache, cachePrefixes);
    this.reader = new ReplyReader(this, listener, fresh);
    if (options.shareReads || options.cache) this.shared = new SharedReads(this.transaction);
  }

  /** Takes the stream over. Called once the client has this connection: subscribers may detach it. */
  start(): void {
    const { stream, reader } = this;
    this.#unhook = hookStream(stream, this.#onWrite, this.#onEnd);
    this.#forgetExit = drainAtExit(() => this.drain('exit'));
    reader.start();
    stream.once('close', this.#onClose);
    // Attached by user code amid a chunk, whose replies are not read here: the backlog may have room afterwards.
    if (!this.fresh) setImmediate(this.chunkRead);
    void this.cache?.tracking.arm();
    reportConnection(this, 'attached', undefined);
  }

  /** Why a command cannot take the fast path here now; undefined if it can. */
  connectionFallbackReason(): FallbackReason | undefined {
    const { reader } = this;
    if (!this.open) return 'connection';
    if (!reader.checkReady()) return reader.stoppedDecoding ? 'downgraded' : 'connection';
    return clientFallbackReason(this.client, this.stream);
  }

  /** Whether commands are fast nevertheless if others see them. What is answered from memory no tracer would see. */
  canBeWatched(reason: FallbackReason): boolean {
    if (this.cache !== undefined) return false;
    return reason === 'traced' || (reason === 'patched' && isLayeredInClass(this.client));
  }

  /** The reader says that from now on the host decodes everything, and entries leave the queue uncounted. */
  readerGaveUp(): void {
    // Later: subscribers must not run inside the reader (invariant 7).
    nextTick(() => reportConnection(this, 'downgraded', NOT_READ));
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
  sendFast(
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
   * Sends a watched command. A layered one goes through `sendCommand` as others have replaced it: what they do with it
   * counts, and what they return. The host's own, below them, asks the entry for its bytes (`#hostWrite`) and queues it.
   */
  sendWatched(
    { isLayered, through }: Watched,
    variant: CommandVariant,
    sent: readonly unknown[],
    routing: ClusterRouting | undefined,
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
      this.#issue(entry, this.batch.encode(variant, sent) ?? entry.encode(), undefined);
      this.stats.watchedCommands += 1;
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

  /** @param encoded - as RESP; undefined for a read that may be fused, which is encoded with its neighbours. */
  #issue(entry: CallEntry, encoded: string | readonly Part[] | undefined, call: CallOptions | undefined): void {
    const { client, cache, shared } = this;
    const { shareable, cacheable } = entry.variant.command;
    const timeout = call?.timeout ?? commandTimeoutOf(client);
    const deadline = timeout === undefined ? undefined : this.#deadlines.for(timeout);
    if (!shareable) shared?.close();
    const shares = shareable && (this.options.shareReads || (cacheable && cache?.isPending(entry)));
    let name = shares ? shared?.nameOf(entry, encoded) : undefined;
    if (name !== undefined && shared?.follow(name, entry, deadline)) {
      this.stats.sharedReads += 1;
      return;
    }
    const kept = cache?.sends(entry) ?? false;
    if (kept) name ??= shared?.nameOf(entry, encoded);
    this.#enqueue(entry, encoded, deadline, name);
    if (kept) cache?.sentKept(entry);
  }

  /** @param name - by which identical reads find it, if they may share its reply. */
  #enqueue(
    entry: Entry,
    encoded: string | readonly Part[] | undefined,
    deadline: Deadline | undefined,
    name?: string,
  ): void {
    const { client, gate, batch, replies, fused } = this;
    if (replies.lengthDue !== undefined) this.#checkQueue();
    const { begun } = this.transaction;
    // Whatever can throw does so before the entry is queued.
    const exact = gate.mustWait(1, begun) ? entry.exactly(encoded ?? entry.encode()) : undefined;
    if (name !== undefined) this.shared?.lead(name, entry);
    this.stats.commands += 1;
    this.stats.fastCommands += 1;
    deadline?.add(entry);
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
    if (this.connectionFallbackReason() === undefined) this.#issue(entry, entry.encodeAssumingAscii(), call);
    // Host: it holds a command back, or rejects it, as the state of the connection demands.
    else client.sendCommand(entry);
  }

  /** Sends a command of the cache's own. */
  sendInternal(entry: InternalEntry): void {
    this.#enqueue(entry, entry.encodeAssumingAscii(), this.#deadlines.for(commandTimeoutOf(this.client)));
  }

  #startSocketTimeout(): void {
    this.#socketTimeout ??= new SocketTimeout(this.client, this.stream);
    this.#socketTimeout.sent();
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
    if (replies.lengthDue !== undefined) this.#checkQueue();
    const { begun } = transaction;
    this.shared?.close();
    this.stats.commands += commands.length;
    cache?.sendsPipeline(commands);
    const waits = gate.mustWait(commands.length, begun);
    if (client.options.socketTimeout !== undefined) this.#startSocketTimeout();
    let fast = 0;
    for (const command of commands) {
      if (command instanceof PipelineEntry) {
        fast += 1;
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
   * Ordering: these are handed over in the order of their calls, since the host rejects entries in the order they were sent in, one at a time when the reader has forwarded an
   * error, the whole queue when the connection is lost.
   */
  #contextIn(routing: ClusterRouting): EntryContext {
    this.#clusterContext ??= {
      ...this.context,
      redirect: (entry, error) => {
        entry.reject = (final) => entry.fail(final);
        routing.redirect(this.client, entry, error);
      },
    };
    return this.#clusterContext;
  }

  /** The server's. Read only when there are subscribers: a socket keeps its peer's address once it was read. */
  get address(): string {
    this.#address ??= addressOf(this.client, this.stream);
    return this.#address;
  }

  /** Leaves the stream as it was found; commands in flight settle through the host. */
  detach(): void {
    this.cache?.end('stays open');
    this.#close();
    this.#socketTimeout?.leaveToHost();
    this.reader.remove();
    this.stream.removeListener('close', this.#onClose);
    this.#forgetExit();
    this.#unhook();
    if (!this.stream.destroyed) reportConnection(this, 'detached', 'detach()');
    this.cache?.deliver();
  }

  /**
   * Host: the commands of a handshake go out at once and one by one, as a plain client's do. A user-supplied schedule
   * applies to user commands only.
   */
  get #handshaking(): boolean {
    return this.client.status === 'connect' && this.batch.commands === 0 && this.gate.waiting === 0;
  }

  readonly #onWrite = (
    data: HostWrite['data'],
    encoding?: BufferEncoding,
    callback?: HostWrite['callback'],
  ): boolean => {
    const result = this.#hostWrite(data, encoding, callback);
    // Not while replies are read: each takes a command out of the queue, and other code may send in between.
    if (this.open && data.length > 0 && !this.reader.runsOthers)
      this.replies.lengthDue = this.client.commandQueue.length + 1;
    return result;
  };

  readonly #onEnd = (method: 'end' | 'destroy'): void => {
    if (!this.open) return;
    const { client, gate, replies, stream } = this;
    // Not by the client itself, nor amid a handshake, whose few commands are no reason.
    const isLost = client.status === 'ready' && (method === 'destroy' || stream.readableEnded);
    if (isLost) gate.inFlightBound.lost(gate.passed, replies.all - this.#repliesBefore);
    this.#close();
    this.cache?.deliver();
  };

  /** Gets every write by the host: single commands, explicit pipelines, handshakes. */
  #hostWrite(
    data: HostWrite['data'],
    encoding: BufferEncoding | HostWrite['callback'],
    callback: HostWrite['callback'],
  ): boolean {
    const { gate } = this;
    const { begun } = this.transaction;
    const entry = entryWrittenAs(data);
    if (entry !== undefined) this.#checkQueue(0);
    if (entry !== undefined && this.open && !this.#handshaking && this.cache === undefined) {
      this.#writeLayered(entry, data as string | Buffer);
      return true;
    }
    const { commands, repliesOff, script } = this.#readWrite(data);
    this.#checkQueue(commands - 1);
    if (!this.open || this.stream.destroyed || data.length === 0 || this.#handshaking) {
      return this.batch.write.call(this.stream, data, encoding as BufferEncoding, callback);
    }
    const write: HostWrite =
      typeof encoding === 'function' ? { data, encoding: undefined, callback: encoding } : { data, encoding, callback };
    this.stats.commands += commands;
    // The host's command may be a write (invariant 6).
    this.shared?.close();
    if (repliesOff) {
      this.shared?.stop();
      this.fused?.stop();
      gate.stopCounting(this.batch);
    }
    // All but the last of a pipeline's entries are in the queue by now.
    if (gate.mustWait(commands, begun, commands - 1)) {
      gate.hold(write, commands, 0, begun);
      return false;
    }
    const result = this.batch.addHost(write, commands);
    if (script) this.batch.scriptAdded();
    return result;
  }

  /**
   * Ends the connection if the queue is not as long as the host's last write makes it (invariant 3). But layers may delay
   * commands, so that the host writes others, mostly SELECTs, amid those of a pipeline; then it decodes all replies.
   *
   * @param more - commands that the host has queued since, and is about to write; undefined if entries come next.
   */
  #checkQueue(more?: number): void {
    const { client, reader } = this;
    const disagreement = this.replies.disagreement(client.commandQueue, more);
    if (disagreement === undefined || !this.open) return;
    if (more !== undefined && isLayered(client)) {
      reader.giveUp();
      // Commands that are not written yet are in the queue.
      this.gate.stopCounting(this.batch);
      // Host: when it empties its queue, it removes all `data` listeners.
    } else if (reader.checkReady() && this.stream.listenerCount('data') > 0) this.failed(disagreement);
  }

  /** Ordering: the host queues the entry when this has returned. */
  #writeLayered(entry: LayeredEntry, data: string | Buffer): void {
    const { gate, batch, stats } = this;
    const { begun } = this.transaction;
    entry.readHere = true;
    entry.writable = undefined;
    stats.commands += 1;
    stats.fastCommands += 1;
    stats.watchedCommands += 1;
    this.replies.expected += 1;
    // It may be a write (invariant 6).
    this.shared?.close();
    if (gate.mustWait(1, begun)) gate.holdFast([data], begun);
    else batch.addExact([data], 1, 1, true);
    if (entry.variant.script !== undefined) batch.scriptAdded();
  }

  /** Notes what the commands in a write by the host mean here. It counts as at least one command. */
  #readWrite(data: HostWrite['data']) {
    const requests = this.#writes.read(this.client, data);
    const { cache, fused, transaction } = this;
    if (cache?.hasDeferred && !requests.single) this.#decideBefore(cache, data);
    let commands = 0;
    let repliesOff = false;
    let script = false;
    while (requests.next()) {
      commands += 1;
      const effect = effectOf(requests);
      cache?.hostSends(effect, requests);
      transaction.issued(effect);
      fused?.sends(requests.text(0), effect);
      repliesOff ||= effect === 'no replies';
      script = effect === 'script' && requests.single;
    }
    if (requests.malformed) cache?.hostSendsUnknown();
    return { commands: Math.max(commands, 1), repliesOff, script };
  }

  /** Ordering: the host has queued all but the last entry of the pipeline that it is about to write; these go behind. */
  #decideBefore(cache: ReadCache, pipeline: HostWrite['data']): void {
    const { commandQueue } = this.client;
    const requests = new RequestReader(pipeline, false);
    const later: QueueItem[] = [];
    requests.next();
    while (requests.next()) later.push(commandQueue.pop() as QueueItem);
    cache.decideAll();
    for (const item of later.reverse()) commandQueue.push(item);
  }

  /** A chunk has been read to its end. */
  readonly chunkRead = (): void => {
    this.#socketTimeout?.received();
    if (!this.open) return;
    // Its replies have taken commands out of the queue.
    this.replies.lengthDue = undefined;
    if (this.client.status !== 'ready') this.#repliesBefore = this.replies.all;
    if (this.gate.waiting > 0) this.gate.release(this.batch);
    this.batch.repliesCame();
  };

  /** Sends the backlog and all pending bytes, without limits: the stream or the process is about to end. */
  drain(reason: 'end' | 'exit'): void {
    if (!this.open || this.stream.destroyed) return;
    this.gate.drain(this.batch);
    this.batch.flushUnseen(reason);
  }

  /**
   * The stream is about to end: pending bytes go first (invariant 2), as a plain client has written them by now.
   * Host: `disconnect()` ends the stream, and destroys it after `disconnectTimeout`.
   */
  #close(): void {
    this.cache?.end();
    this.drain('end');
    this.open = false;
  }

  /**
   * Entries are queued whose bytes cannot be sent. Every later reply would go to the wrong caller (invariant 3), so the
   * connection ends.
   */
  failed(error: unknown): void {
    this.open = false;
    this.stream.destroy(error instanceof Error ? error : new Error(String(error)));
  }

  readonly #onClose = (): void => {
    this.open = false;
    this.cache?.end();
    this.transaction.becomes('closed');
    this.#forgetExit();
    this.batch.discard();
    this.#socketTimeout?.clear();
    this.reader.close();
    reportConnection(this, 'detached', 'the connection is closed');
    this.cache?.deliver();
  };
}
