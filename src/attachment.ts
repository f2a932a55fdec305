import type { Coalescer } from './coalescer.js';
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

/** On a coalesced client, whichever copy of this package did it. */
const MARK = Symbol.for('ioredis-coalesce.coalescer');

interface Marked {
  [MARK]?: Attachment;
}

/** The prototype layers, one for each class of clients. */
const layers = new WeakMap<object, object>();

/**
 * What `coalesce()` attaches to a client: its options, counters and current connection, and the way back.
 *
 * It reaches the client through a layer between the object and its class: `client → layer → Redis.prototype`. The
 * layer holds the hot methods and `duplicate`, so that a client has one own property more, and its class none.
 */
export class Attachment implements Coalescer, HotClient {
  readonly options: ResolvedOptions;
  readonly client: HostClient;
  readonly commandClass: HostCommandClass | undefined;
  connection: Connection | undefined;
  readonly counters = new Stats();
  readonly #schedule: ScheduleFunction;

  static attach(client: HostClient, options: ResolvedOptions): void {
    if ((client as Marked)[MARK] !== undefined) return;
    const attachment = new Attachment(client, options);
    Object.defineProperty(client, MARK, { value: attachment, configurable: true });
    Object.setPrototypeOf(client, layerFor(Object.getPrototypeOf(client)));
    client.on('connect', attachment.#onConnect);
    if (client.status !== 'connecting') attachment.#connected(false);
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

  stats(): CoalescerStats {
    return this.counters.snapshot(this.client.commandQueue.length, this.connection?.backlog.commands ?? 0);
  }

  flush(): void {
    this.connection?.flush();
  }

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
      this.counters,
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
        const attachment = this[MARK];
        // A monitor answers nothing but its own lines; `monitor()` makes it through here.
        if (attachment !== undefined && !(args[0] as { monitor?: unknown } | undefined)?.monitor) {
          Attachment.attach(copy, attachment.options);
        }
        return copy;
      },
      writable: true,
      configurable: true,
    },
  });
  const find = (receiver: unknown): HotClient | undefined => {
    const attachment = (receiver as Marked | undefined)?.[MARK];
    return attachment !== undefined && attachment.client === receiver ? attachment : undefined;
  };
  return Object.assign(layer, hotMethods(parent, find));
}
