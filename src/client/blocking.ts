import type { Connection } from '../connection/connection.js';
import { CODES, warnOnce } from '../errors.js';
import type { Coalesced } from '../handle.js';
import {
  CONNECTION_CLOSED,
  hasUnanswered,
  isUnanswered,
  makeLike,
  maySendElsewhere,
  neverSettle,
  startTimeouts,
  whenLeft,
} from '../host/blocking.js';
import { commandMadeBy, isGenuineMethod } from '../host/probe.js';
import { selectedDatabase } from '../host/state.js';
import type { AnyFunction, HostClient, HostCommand } from '../host/types.js';
import { nextTick, setTimeout } from '../util/clock.js';
import { callHost, type HotRoute, type MethodForm, methodsNamed } from './hot-path.js';

/** A blocking command from when it is issued until it is settled. */
interface BlockedCall {
  readonly command: HostCommand;
  /** The database that was selected when it was issued. */
  readonly db: number;
  /** A Cluster's node is to serve it although its slot is not the node's yet. */
  readonly asking: boolean;
  /** Until it has been answered: the PING behind what was issued before it, or the SELECT on its own connection. */
  earlier: HostCommand | undefined;
}

function noop(): void {}

export function sendOn(client: HostClient, command: HostCommand, asking: boolean): unknown {
  if (asking) client.asking().catch(noop);
  return client.sendCommand(command);
}

/**
 * The option `blocking` of one client, or of one node of a Cluster: connections of their own for blocking commands.
 *
 *     issued ──▶ waiting, in order ──▶ busy, on a connection ──▶ settled
 *                 │ the first one, when what was issued before
 *                 │ it is answered and a connection is free
 *
 * A connection is a client made by `duplicate()`, so it connects, retries and sends again by the host's own rules.
 */
export class BlockingConnections {
  #waiting: BlockedCall[] = [];
  /** With the call that each is busy with; undefined for an idle one. */
  readonly #connections = new Map<HostClient, BlockedCall | undefined>();
  #open = true;

  constructor(
    readonly client: HostClient,
    readonly connections: number,
    /** The client's own. */
    readonly connection: () => Connection | undefined,
  ) {
    client.on('end', this.#close);
    client.on('ready', this.#onReady);
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Sends a blocking command on a connection of its own, unless it has to stay on the client's. */
  send(command: HostCommand, asking = false): unknown {
    const { client } = this;
    // Not `open`: on a client in use whose first command this is, all others would wait behind it.
    const isInTransaction = this.connection()?.transaction.begun === true;
    if (!this.#open || isInTransaction || !maySendElsewhere(client)) return sendOn(client, command, asking);
    // Host: the first command connects.
    if (client.status === 'wait') client.connect().catch(noop);
    const call: BlockedCall = { command, db: selectedDatabase(client), asking, earlier: undefined };
    startTimeouts(client, command);
    whenLeft(command, () => this.#left(call));
    this.#waiting.push(call);
    this.#awaitEarlier(call);
    this.#next();
    return command.promise;
  }

  /** Host: a client that is disconnected between two connections emits no `end`. */
  disconnected(): void {
    if (this.client.status === 'reconnecting') this.#close();
  }

  /** The client becomes plain. Waiting commands go to its own connection, and connections close when they are idle. */
  detach(): void {
    this.#open = false;
    this.#closeIdle();
    for (const { command, asking } of this.#waiting.splice(0)) sendOn(this.client, command, asking);
    this.#stopListening();
  }

  /**
   * Ordering: two sockets are not ordered. So what was issued before on the client's connection must have been answered,
   * or failed, before the blocking command is sent on another one.
   */
  #awaitEarlier(call: BlockedCall): void {
    if (!hasUnanswered(this.client)) return;
    const ping = makeLike(call.command, 'ping');
    call.earlier = ping;
    const answered = () => {
      call.earlier = undefined;
      this.#next();
    };
    ping.promise.then(answered, answered);
    this.client.sendCommand(ping);
  }

  /** Host: without `autoResendUnfulfilledCommands` a lost connection leaves what was issued before open, and the PING. */
  readonly #onReady = (): void => {
    for (const call of this.#waiting) {
      if (call.earlier !== undefined && !isUnanswered(this.client, call.earlier)) call.earlier = undefined;
    }
    this.#next();
  };

  #next(): void {
    for (let call = this.#waiting[0]; call !== undefined && call.earlier === undefined; call = this.#waiting[0]) {
      const copy = this.#free(call.db);
      if (copy === undefined) return;
      this.#waiting.shift();
      this.#connections.set(copy, call);
      if (selectedDatabase(copy) === call.db) sendOn(copy, call.command, call.asking);
      else this.#sendInDatabase(copy, call);
    }
  }

  /** Host: a client counts a database as selected that Redis has refused. Then only its own connection has the right one. */
  #sendInDatabase(copy: HostClient, call: BlockedCall): void {
    const select = makeLike(call.command, 'select', call.db);
    call.earlier = select;
    const answered = (error?: Error) => {
      // It has been settled meanwhile.
      if (this.#connections.get(copy) !== call) return;
      call.earlier = undefined;
      if (error === undefined) sendOn(copy, call.command, call.asking);
      else if (error.name !== 'ReplyError') call.command.reject(error);
      else {
        this.#connections.delete(copy);
        copy.disconnect();
        sendOn(this.client, call.command, call.asking);
        this.#next();
      }
    };
    select.promise.then(() => answered(), answered);
    copy.sendCommand(select);
  }

  /** A free connection, one that has this database selected if there is one. */
  #free(db: number): HostClient | undefined {
    const idle = [...this.#connections].flatMap(([copy, call]) => (call === undefined ? [copy] : []));
    const found = idle.find((copy) => selectedDatabase(copy) === db) ?? idle[0];
    return found ?? (this.size < this.connections ? this.#connect() : undefined);
  }

  #connect(): HostClient {
    const { client } = this;
    const copy = client.duplicate({ lazyConnect: true, enableOfflineQueue: true }) as HostClient;
    (copy as Partial<Coalesced>).coalescer?.detach();
    copy.on('error', (error: unknown) => {
      // Else the client's own connection has the same error, and reports it.
      if (client.status === 'ready') client.silentEmit('error', error);
    });
    // Host: without `autoResendUnfulfilledCommands` a lost connection leaves its command open.
    copy.on('ready', () => {
      const call = this.#connections.get(copy);
      if (call === undefined || isUnanswered(copy, call.earlier ?? call.command)) return;
      this.#release(copy, call);
      this.#next();
    });
    copy.on('end', () => {
      if (this.#connections.get(copy) === undefined) this.#connections.delete(copy);
    });
    return copy;
  }

  /** A command has been settled, or handed back to its Cluster. */
  #left(call: BlockedCall): void {
    this.connection()?.cache?.settledElsewhere(call.command);
    const place = this.#waiting.indexOf(call);
    if (place >= 0) this.#waiting.splice(place, 1);
    for (const [copy, its] of this.#connections) if (its === call) this.#release(copy, call);
    // Later: this may run within the host's decoder.
    nextTick(() => this.#next());
  }

  #release(copy: HostClient, { command, earlier }: BlockedCall): void {
    const unanswered = isUnanswered(copy, earlier ?? command);
    // A timeout has settled it. Redis is not to take an element for it later.
    if (unanswered) neverSettle(command);
    if (unanswered || !this.#open || copy.status === 'end') {
      this.#connections.delete(copy);
      nextTick(() => copy.disconnect());
    } else this.#connections.set(copy, undefined);
    this.#stopListening();
  }

  #closeIdle(): void {
    for (const [copy, call] of this.#connections) {
      if (call !== undefined) continue;
      this.#connections.delete(copy);
      copy.disconnect();
    }
  }

  /** Host: emitted after `quit()`, `disconnect()`, and when `retryStrategy` has given up. */
  readonly #close = (): void => {
    this.#closeIdle();
    for (const [copy, call] of [...this.#connections]) {
      // Host: then it leaves its command open.
      const isBetween = copy.status === 'reconnecting';
      copy.disconnect();
      if (isBetween) call?.command.reject(new Error(CONNECTION_CLOSED));
    }
    for (const { command } of [...this.#waiting]) command.reject(new Error(CONNECTION_CLOSED));
  };

  /** After `detach()` the client's end still ends what is blocked. */
  #stopListening(): void {
    if (!this.#open && this.size === 0) this.client.removeListener('end', this.#close);
    if (!this.#open) this.client.removeListener('ready', this.#onReady);
  }
}

/** Commands that keep their connection waiting for what other clients do; those of streams with the argument `BLOCK`. */
const WAITING = 'blpop brpop brpoplpush blmove blmpop bzpopmin bzpopmax bzmpop xread xreadgroup'.split(' ');
/** The last two keep it waiting for the effect of its own writes. */
const BLOCKING_COMMANDS: readonly string[] = [...WAITING, 'wait', 'waitaof'];

/** Whether a command keeps its connection waiting: `BLOCK` may be the name of a stream, too. */
export function isBlocking({ name, args }: Pick<HostCommand, 'name' | 'args'>): boolean {
  const lowerCase = name.toLowerCase();
  if (!lowerCase.startsWith('xread')) return BLOCKING_COMMANDS.includes(lowerCase);
  const words = args.map((arg) => String(arg).toLowerCase());
  // After GROUP come its name and the consumer's.
  const first = words[0] === 'group' ? 3 : 0;
  return words.slice(first, words.indexOf('streams', first)).includes('block');
}

/** The methods of blocking commands, for the overlay. Later it is checked whether other commands wait behind them. */
export function blockingMethods(parent: MethodForm['parent']): MethodForm[] {
  return BLOCKING_COMMANDS.flatMap((name) =>
    methodsNamed(name).map(([methodName]) => ({
      methodName,
      parent,
      sendElsewhere: (route, method, args) => sendElsewhere(route, name, method, args),
    })),
  );
}

/**
 * Sends a blocking command on a connection of its own; undefined if the host's method has to send it.
 *
 * @param args - all arguments of the method.
 * @param leading - how many of them are in front of the command's.
 */
export function sendElsewhere(
  route: HotRoute,
  name: string,
  method: AnyFunction,
  args: readonly unknown[],
  leading = 0,
): readonly [result: unknown] | undefined {
  const { blocking, client } = route;
  // With auto-pipelining commands that were issued before may not have left the client's pipeline.
  const mayLeave = blocking !== undefined && !client.options.enableAutoPipelining && isGenuineMethod(method);
  if (mayLeave && WAITING.includes(name)) {
    const command = commandMadeBy(client.options, (receiver) => callHost(method, receiver, args, leading));
    // Its transformer has thrown. Host: it sends the command nevertheless, and cannot settle it.
    if (command.resolve === undefined) return [command.promise];
    return [isBlocking(command) ? blocking.send(command as HostCommand) : client.sendCommand(command)];
  }
  if (BLOCKING_COMMANDS.includes(name)) watchBlocking(route);
  return undefined;
}

/** Grace period before the warning, in milliseconds. */
const PATIENCE = 1_000;

const watched = new WeakSet<HotRoute>();

/** Warns once per name if other commands still wait behind a blocking one after the grace period. */
function watchBlocking(route: HotRoute): void {
  if (watched.has(route)) return;
  watched.add(route);
  setTimeout(() => {
    watched.delete(route);
    const name = route.blockedBy;
    if (name === undefined) return;
    warnOnce(
      CODES.BLOCKING,
      `ioredis-coalesce: commands wait behind "${name}" on a connection that they share with it; give blocking ` +
        'commands connections of their own, by the option blocking: { connections: 8 } or by client.duplicate()',
    );
  }, PATIENCE).unref();
}
