import type { Duplex } from 'node:stream';
import type { CommandVariant } from '../commands/fast-commands.js';
import type { ClusterRouting } from '../host/cluster.js';
import { settlesInFinally } from '../host/command-class.js';
import type { EntryContext } from '../host/command-facade.js';
import { SocketTimeout } from '../host/socket-timeout.js';
import { commandTimeoutOf, selectedDatabase } from '../host/state.js';
import type { HostClient, HostCommandClass, QueueItem } from '../host/types.js';
import type { ResolvedOptions } from '../options.js';
import type { Part } from '../resp/encoder.js';
import type { FallbackReason, Stats } from '../stats.js';
import { type Deadline, Deadlines } from '../util/deadlines.js';
import type { InFlightBound } from '../util/in-flight-bound.js';
import { scheduleFunction } from '../util/schedule.js';
import { Batch, type BatchOwner } from './batch.js';
import { CallEntry, Entry } from './entry.js';
import type { Admission, Call, Reads } from './features.js';
import { InFlightGate } from './in-flight-gate.js';
import type { ReplyCount } from './reply-count.js';
import type { ReplyReader } from './reply-reader.js';
import type { TransactionState } from './transaction-state.js';

/** Derives the promise that the caller gets from the one that the reply settles. */
export type Chained = (promise: Promise<unknown>) => Promise<unknown>;

/** Sends commands on one connection. `Outgoing` is the ordinary one. */
export interface Dispatcher {
  /**
   * @param args - as they are encoded, `keyPrefix` applied.
   * @param routing - of the Cluster that sends it here, if any.
   */
  dispatch(
    variant: CommandVariant,
    args: readonly unknown[],
    routing: ClusterRouting | undefined,
    call: Call | undefined,
    chained: Chained | undefined,
  ): Promise<unknown>;
}

/** Encodes an entry together with those before it. */
export interface Group {
  /** @returns whether the entry was queued; if not, it shares the queue item of an earlier one. */
  add(entry: CallEntry): boolean;
}

/** A command's bytes: text assumed to be ASCII, or exact parts; or the group that encodes it with its neighbours. */
export type Encoded = string | readonly Part[] | Group;

/** What all connections of a client share. */
export interface ConnectionSetup {
  readonly client: HostClient;
  readonly options: ResolvedOptions;
  readonly counters: Stats;
  readonly inFlightBound: InFlightBound;
  readonly commandClass: HostCommandClass;
  readonly admission: Admission | undefined;
  /** Creates the enabled read features for one connection. */
  readsOn(outgoing: Outgoing): Reads | undefined;
}

/** What an `Outgoing` needs of its connection. */
interface OutgoingConnection {
  readonly stream: Duplex;
  readonly address: string;
  /** False once the stream ends or fails, or the client is detached. */
  readonly open: boolean;
  readonly transaction: TransactionState;
  readonly replies: ReplyCount;
  /** Why a command cannot take the fast path here now; undefined if it can. */
  fallbackReason(): FallbackReason | undefined;
  /** Whether the host does everything itself: nothing may be held. */
  readonly isLeftToHost: boolean;
  /** Whether pending bytes may be written now; if not, the connection has ended. */
  mayWrite(queuedAhead?: number): boolean;
  readonly reader: Pick<ReplyReader, 'isBusy'>;
  /**
   * Compares the queue with what was written, before something is put behind it.
   *
   * @param queuedAhead - commands of the host's present write that are queued already.
   */
  checkQueue(before: 'entry' | 'write', queuedAhead?: number): boolean;
  failed(error: unknown): void;
}

/**
 * Sends this package's own commands on one connection:
 *
 *     dispatch ─▶ reads.lookUp ─▶ admission ─▶ entry ─▶ reads.send ─▶ enqueue ─▶ queue, batch or backlog
 *
 * Admission may refuse the call; `reads.send` may settle the entry, or enqueue it later. The host's own writes come
 * from `HostWriteHook`.
 */
export class Outgoing implements BatchOwner, Dispatcher {
  readonly client: HostClient;
  readonly options: ResolvedOptions;
  readonly stats: Stats;
  readonly stream: Duplex;
  readonly transaction: TransactionState;
  readonly replies: ReplyCount;
  readonly context: EntryContext;
  readonly batch: Batch;
  readonly gate: InFlightGate;
  readonly admission: Admission | undefined;
  reads: Reads | undefined;
  /** The timer of the option `socketTimeout`, while the client has it. */
  socketTimeout: SocketTimeout | undefined;
  readonly deadlines = new Deadlines();
  #clusterContext: EntryContext | undefined;

  constructor(
    setup: ConnectionSetup,
    readonly connection: OutgoingConnection,
  ) {
    const { client, options, counters, inFlightBound, commandClass, admission } = setup;
    const { stream, transaction, replies } = connection;
    this.client = client;
    this.options = options;
    this.stats = counters;
    this.stream = stream;
    this.transaction = transaction;
    this.replies = replies;
    this.admission = admission;
    this.context = { client, commandClass, settlesInFinally: settlesInFinally(commandClass) };
    this.gate = new InFlightGate(options, inFlightBound, client);
    this.batch = new Batch(this, scheduleFunction(options.schedule));
    this.reads = setup.readsOn(this);
  }

  dispatch(
    variant: CommandVariant,
    args: readonly unknown[],
    routing: ClusterRouting | undefined,
    call: Call | undefined,
    chained: Chained | undefined,
  ): Promise<unknown> {
    const { reads, admission } = this;
    const answer = reads?.lookUp(variant, args, call);
    const refusal = answer === undefined ? admission?.refusalOf(1) : undefined;
    if (refusal !== undefined) return Promise.reject(refusal);
    // Ordering: `formOn` makes the host assume that the script is loaded, so nothing may refuse the command any more.
    const form = variant.script?.formOn(this.stream) ?? variant;
    const context = routing === undefined ? this.context : this.contextIn(routing);
    const select = selectedDatabase(this.client);
    const entry = call?.newEntry?.(form, context, args, select) ?? new CallEntry(form, context, args, select);
    if (chained !== undefined) entry.promise = chained(entry.promise);
    if (reads !== undefined) reads.send(entry, args, call, answer);
    else this.enqueue(entry, this.batch.encode(form, args) ?? entry.encode(), this.deadlineOf(entry, call));
    call?.sent?.(entry);
    return entry.promise;
  }

  /** The deadline of a call: a new one, or the one that it got before, while it waited for a feature's reply. */
  deadlineOf(entry: Entry, call: Call | undefined): Deadline | undefined {
    const ms = call?.timeout ?? commandTimeoutOf(this.client);
    return (entry.deadline as Deadline | undefined) ?? (ms === undefined ? ms : this.deadlines.for(ms));
  }

  /** Ordering: the bytes and the entry are appended in one synchronous step (invariant 1). */
  enqueue(entry: Entry, encoded: Encoded, deadline: Deadline | undefined): void {
    const { client, gate, batch, replies } = this;
    // First: a hook that runs as timers are made may send commands.
    if (client.options.socketTimeout !== undefined) this.#startSocketTimeout();
    if (replies.expectedQueueLength !== undefined) this.connection.checkQueue('entry');
    const { begun } = this.transaction;
    const waits = gate.mustWait(1, begun);
    // Whatever can throw does so before the entry is queued.
    const exact = waits ? entry.exactParts(isGroup(encoded) ? entry.encode() : encoded) : undefined;
    this.stats.commands += 1;
    this.stats.fastCommands += 1;
    if (entry.deadline === undefined) deadline?.add(entry);
    // Before the write: a Connector's stream may answer within it.
    replies.expected += 1;
    replies.lastQueued = entry;
    if (exact !== undefined) {
      client.commandQueue.push(entry);
      gate.holdFast(exact, begun);
    } else if (typeof encoded === 'string' || !isGroup(encoded)) {
      client.commandQueue.push(entry);
      batch.addFast(encoded, entry);
    } else {
      replies.lastQueued = undefined;
      if (!encoded.add(entry as CallEntry)) replies.expected -= 1;
      replies.lastQueued = client.commandQueue.peekAt(-1);
    }
    if (entry.variant.script !== undefined) batch.scriptAdded();
  }

  /**
   * Puts commands into the queue, and their bytes into the batch, in one step.
   * Ordering: nothing comes between its bytes, and nothing between its entries (invariants 1 and 10).
   *
   * @param items - fast entries, and elements that hold commands of the host's.
   * @param inTransaction - whether a transaction was open when they were issued.
   */
  enqueueTogether(items: readonly QueueItem[], encoded: Part[], inTransaction: boolean): void {
    const { client, gate, batch, replies, stats } = this;
    if (client.options.socketTimeout !== undefined) this.#startSocketTimeout();
    if (replies.expectedQueueLength !== undefined) this.connection.checkQueue('entry');
    const waits = gate.mustWait(items.length, inTransaction);
    let fast = 0;
    for (const item of items) {
      if (item instanceof Entry) fast += 1;
      client.commandQueue.push(item);
      replies.lastQueued = item;
    }
    replies.expected += fast;
    stats.commands += items.length;
    stats.fastCommands += fast;
    if (waits) gate.hold(encoded, items.length, fast, inTransaction);
    else batch.addExact(encoded, items.length, fast);
  }

  #startSocketTimeout(): void {
    this.socketTimeout ??= new SocketTimeout(this.client, this.stream);
    this.socketTimeout.sent();
  }

  /**
   * The context of entries that are sent for a Cluster: a rejected entry is handed to the Cluster, once.
   * Ordering: entries are handed over in the order of their calls, because the host rejects them in the order in which
   * they were sent: one at a time after an error reply, the whole queue when the connection is lost.
   */
  contextIn(routing: ClusterRouting): EntryContext {
    this.#clusterContext ??= { ...this.context, redirect: (command) => routing.redirect(this.client, command) };
    return this.#clusterContext;
  }
}

function isGroup(encoded: Encoded): encoded is Group {
  return typeof encoded === 'object' && !Array.isArray(encoded);
}
