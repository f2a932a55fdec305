import { inspect } from 'node:util';
import { Predictor } from '../cache/prefetch/prediction.js';
import type { ReadCache } from '../cache/read-cache.js';
import { PendingBound } from '../calls/pending-bound.js';
import { viewOf } from '../calls/view.js';
import type { FastCommand } from '../commands/fast-commands.js';
import { MARK, type Marked } from '../core/call-target.js';
import type { Connection } from '../core/connection.js';
import type { Outgoing } from '../core/outgoing.js';
import { corkOf } from '../cork/cork.js';
import { reports } from '../environment.js';
import { CODES, warnOnce } from '../errors.js';
import type { ClientCache, Coalesced, Coalescer } from '../handle.js';
import type { HostCopy } from '../host/recognize.js';
import { makeFirstOptionsFast } from '../host/state.js';
import type { HasOptions, HostClient, HostCommandClass } from '../host/types.js';
import { type CallOptions, DEFAULT_OPTIONS, type ResolvedOptions } from '../options.js';
import { type CoalescerStats, type FallbackReason, Stats } from '../stats.js';
import { InFlightBound } from '../util/in-flight-bound.js';
import { processWide } from '../util/process-wide.js';
import { addOverlay, removeOverlay } from './overlay.js';
import type { ReadFeatures } from './read-features.js';
import { report } from './report.js';

/** The state that the nodes of a Cluster share; any other client has its own. */
export interface SharedByNodes {
  readonly counters: Stats;
  readonly inFlightBound: InFlightBound;
  /** Commands that `maxPending` has let through, see `PendingBound`. */
  readonly accepted: WeakSet<object>;
  readonly predictor: Predictor | undefined;
  /** The Cluster: it has the `keyPrefix`, its nodes do not. */
  readonly client: HasOptions;
}

/** Coalesces the plain copy that the host's `duplicate(...args)` has made of a client with these options. */
export type CoalesceCopy = (copy: object, args: readonly unknown[], options: ResolvedOptions) => void;

/** The attachment of a client or Cluster, stored under `MARK`: its handle, and the target of its methods' calls. */
export abstract class Attachment<Client extends HasOptions = HasOptions> implements Coalescer {
  readonly counters: Stats;
  /** One per Cluster, because a Cluster replaces a node that lost its connection with a new one. */
  readonly inFlightBound: InFlightBound;
  readonly commandClass: HostCommandClass;
  /** The host function that the last comparison found replaced, such as `command.toWritable`. */
  #replaced: string | undefined;
  /** One per client or Cluster, so that a new connection keeps what was learned. */
  readonly predictor: Predictor | undefined;
  readonly admission: PendingBound | undefined;
  /** A Cluster has none of its own. */
  connection: Connection | undefined;
  /** The attachment itself, or those of a Cluster's nodes. */
  protected abstract readonly members: readonly Attachment<HostClient>[];
  /** The client itself, or all nodes of a Cluster, corked ones included. */
  protected abstract readonly clients: readonly HostClient[];
  abstract outgoingFor(command: FastCommand, key: unknown, mayBeSeen?: boolean): Outgoing | FallbackReason;
  /** Undoes the subclass's changes to the client. */
  protected abstract uninstall(): void;

  /** @param patience - connections in a row that may be lost without a reply, see `InFlightBound`. */
  constructor(
    readonly client: Client,
    readonly options: ResolvedOptions,
    readonly copy: HostCopy,
    patience: number,
    /** Undefined for a node, which its Cluster duplicates in order to refresh its slots. */
    readonly coalesceCopy: CoalesceCopy | undefined,
    /** The Cluster, if the client is a node. */
    readonly cluster?: SharedByNodes,
  ) {
    this.counters = cluster?.counters ?? new Stats();
    this.inFlightBound = cluster?.inFlightBound ?? new InFlightBound(options.maxInFlight, patience);
    this.commandClass = copy.commandClass;
    makeFirstOptionsFast(client);
    const { cache, maxPending } = options;
    if (maxPending !== undefined) {
      this.admission = new PendingBound(client, maxPending, this.counters, () => this.connection, cluster?.accepted);
    }
    if (cache !== false && cache.prefetch) {
      this.predictor = cluster?.predictor ?? new Predictor((command, key) => this.#cacheFor(command, key));
    }
  }

  /**
   * Why no command can take the fast path: other code has replaced a host function that it reimplements. Checked for
   * the first command of a batch, or of the calls that wait for a reply from memory.
   */
  protected replacedReason(outgoing?: Outgoing): 'patched' | undefined {
    if (outgoing === undefined || (outgoing.batch.commands === 0 && !outgoing.reads?.waits)) {
      const replaced = this.copy.changed();
      if (replaced !== this.#replaced) this.#noteReplaced(replaced);
    }
    return this.#replaced === undefined ? undefined : 'patched';
  }

  #noteReplaced(replaced: string | undefined): void {
    this.#replaced = replaced;
    if (replaced === undefined) return;
    warnOnce(
      CODES.REPLACED,
      `ioredis-coalesce: other code has replaced ${replaced} of a coalesced client, so all commands are left to the ` +
        'client until it is put back, still in batches',
    );
  }

  stats(): CoalescerStats {
    const sum = (figure: (member: Attachment<HostClient>) => number | undefined) =>
      this.members.reduce((total, member) => total + (figure(member) ?? 0), 0);
    const entries = sum(({ connection }) => cacheOf(connection)?.store.entries);
    const bytes = sum(({ connection }) => cacheOf(connection)?.store.bytes);
    const isCorked = this.clients.some(corkOf) && !this.members.some(({ connection }) => connection);
    const attachedAs = isCorked ? 'cork' : 'fast';
    return this.counters.snapshot(
      this.enabled ? attachedAs : 'plain',
      sum(({ client }) => client.commandQueue.length),
      sum(({ connection }) => connection?.outgoing.gate.waiting),
      this.options.cache ? { entries, bytes } : undefined,
    );
  }

  get cache(): ClientCache | undefined {
    const clear = () => {
      for (const { connection } of this.members) cacheOf(connection)?.store.clear();
    };
    return this.options.cache ? { clear, patterns: () => this.predictor?.patterns.learned() ?? [] } : undefined;
  }

  /** Predicted reads pass no layers, and a client whose commands are published may have a cache. */
  #cacheFor(command: FastCommand, key: string): ReadCache | undefined {
    const found = this.outgoingFor(command, key, true);
    return typeof found === 'string' ? undefined : (found.reads as ReadFeatures | undefined)?.incoming;
  }

  flush(): void {
    for (const { connection } of this.members) connection?.outgoing.batch.flush('manual');
    for (const client of this.clients) corkOf(client)?.flush();
  }

  get enabled(): boolean {
    return (this.client as Marked)[MARK] === (this as unknown);
  }

  withOptions(options: CallOptions): object {
    return viewOf(this.client, options);
  }

  /** Called as soon as the fields that the overlay's methods use are set. */
  protected install(): void {
    const { client } = this;
    Object.defineProperty(client, MARK, { value: this, configurable: true });
    defineHandle(client, this);
    addOverlay(client, this.options);
    if (this.cluster !== undefined) return;
    if (reports) report(this);
    if (!client.options.enableAutoPipelining) return;
    warnOnce(
      CODES.AUTO_PIPELINING,
      'ioredis-coalesce: enableAutoPipelining is on, so commands queue in the client and are not coalesced; ' +
        'with coalescing the option is redundant; turn it off',
    );
  }

  /** The client keeps the handle, so that users can read its counters and `coalesce()` finds its options. */
  detach(): void {
    const { client } = this;
    if (!this.enabled) return;
    Reflect.deleteProperty(client, MARK);
    removeOverlay(client);
    this.uninstall();
  }

  attachCopy(copy: object, args: readonly unknown[]): void {
    // The constructor of the drop-in class has coalesced its copy.
    if ('coalescer' in copy && !releaseProvisional(copy)) return;
    this.coalesceCopy?.(copy, args, this.options);
  }

  /** Omits the client and the Cluster: their options may contain a password, and their queues contain arguments. */
  toJSON(): object {
    return { options: this.options, stats: this.stats() };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}

/** The attachment of `client`, if this copy of the package or another one has coalesced it. */
export function coalescerOf(client: object): Coalescer | undefined {
  const handle = (client as { [MARK]?: Coalescer })[MARK] ?? ownHandle(client);
  return handle?.enabled ? handle : undefined;
}

/**
 * Clients that `register` has coalesced without a request by their code. That code may use another copy of this
 * package: one in a bundle, or of another version.
 */
const provisional = processWide('provisional', () => new WeakSet<object>());

export function markProvisional(client: object): void {
  provisional.add(client);
}

/** Detaches a client that `register` has coalesced, because its code gives its own options; false for others. */
export function releaseProvisional(client: object): boolean {
  if (!provisional.delete(client)) return false;
  coalescerOf(client)?.detach();
  return true;
}

// ---- Clients that stay plain ----

/**
 * Gives a plain client a handle, unless it has one. Code that uses the handle still works, and can see that the
 * client is not coalesced.
 */
export function addIdleHandle(client: object, options: ResolvedOptions): void {
  if ((client as Partial<Coalesced>).coalescer !== undefined) return;
  defineHandle(client, {
    enabled: false,
    options,
    cache: undefined,
    stats: () => new Stats().snapshot('plain'),
    withOptions: (call) => viewOf(client, call),
    flush() {},
    detach() {},
  });
}

/** Defines the handle as an own property of the client. A frozen client gets none. */
export function defineHandle(client: object, handle: Coalescer): void {
  Reflect.defineProperty(client, 'coalescer', { value: handle, configurable: true });
}

function ownHandle(client: object): Coalescer | undefined {
  return Object.getOwnPropertyDescriptor(client, 'coalescer')?.value as Coalescer | undefined;
}

/** The options of a plain client before `detach()`; the defaults if no copy of this package has coalesced it. */
export function previousOptions(client: object): ResolvedOptions {
  const own = ownHandle(client);
  return own?.enabled === false ? own.options : DEFAULT_OPTIONS;
}

function cacheOf(connection: Connection | undefined): ReadCache | undefined {
  return (connection?.outgoing.reads as ReadFeatures | undefined)?.incoming;
}
