import type { Duplex } from 'node:stream';
import { type ConnectionEvent, reportConnection, watchesConnections } from '../channels.js';
import { warnCorkOnly } from '../errors.js';
import type { ClusterRouting } from '../host/cluster.js';
import type { PipelinedCommand } from '../host/pipeline.js';
import { findDataListener, settlesLate } from '../host/probe.js';
import { addressOf, commandTimeoutOf, replyModeOf, selectedDatabase } from '../host/state.js';
import type { HostClient, HostCommandClass, HostWrite } from '../host/types.js';
import { HostWriteCounter } from '../host/write-counter.js';
import type { ResolvedOptions } from '../options.js';
import { appendParts, type Part } from '../resp/encoder.js';
import { scanRequests } from '../resp/request-scanner.js';
import type { Stats } from '../stats.js';
import { nextTick } from '../util/clock.js';
import { Backlog } from './backlog.js';
import { Batch } from './batch.js';
import { Deadlines } from './deadlines.js';
import { CallEntry, type CommandVariant, Entry, type EntryContext } from './entry.js';
import { encodePipeline, PipelineEntry } from './pipeline-entry.js';
import { ReplyReader } from './reply-reader.js';
import type { ScheduleFunction } from './scheduler.js';
import { SharedReads } from './shared-reads.js';
import { StreamHooks } from './stream-hooks.js';

const NOT_READ = 'a reply is not RESP or not whole, the client decodes it';
const UNKNOWN_LISTENER = "the stream's data listener cannot be told from others";

/** No MULTI, EXEC or DISCARD that stands alone is longer on the wire. */
const LONGEST_TRANSACTION_COMMAND = 20;

let settleValue: (value: unknown) => void;
let settleError: (error: unknown) => void;
/** One executor for all promises: it saves a closure per command. */
function keepSettlers(resolve: (value: unknown) => void, reject: (error: unknown) => void): void {
  settleValue = resolve;
  settleError = reject;
}

function noop(): void {}

/**
 * One connection's life: hooks its stream, owns its batch, its reader and what waits for room, and ends with it.
 * Everything is tied to the stream it was made for; the client's next stream gets a connection of its own.
 */
export class Connection {
  /** Whether hot commands can go out here; looked at before every one. */
  open = true;
  readonly batch: Batch;
  readonly backlog: Backlog;
  readonly reader: ReplyReader | undefined;
  readonly #deadlines: Deadlines | undefined;
  readonly #context: EntryContext | undefined;
  #clusterContext: EntryContext | undefined;
  readonly #shared: SharedReads | undefined;
  readonly #writes = new HostWriteCounter();
  readonly #hooks: StreamHooks;
  /** Whether a batch may stay open for longer than a turn of the event loop. */
  readonly #batchesLast: boolean;
  #transactionOpen = false;
  #address: string | undefined;
  #corkOnlyReason: string | undefined;

  constructor(
    readonly client: HostClient,
    readonly stream: Duplex,
    readonly options: ResolvedOptions,
    schedule: ScheduleFunction,
    readonly stats: Stats,
    /** What the hot path needs, or why there is layer 1 alone. */
    hot: HostCommandClass | string,
    /** Whether nothing has been received on the stream yet. */
    fresh: boolean,
  ) {
    this.#batchesLast = options.maxFlushDelay > 0 || typeof options.schedule === 'function';
    const { write, end, destroy } = stream;
    this.#hooks = new StreamHooks(stream, {
      write: (data: HostWrite['data'], encoding?: BufferEncoding, callback?: HostWrite['callback']) =>
        this.#hostWrite(data, encoding, callback),
      end: (...args: Parameters<typeof end>) => {
        this.#drain(true);
        return end.apply(stream, args);
      },
      destroy: (...args: Parameters<typeof destroy>) => {
        this.#drain(false);
        return destroy.apply(stream, args);
      },
    });
    this.batch = new Batch(stream, write as Batch['write'], options, schedule, stats, {
      address: () => this.#whereTo(),
      awaiting: () => client.commandQueue.length - this.backlog.commands - this.batch.commands,
      flushed: () => {
        this.#shared?.close();
        this.#deadlines?.close(this.reader?.sent ?? 0);
      },
      encodeLast: (count) => this.#encodeLast(count),
    });
    this.backlog = new Backlog(options.maxInFlight, options.maxBatchSize);
    const listener = typeof hot === 'string' ? undefined : findDataListener(stream);
    if (typeof hot !== 'string' && listener !== undefined) {
      this.#context = { client, commandClass: hot, settlesLate: settlesLate(hot) };
      const reader = new ReplyReader(client, stream, listener, this.#context, replyModeOf(client), stats, fresh, {
        chunkRead: this.#afterChunk,
        stoppedDecoding: () => {
          this.#deadlines?.release();
          // Later: whoever watches must not run inside the reader (invariant 7).
          nextTick(() => this.#report({ change: 'downgraded', mode: 'cork', reason: NOT_READ }));
        },
      });
      this.reader = reader;
      this.#deadlines = new Deadlines(
        () => client.commandQueue,
        () => reader.settled,
      );
      if (options.shareReads) this.#shared = new SharedReads();
    } else {
      stream.on('data', this.#afterChunk);
      this.#corkOnlyReason = typeof hot === 'string' ? hot : UNKNOWN_LISTENER;
      if (typeof hot !== 'string') warnCorkOnly(UNKNOWN_LISTENER);
    }
    stream.once('close', this.#onClose);
  }

  /** Why the hot path cannot be taken now, as far as this connection is concerned; undefined if it can. */
  coldReason(): 'connection' | 'cork-only' | undefined {
    const { reader } = this;
    if (!this.open) return 'connection';
    if (reader === undefined) return 'cork-only';
    return reader.checkReady() ? undefined : reader.stoppedDecoding ? 'cork-only' : 'connection';
  }

  /**
   * Ordering: the bytes and the entry are appended in one synchronous step (invariant 1).
   *
   * @param encoded - the command as RESP.
   * @param sent - its arguments as encoded, `keyPrefix` applied.
   * @param routing - of the Cluster that sends it here, if one does.
   */
  sendHot(
    variant: CommandVariant,
    encoded: string | Part[],
    sent: readonly unknown[],
    routing: ClusterRouting | undefined,
  ): Promise<unknown> {
    const { client } = this;
    const reader = this.reader as ReplyReader;
    const context = (routing === undefined ? this.#context : this.#contextIn(routing)) as EntryContext;
    let promise = new Promise<unknown>(keepSettlers);
    // Ordering: callers settle in the order of their replies, whichever path each of them took.
    if (context.settlesLate) promise = promise.finally(noop);
    const select = selectedDatabase(client);
    const kept = sent.length === 1 ? sent[0] : sent;
    const entry = new CallEntry(variant, context, kept, select, promise, settleValue, settleError);
    if (this.#shared !== undefined && this.#follows(this.#shared, variant, encoded, entry)) return promise;
    this.stats.commands += 1;
    this.stats.hotCommands += 1;
    const queue = client.commandQueue;
    const waits = this.#mustWait(queue.length, 1);
    const deadlines = this.#deadlines as Deadlines;
    if (waits || this.#batchesLast) deadlines.closeIfOld(reader.sent);
    const timeout = commandTimeoutOf(client);
    if (timeout !== deadlines.ms) deadlines.begin(reader.sent, timeout);
    reader.sent += 1;
    if (typeof encoded !== 'string') this.batch.checkText();
    queue.push(entry);
    if (waits) this.backlog.holdHot(entry.encode());
    else this.batch.addHot(encoded);
    return promise;
  }

  /**
   * Sends an explicit pipeline or a transaction in one step.
   * Ordering: nothing comes between its bytes, and nothing between its entries (invariants 1 and 10).
   *
   * @param commands - light entries, and commands of the host's.
   * @param isTransaction - whether one of them is EXEC.
   */
  sendPipeline(commands: readonly PipelinedCommand[], isTransaction: boolean): void {
    const { client, backlog } = this;
    const reader = this.reader as ReplyReader;
    const context = this.#context as EntryContext;
    const select = selectedDatabase(client);
    const queue = client.commandQueue;
    const encoded = encodePipeline(commands, client);
    const count = commands.length;
    if (this.#shared !== undefined) {
      this.#shared.close();
      if (isTransaction) this.#shared.inTransaction = false;
    }
    this.stats.commands += count;
    const waits = this.#mustWait(queue.length, count);
    const deadlines = this.#deadlines as Deadlines;
    if (waits || this.#batchesLast) deadlines.closeIfOld(reader.sent);
    const timeout = commandTimeoutOf(client);
    if (timeout !== deadlines.ms) deadlines.begin(reader.sent, timeout);
    this.batch.checkText();
    for (const command of commands) {
      if (command instanceof PipelineEntry) {
        command.context = context;
        command.select = select;
        queue.push(command);
        reader.sent += 1;
        this.stats.hotCommands += 1;
      } else {
        queue.push({ command, select });
      }
    }
    if (waits) {
      backlog.holdPipeline(encoded, count, isTransaction);
      return;
    }
    if (isTransaction) this.#transactionOpen = false;
    this.batch.addExact(encoded, count);
  }

  /**
   * Commands of a Cluster know the way back to it. Ordering: the host rejects entries in the order they were sent in,
   * one at a time when the reader has forwarded an error, the whole queue when the connection is lost.
   */
  #contextIn(routing: ClusterRouting): EntryContext {
    this.#clusterContext ??= {
      ...(this.#context as EntryContext),
      redirect: (entry, error) => {
        this.#deadlines?.follow(entry);
        entry.reject = (final) => entry.fail(final);
        routing.reject(this.client, entry, error);
      },
    };
    return this.#clusterContext;
  }

  flush(): void {
    this.batch.flush('manual');
  }

  /** Tells those who watch, once the client has this connection: they may detach it. */
  announce(): void {
    const reason = this.#corkOnlyReason;
    this.#report(
      reason === undefined ? { change: 'attached', mode: 'hot' } : { change: 'attached', mode: 'cork', reason },
    );
  }

  #report(event: Omit<ConnectionEvent, 'address'>): void {
    if (watchesConnections()) reportConnection({ ...event, address: this.#whereTo() });
  }

  /** Asked for only when somebody watches: a socket keeps its peer's name once it was asked. */
  #whereTo(): string {
    this.#address ??= addressOf(this.client, this.stream);
    return this.#address;
  }

  /** Leaves the stream as it was found; what is in flight settles through the host. */
  detach(): void {
    this.#drain(true);
    this.#deadlines?.release();
    this.reader?.remove();
    this.stream.removeListener('data', this.#afterChunk);
    this.stream.removeListener('close', this.#onClose);
    this.#hooks.remove();
    if (!this.stream.destroyed) this.#report({ change: 'detached', mode: 'detached', reason: 'detach()' });
  }

  #follows(shared: SharedReads, variant: CommandVariant, encoded: string | Part[], entry: Entry): boolean {
    const text = typeof encoded === 'string' || encoded.length > 1 ? encoded : encoded[0];
    if (!variant.command.shareable || typeof text !== 'string') {
      shared.close();
      return false;
    }
    const leader = shared.leaderOf(variant, text);
    if (leader === undefined) {
      shared.lead(variant, text, entry);
      return false;
    }
    leader.followers ??= [];
    leader.followers.push(entry);
    this.stats.sharedReads += 1;
    return true;
  }

  /**
   * Host: what a hand-shake writes goes out at once and command by command, as a plain client's does. Whoever schedules
   * flushes himself does so for his own commands.
   */
  get #handShaking(): boolean {
    return this.client.status === 'connect' && this.batch.commands === 0 && this.backlog.commands === 0;
  }

  /** Every write of the host's comes past here: single commands, explicit pipelines, hand-shakes. */
  #hostWrite(
    data: HostWrite['data'],
    encoding: BufferEncoding | HostWrite['callback'],
    callback: HostWrite['callback'],
  ): boolean {
    if (!this.open || this.stream.destroyed || data.length === 0 || this.#handShaking) {
      return this.batch.write.call(this.stream, data, encoding as BufferEncoding, callback);
    }
    const write: HostWrite =
      typeof encoding === 'function' ? { data, encoding: undefined, callback: encoding } : { data, encoding, callback };
    const { backlog, client } = this;
    const commands = this.#writes.count(client, data);
    const transaction =
      data.length <= LONGEST_TRANSACTION_COMMAND || this.#shared !== undefined
        ? scanRequests(data).transaction
        : undefined;
    this.stats.commands += commands;
    if (this.#shared !== undefined) {
      this.#shared.close();
      if (transaction !== undefined) this.#shared.inTransaction = transaction === 'open';
    }
    // All but the last of a pipeline's entries are in the queue by now.
    if (this.#mustWait(client.commandQueue.length - (commands - 1), commands)) {
      backlog.holdHost(write, commands, transaction);
      return false;
    }
    if (transaction !== undefined) this.#transactionOpen = transaction === 'open';
    return this.batch.addHost(write, commands);
  }

  /**
   * Whether the bytes of `commands` more commands must wait, with `queued` entries in front of them.
   * Ordering: nothing overtakes what waits. A transaction that has begun goes on, and what is larger than the bound
   * goes alone.
   */
  #mustWait(queued: number, commands: number): boolean {
    if (this.backlog.commands > 0) return true;
    if (queued + commands <= this.options.maxInFlight) return false;
    return queued > 0 && !this.#transactionOpen;
  }

  readonly #afterChunk = (): void => {
    this.#deadlines?.sweep();
    if (!this.open) return;
    if (this.backlog.commands > 0) this.#release();
    this.batch.reconsiderDelay();
  };

  /** The queue ends with the entries of what waits, before them come the batch's. */
  #encodeLast(count: number): Part[] {
    const queue = this.client.commandQueue;
    const entries: Entry[] = [];
    for (let index = queue.length - this.backlog.commands - 1; index >= 0 && entries.length < count; index -= 1) {
      const item = queue.peekAt(index);
      // In between are commands of the explicit pipeline that is about to be written.
      if (item instanceof Entry) entries.push(item);
    }
    return entries.reduceRight<Part[]>((parts, entry) => appendParts(parts, entry.encode()), []);
  }

  /** Sends what has room now. */
  #release(): void {
    const { backlog, client, options } = this;
    this.batch.checkText();
    for (;;) {
      const onWire = client.commandQueue.length - backlog.commands;
      const held = backlog.take(options.maxInFlight - onWire, onWire <= 0 || this.#transactionOpen);
      if (held === undefined) break;
      this.#send(held);
    }
    this.batch.flush('room');
  }

  #send(held: NonNullable<ReturnType<Backlog['take']>>): void {
    if (held.transaction !== undefined) this.#transactionOpen = held.transaction === 'open';
    if (Array.isArray(held.content)) this.batch.addExact(held.content, held.commands);
    else this.batch.addHost(held.content, held.commands);
  }

  /**
   * The stream is about to end: pending bytes go first (invariant 2), as a plain client has written them by now.
   * Host: `disconnect()` ends the stream, and destroys it after `disconnectTimeout`.
   *
   * @param backlogToo - what waits for room as well; a stream that is destroyed would not send so much any more.
   */
  #drain(backlogToo: boolean): void {
    if (!this.open) return;
    this.open = false;
    if (this.stream.destroyed) return;
    this.batch.checkText();
    for (let held = backlogToo ? this.backlog.take(0, true) : undefined; held; held = this.backlog.take(0, true)) {
      this.#send(held);
    }
    this.batch.flush('end');
  }

  readonly #onClose = (): void => {
    this.open = false;
    this.batch.discard();
    this.#deadlines?.release();
    this.reader?.close();
    this.#report({ change: 'detached', mode: 'detached', reason: 'the connection is closed' });
  };
}
