import { Connection } from './connection.js';
import { CODES, warnOnce } from './errors.js';
import {
  type HostClient,
  type HostCommandClass,
  isAutoPipelining,
  isDebugging,
  makeOptionsFast,
  probeInternals,
} from './host.js';
import { type HotClient, hotMethods } from './hot-path.js';
import type { ResolvedOptions } from './options.js';
import { type ScheduleFunction, scheduleFunction } from './scheduler.js';
import { type CoalescerStats, Stats } from './stats.js';

/** What a coalesced client has beside its own. */
export interface Coalesced {
  /** The handle on its coalescing. */
  readonly coalescer: Coalescer;
}

/** On a coalesced client, whichever copy of this package did it. */
const MARK = Symbol.for('ioredis-coalesce.coalescer');

interface Marked {
  [MARK]?: Coalescer;
}

/** The prototype layers, one for each class of clients. */
const layers = new WeakMap<object, object>();

/**
 * A client's coalescing: its options and counters, and the way back.
 *
 * It reaches the client through a layer between the object and its class: `client → layer → Redis.prototype`. The
 * layer holds the hot methods and `duplicate`, so that a client has one own property more, and its class none.
 */
export class Coalescer implements HotClient {
  /** The options in force, defaults filled in; frozen. */
  readonly options: ResolvedOptions;
  /** @internal */
  readonly client: HostClient;
  /** @internal */
  readonly commandClass: HostCommandClass | undefined;
  /** @internal */
  connection: Connection | undefined;
  readonly #stats = new Stats();
  readonly #schedule: ScheduleFunction;

  /** @internal */
  static attach(client: HostClient, options: ResolvedOptions): void {
    if ((client as Marked)[MARK] !== undefined) return;
    const coalescer = new Coalescer(client, options);
    const value = { value: coalescer, configurable: true };
    Object.defineProperty(client, MARK, value);
    Object.setPrototypeOf(client, layerFor(Object.getPrototypeOf(client)));
    client.on('connect', coalescer.#onConnect);
    if (client.status !== 'connecting') coalescer.#connected(false);
    if (isAutoPipelining(client)) {
      warnOnce(
        CODES.AUTO_PIPELINING,
        'ioredis-coalesce: enableAutoPipelining is on, so commands queue in the client and are not coalesced; ' +
          'coalescing makes the option needless, leave it off',
      );
    }
  }

  private constructor(client: HostClient, options: ResolvedOptions) {
    this.client = client;
    this.options = options;
    this.#schedule = scheduleFunction(options.schedule);
    this.commandClass = options.hotPath ? hotCommandClass(client) : undefined;
  }

  /** Counters since `coalesce()`; a copy, cheap enough to take every second. */
  stats(): CoalescerStats {
    return this.#stats.snapshot(this.client.commandQueue.length, this.connection?.backlog.commands ?? 0);
  }

  /** Sends the open batch now instead of at its scheduled flush. */
  flush(): void {
    this.connection?.flush();
  }

  /**
   * Makes the client plain again, at any time. What waits is sent, what is in flight settles. `coalesce()` may be
   * called on it again.
   */
  detach(): void {
    const { client } = this;
    if ((client as Marked)[MARK] !== this) return;
    client.removeListener('connect', this.#onConnect);
    this.connection?.detach();
    this.connection = undefined;
    Reflect.deleteProperty(client, MARK);
    const layer = Object.getPrototypeOf(client) as object;
    const parent = Object.getPrototypeOf(layer) as object;
    // Someone may have put another prototype in front; the layer finds no mark then and passes everything on.
    if (layers.get(parent) === layer) Object.setPrototypeOf(client, parent);
  }

  /** @internal */
  fellThrough(): void {}

  readonly #onConnect = (): void => this.#connected(true);

  /**
   * Host: the stream has its `data` listener by now, and nothing was received yet when `connect` is emitted. A stream
   * that was met before is left alone; one that is gone already had no use.
   */
  #connected(fresh: boolean): void {
    const { stream } = this.client;
    if (stream === undefined || stream.destroyed || stream === this.connection?.stream) return;
    if (stream.listenerCount('data') === 0) return;
    this.connection?.detach();
    this.connection = new Connection(
      this.client,
      stream,
      this.options,
      this.#schedule,
      this.#stats,
      this.commandClass,
      fresh,
    );
    if (this.commandClass !== undefined && this.connection.reader === undefined) {
      warnCorkOnly("the stream's data listener cannot be told from others");
    }
  }
}

/** The host's `Command` class, if its internals are as the hot path expects them. */
function hotCommandClass(client: HostClient): HostCommandClass | undefined {
  if (isDebugging()) return undefined;
  makeOptionsFast(client);
  const probed = probeInternals(client);
  if ('commandClass' in probed) return probed.commandClass;
  warnCorkOnly(`${probed.missing} is missing`);
  return undefined;
}

function warnCorkOnly(why: string): void {
  warnOnce(
    CODES.CORK_ONLY,
    `ioredis-coalesce: the client's internals are not as expected (${why}), so its commands are corked but not ` +
      'encoded by the hot path',
  );
}

function layerFor(parent: object): object {
  let layer = layers.get(parent);
  if (layer === undefined) {
    layer = createLayer(parent);
    layers.set(parent, layer);
  }
  return layer;
}

function createLayer(parent: object): object {
  const layer = Object.create(parent) as object;
  Object.defineProperties(layer, {
    coalescer: {
      get(this: Marked) {
        return this[MARK];
      },
      configurable: true,
    },
    duplicate: {
      value(this: HostClient & Marked, ...args: unknown[]) {
        const copy = (parent as { duplicate(...args: unknown[]): HostClient }).duplicate.apply(this, args);
        const coalescer = this[MARK];
        // A monitor answers nothing but its own lines; `monitor()` makes it through here.
        if (coalescer !== undefined && !(args[0] as { monitor?: unknown } | undefined)?.monitor) {
          Coalescer.attach(copy, coalescer.options);
        }
        return copy;
      },
      writable: true,
      configurable: true,
    },
  });
  const find = (receiver: unknown): HotClient | undefined => {
    const coalescer = (receiver as Marked | undefined)?.[MARK];
    return coalescer !== undefined && coalescer.client === receiver ? coalescer : undefined;
  };
  return Object.assign(layer, hotMethods(parent, find));
}
