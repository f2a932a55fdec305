import { isBlocking } from '../calls/blocking-warning.js';
import type { CallTarget } from '../calls/call-target.js';
import { Connection, type ConnectionSetup, type Watched } from '../connection/connection.js';
import { InFlightBound } from '../connection/sending/in-flight-gate.js';
import { PendingBound } from '../connection/sending/pending-bound.js';
import { type BatchSchedule, scheduleFunction } from '../connection/sending/schedule-function.js';
import { reports } from '../environment.js';
import { warnAutoPipelining, warnBatchingOnly } from '../errors.js';
import { speaksResp3 } from '../host/cluster.js';
import { CommandMethods } from '../host/command-class.js';
import { commandClassOf } from '../host/probe.js';
import { isDebugging, makeFirstOptionsFast } from '../host/state.js';
import type { HasOptions, HostClient, HostCommandClass } from '../host/types.js';
import {
  type CoalesceSetting,
  DEFAULT_OPTIONS,
  type ResolvedOptions,
  resolveSetting,
  withoutCacheUnless,
} from '../options.js';
import { type FallbackReason, Stats } from '../stats.js';
import { Attachment, addIdleHandle } from './attachment.js';
import { report } from './report.js';

/** What the nodes of a Cluster share. */
export interface NodesShare {
  readonly counters: Stats;
  readonly inFlightBound: InFlightBound;
  readonly schedule: BatchSchedule;
  /** See `PendingBound`. */
  readonly accepted: WeakSet<object>;
  /** The Cluster: it has the `keyPrefix`, its nodes do not. */
  readonly client: HasOptions;
}

/** Everything that `coalesce()` attaches to a client: its options, counters, current connection, and `detach`. */
export class ClientAttachment extends Attachment implements ConnectionSetup, CallTarget {
  connection: Connection | undefined;
  readonly commandClass: HostCommandClass | undefined;
  readonly pendingBound: PendingBound | undefined;
  readonly counters: Stats;
  readonly inFlightBound: InFlightBound;
  readonly schedule: BatchSchedule;
  readonly fast: HostCommandClass | string;
  readonly cachePrefixes: readonly string[] | undefined;
  protected readonly commandMethods: CommandMethods | undefined;

  /** Attaches to a client that is not coalesced yet. */
  constructor(
    readonly client: HostClient,
    readonly options: ResolvedOptions,
    /** The Cluster whose node it is. */
    readonly cluster?: NodesShare,
  ) {
    super();
    this.counters = cluster?.counters ?? new Stats();
    this.inFlightBound = cluster?.inFlightBound ?? new InFlightBound(options.maxInFlight, 1);
    this.schedule = cluster?.schedule ?? scheduleFunction(options.schedule);
    this.fast = client.options.showFriendlyErrorStack
      ? 'the option showFriendlyErrorStack is set'
      : fastCommandClass(client, options);
    const { keyPrefix = '' } = (cluster ?? this).client.options;
    if (options.cache) this.cachePrefixes = options.cache.prefixes?.map((prefix) => `${keyPrefix}${prefix}`);
    this.commandClass = typeof this.fast === 'string' ? undefined : this.fast;
    this.commandMethods = this.commandClass && new CommandMethods(this.commandClass);
    const { maxPending } = options;
    if (maxPending !== undefined) {
      this.pendingBound = new PendingBound(client, maxPending, this.counters, () => this.connection, cluster?.accepted);
    }
    this.enter();
    client.on('connect', this.#onConnect);
    if (client.status !== 'connecting') this.#connected(false);
    if (cluster !== undefined) return;
    if (reports) report(this);
    if (client.options.enableAutoPipelining) warnAutoPipelining();
  }

  protected get members(): readonly [this] {
    return [this];
  }

  protected leave(): void {
    this.client.removeListener('connect', this.#onConnect);
    this.connection?.detach();
    this.connection = undefined;
  }

  protected coalesceCopy(copy: object, args: readonly unknown[]): void {
    // A Cluster duplicates its nodes to ask for its slots. `monitor()` makes its client through `duplicate()`.
    const { monitor, coalesce } = (args[0] ?? {}) as {
      readonly monitor?: unknown;
      readonly coalesce?: CoalesceSetting;
    };
    if (this.cluster !== undefined || monitor) return;
    const options = coalesce === undefined ? this.options : resolveSetting(coalesce, 'option coalesce');
    if (options === false) addIdleHandle(copy, DEFAULT_OPTIONS);
    else new ClientAttachment(copy as HostClient, withoutCacheUnless(speaksResp3(copy as HostClient), options));
  }

  pendingBoundFor(): PendingBound | undefined {
    return this.pendingBound;
  }

  fallbackReason(watchable?: boolean): FallbackReason | undefined {
    const { connection } = this;
    return connection === undefined
      ? 'connection'
      : (connection.connectionFallbackReason(watchable) ?? this.classReason);
  }

  connectionFor(): Connection | FallbackReason {
    const { connection } = this;
    if (connection === undefined) return 'connection';
    return connection.connectionFallbackReason() ?? this.classReason ?? connection;
  }

  watchedFor(reason: FallbackReason): Watched | undefined {
    const { connection, client } = this;
    // Replaced methods of commands have the same reason as layers.
    if (!connection?.canBeWatched(reason) || this.classReason !== undefined) return undefined;
    return { connection, isLayered: reason === 'patched', through: client };
  }

  get blockedBy(): string | undefined {
    const { commandQueue } = this.client;
    const first = commandQueue.peekFront()?.command;
    if (!this.enabled || first === undefined || commandQueue.length === 1) return undefined;
    return isBlocking(first) ? first.name : undefined;
  }

  readonly #onConnect = (): void => this.#connected(true);

  /**
   * Host: when `connect` is emitted, the stream has its `data` listener and nothing was received yet. A stream that
   * already has a connection is left alone, and so is one that has ended, and a monitor's: it gets no replies, only
   * lines that hold the arguments of other clients, of any length.
   *
   * @param fresh - whether nothing was received on the stream yet.
   */
  #connected(fresh: boolean): void {
    const { stream } = this.client;
    if (stream === undefined || stream.destroyed || stream === this.connection?.stream) return;
    if (stream.listenerCount('data') === 0 || this.client.options.monitor) return;
    this.connection?.detach();
    // Host: `emit` goes on to us when a listener of `connect` before ours has detached the client.
    if (!this.enabled) return;
    this.connection = new Connection(this, stream, fresh);
    this.connection.start();
  }
}

/** The host's `Command` class, or why there is no fast path. */
export function fastCommandClass(client: HasOptions, { fastPath }: ResolvedOptions): HostCommandClass | string {
  if (!fastPath) return 'the option fastPath is false';
  if (isDebugging()) return 'DEBUG prints the commands of the client';
  makeFirstOptionsFast(client);
  const commandClass = commandClassOf(client);
  if (commandClass !== undefined) return commandClass;
  const why = 'echo() was replaced, which leads to Command';
  warnBatchingOnly(why);
  return why;
}
