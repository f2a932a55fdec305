/**
 * Whether a client's methods are the host's own, or layers have replaced them. The tests for a Cluster, pipelines and
 * scripts are in `cluster.ts`, `pipeline.ts` and `script.ts`.
 */
import type { Duplex } from 'node:stream';
import type { CommandVariant } from '../commands/fast-commands.js';
import { withoutTransformer } from './command-class.js';
import { isKnown } from './functions.js';
import type { AnyFunction, HostClient, HostCommandClass } from './types.js';

/**
 * The first member that every ioredis-like client or Cluster has and `value` lacks; undefined if it has all of them.
 * Class names are less reliable: they differ among versions, and ioredis 6 shows its clients as `EventEmitter`.
 *
 * Host: a Cluster has no `status` before `connect()`, which tests replace.
 */
export function firstMissingMember(value: object): string | undefined {
  const client = value as Partial<Record<keyof HostClient, unknown>>;
  if (typeof client.sendCommand !== 'function') return 'sendCommand()';
  if (typeof client.on !== 'function') return 'on()';
  if (typeof client.options !== 'object' || client.options === null) return 'options';
  if (typeof client.status !== 'string' && typeof client.isCluster !== 'boolean') return 'status';
  return undefined;
}

/** Host: own methods of both prototypes, of clients and of Clusters. In ioredis 4 `emit` is inherited. */
const OWN_METHODS = ['setStatus', 'sendCommand', 'emit'];

/** The prototype of the host's class, which users may have extended. */
export function hostPrototype(client: object): { setStatus: AnyFunction } | undefined {
  let found: object | undefined;
  for (let object = client; object; object = Object.getPrototypeOf(object) as object) {
    if (OWN_METHODS.every((name) => Object.hasOwn(object, name))) found = object;
  }
  return found as { setStatus: AnyFunction } | undefined;
}

/**
 * The `Command` class behind a client or Cluster; undefined if a method that leads to it was replaced.
 *
 * Host: on ioredis 6 `client.constructor` is EventEmitter and no static leads from a client to its `Command` class, so
 * an unpatched command method makes a command.
 */
export function commandClassOf(client: object): HostCommandClass | undefined {
  const { echo } = Object.getPrototypeOf(client) as Record<string, unknown>;
  if (!isKnown('commander', 'echo', echo)) return undefined;
  let commandClass: HostCommandClass | undefined;
  const sendCommand = (command: object) => {
    commandClass = command.constructor as HostCommandClass;
  };
  echo.call({ options: {}, sendCommand }, '');
  return commandClass;
}

/** Whether a method has the text of those that the host generates for commands. */
export const isCommandMethod = (method: unknown) => isKnown('commander', 'echo', method);

/**
 * Whether a method is the one that the host generates for a command, with this encoding of its reply, or for `call`.
 * Their text is the same, so it is called on a stand-in for a client.
 */
export function isUnpatchedMethod(
  method: AnyFunction,
  command: CommandVariant,
  commandClass: HostCommandClass,
): boolean {
  if (!isCommandMethod(method)) return false;
  const {
    encoding,
    command: { name },
  } = command;
  const receiver = { options: {}, sendCommand: (made: unknown) => made };
  const call = () => method.call(receiver, name) as Partial<Record<'name' | 'replyEncoding', unknown>>;
  const made = withoutTransformer(commandClass, name, call);
  return made.name === name && made.replyEncoding === encoding;
}

/** Whether `sendCommand`, a client's or a Cluster's, is the host's own, not a layer (OpenTelemetry, New Relic, …). */
export const isUnpatchedSendCommand = (method: AnyFunction) =>
  isKnown('client', 'sendCommand', method) || isKnown('cluster', 'sendCommand', method);

/** The method of this name; undefined for an accessor, which user code has defined. It is not called. */
export function methodOf(holder: object, name: string): AnyFunction | undefined {
  let object: object | null = holder;
  while (object !== null && !Object.hasOwn(object, name)) object = Object.getPrototypeOf(object) as object | null;
  const value: unknown = object && Object.getOwnPropertyDescriptor(object, name)?.value;
  return typeof value === 'function' ? (value as AnyFunction) : undefined;
}

/** Sets a property like an assignment, even if prototypes have this name; false if that is not possible. */
export function define(object: object, name: string, value: unknown): boolean {
  const ordinary = { writable: true, configurable: true, enumerable: true };
  return Reflect.defineProperty(object, name, { value, ...(!Object.hasOwn(object, name) && ordinary) });
}

/** Our methods that call a client's own, and functions that return that. */
const passedOn = new WeakMap<AnyFunction, () => AnyFunction>();

export function wrapperOf(ours: AnyFunction, toWhich: () => AnyFunction): AnyFunction {
  passedOn.set(ours, toWhich);
  return ours;
}

/** The method itself, or the client's current one behind one of ours. */
export function unwrapped(method: AnyFunction): AnyFunction {
  return passedOn.get(method)?.() ?? method;
}

/**
 * The `data` listener that the host registered on its connection, if it can be distinguished from other listeners.
 * Host: `DataHandler` is built in the connect handler, and no reference to it is kept.
 */
export function findDataListener(stream: Duplex): AnyFunction | undefined {
  const matching = stream.listeners('data').filter((listener) => isKnown('listeners', 'data', listener));
  return matching.length === 1 ? (matching[0] as AnyFunction) : undefined;
}

/**
 * Whether `value` is a test double for a client in tests: ioredis-mock, a mock of jest, vitest or sinon, a hand-written
 * fake. It is used like a client and has no connection: it has commands, but no `sendCommand`, or one that a mocking
 * library has made. Clients of other packages have a `sendCommand` (node-redis), or neither `quit` nor `disconnect`.
 */
export function isTestDouble(value: object): boolean {
  const { get, set, sendCommand, quit, disconnect } = value as Record<string, unknown>;
  if (isMock(sendCommand) || isMock(get)) return true;
  return [get, set, quit ?? disconnect].every((method) => typeof method === 'function') && sendCommand === undefined;
}

/** Whether a method has the marks of jest and vitest (`_isMockFunction`), sinon, or `node:test` (`mock.calls`). */
export function isMock(method: unknown): boolean {
  if (typeof method !== 'function') return false;
  const { _isMockFunction, isSinonProxy, mock } = method as unknown as Record<string, { calls?: unknown } | true>;
  return _isMockFunction === true || isSinonProxy === true || Array.isArray(Object(mock).calls);
}
