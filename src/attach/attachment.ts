import { inspect } from 'node:util';
import { Predictor } from '../cache/prefetch/prediction.js';
import type { ReadCache } from '../cache/read-cache.js';
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

/** The attachment of a client that has a connection of its own; it may be a node of a Cluster. */
interface Member {
  readonly client: HostClient;
  readonly connection: Connection | undefined;
}

/** What the nodes of a Cluster share; any other client has its own. */
export interface NodesShare {
  readonly counters: Stats;
  readonly inFlightBound: InFlightBound;
  /** Commands that `maxPending` has let through, see `PendingBound`. */
  readonly accepted: WeakSet<object>;
  readonly predictor: Predictor | undefined;
  /** The Cluster: it has the `keyPrefix`, its nodes do not. */
  readonly client: HasOptions;
}

/** The attachment of a client or a Cluster, which has it under `MARK`: its handle, and what its methods ask. */
export abstract class Attachment<Client extends HasOptions = HasOptions> implements Coalescer {
  readonly counters: Stats;
  /** One for a whole Cluster: it makes a new node in the place of one that has lost its connection. */
  readonly inFlightBound: InFlightBound;
  readonly commandClass: HostCommandClass;
  /** The function of the host that was another one when they were last compared, such as `command.toWritable`. */
  #replaced: string | undefined;
  /** What was learned stays with the client, or with a Cluster. */
  readonly predictor: Predictor | undefined;
  /** The attachment itself, or those of a Cluster's nodes. */
  protected abstract readonly members: readonly Member[];
  /** The client itself or the nodes of a Cluster, those that have the cork among them. */
  protected abstract readonly clients: readonly HostClient[];
  /** Coalesces a plain copy that the host's `duplicate(...args)` made. */
  protected abstract coalesceCopy(copy: object, args: readonly unknown[]): void;
  abstract outgoingFor(command: FastCommand, key: unknown, mayBeSeen?: boolean): Outgoing | FallbackReason;
  /** Undoes what the subclass has done to the client. */
  protected abstract leave(): void;

  /** @param patience - connections in a row that may be lost without a reply, see `InFlightBound`. */
  constructor(
    readonly client: Client,
    readonly options: ResolvedOptions,
    readonly copy: HostCopy,
    patience: number,
    /** The Cluster whose node the client is. */
    readonly cluster?: NodesShare,
  ) {
    this.counters = cluster?.counters ?? new Stats();
    this.inFlightBound = cluster?.inFlightBound ?? new InFlightBound(options.maxInFlight, patience);
    this.commandClass = copy.commandClass;
    makeFirstOptionsFast(client);
    const { cache } = options;
    if (cache !== false && cache.prefetch) {
      this.predictor = cluster?.predictor ?? new Predictor((command, key) => this.#cacheFor(command, key));
    }
  }

  /**
   * Why no command can take the fast path, if others have replaced what of the host it stands in for. Looked at by the
   * first command of a batch, or of the calls that wait for a reply from memory.
   */
  protected replacedReason(outgoing?: Outgoing): 'patched' | undefined {
    if (outgoing === undefined || (outgoing.batch.commands === 0 && !outgoing.reads?.waits)) {
      const replaced = this.copy.changed();
      if (replaced !== this.#replaced) this.#warnOf(replaced);
    }
    return this.#replaced === undefined ? undefined : 'patched';
  }

  #warnOf(replaced: string | undefined): void {
    this.#replaced = replaced;
    if (replaced === undefined) return;
    warnOnce(
      CODES.REPLACED,
      `ioredis-coalesce: other code has replaced ${replaced} of a coalesced client, so all commands are left to the ` +
        'client until it is put back, still in batches',
    );
  }

  stats(): CoalescerStats {
    const sum = (figure: (member: Member) => number | undefined) =>
      this.members.reduce((total, member) => total + (figure(member) ?? 0), 0);
    const entries = sum(({ connection }) => cacheOf(connection)?.store.entries);
    const bytes = sum(({ connection }) => cacheOf(connection)?.store.bytes);
    const isCorked = this.clients.some(corkOf) && !this.members.some(({ connection }) => connection);
    return this.counters.snapshot(
      isCorked ? 'cork' : 'fast',
      sum(({ client }) => client.commandQueue.length),
      sum(({ connection }) => connection?.outgoing.gate.waiting),
      this.options.cache ? { entries, bytes } : undefined,
    );
  }

  get cache(): ClientCache | undefined {
    const clear = () => {
      for (const { connection } of this.members) cacheOf(connection)?.store.clear();
    };
    return this.options.cache ? { clear, forms: () => this.predictor?.forms.learned() ?? [] } : undefined;
  }

  /** Predicted reads pass no layer, and a client whose commands are published may have a cache. */
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

  /** Begins: called when all that the methods of the overlay need is there. */
  protected enter(): void {
    const { client } = this;
    Object.defineProperty(client, MARK, { value: this, configurable: true });
    giveHandle(client, this);
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

  /** The client keeps the handle: its options and last counters can be read, and `coalesce()` finds the options. */
  detach(): void {
    const { client } = this;
    if (!this.enabled) return;
    Reflect.deleteProperty(client, MARK);
    removeOverlay(client);
    this.leave();
  }

  attachCopy(copy: object, args: readonly unknown[]): void {
    // A copy of the drop-in class is coalesced already.
    if ('coalescer' in copy && !releaseProvisional(copy)) return;
    this.coalesceCopy(copy, args);
  }

  /** Shows neither the client nor the Cluster: their options may hold a password, and their queues hold arguments. */
  toJSON(): object {
    return { options: this.options, stats: this.stats() };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}

/** The attachment of `client`, if it is coalesced, by this copy of the package or another one. */
export function coalescerOf(client: object): Coalescer | undefined {
  const handle = (client as { [MARK]?: Coalescer })[MARK] ?? ownHandle(client);
  return handle?.enabled ? handle : undefined;
}

/**
 * Clients that `register` has coalesced, without being asked by their code, which may have another copy of this
 * package: in a bundle, or of another version.
 */
const provisional = processWide('provisional', () => new WeakSet<object>());

export function markProvisional(client: object): void {
  provisional.add(client);
}

/** Code asks for a client's options itself: makes one that `register` has coalesced plain again; false for others. */
export function releaseProvisional(client: object): boolean {
  if (!provisional.delete(client)) return false;
  coalescerOf(client)?.detach();
  return true;
}

// ---- Clients that stay plain ----

/**
 * Gives a client that stays plain its handle, unless it has one: code that uses the handle still works, and sees that
 * nothing was coalesced.
 */
export function addIdleHandle(client: object, options: ResolvedOptions): void {
  if ((client as Partial<Coalesced>).coalescer !== undefined) return;
  giveHandle(client, {
    enabled: false,
    options,
    cache: undefined,
    stats: () => new Stats().snapshot('plain'),
    withOptions: (call) => viewOf(client, call),
    flush() {},
    detach() {},
  });
}

/** Gives a client its handle, as an own property. A frozen client gets none. */
export function giveHandle(client: object, handle: Coalescer): void {
  Reflect.defineProperty(client, 'coalescer', { value: handle, configurable: true });
}

function ownHandle(client: object): Coalescer | undefined {
  return Object.getOwnPropertyDescriptor(client, 'coalescer')?.value as Coalescer | undefined;
}

/** The options that a plain client had before `detach()`; the defaults if no copy of this package has coalesced it. */
export function lastOptions(client: object): ResolvedOptions {
  const own = ownHandle(client);
  return own?.enabled === false ? own.options : DEFAULT_OPTIONS;
}

function cacheOf(connection: Connection | undefined): ReadCache | undefined {
  return (connection?.outgoing.reads as ReadFeatures | undefined)?.incoming;
}
