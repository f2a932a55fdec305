import { HOT_COMMANDS, type HotCommand, KEY_POSITIONS } from '../commands/hot-commands.js';
import type { Connection } from '../connection/connection.js';
import type { CommandVariant } from '../connection/entry.js';
import type { ClusterRouting } from '../host/cluster.js';
import { isGenuineMethod } from '../host/probe.js';
import { keyPrefixOf } from '../host/state.js';
import {
  type ArgumentTransformer,
  argumentTransformerOf,
  runTransformer,
  type Transformation,
  withTransformation,
} from '../host/transformers.js';
import type { AnyFunction, HasOptions, HostCommandClass } from '../host/types.js';
import {
  CommandHeads,
  commandHead,
  encodeAssumingAscii,
  encodeExactly,
  isPlainNumber,
  type Part,
} from '../resp/encoder.js';
import type { FallThroughReason, Stats } from '../stats.js';
import { asCallback, type NodeCallback } from '../util/as-callback.js';
import { debugFallThrough } from '../util/debug.js';
import { flatOf } from '../util/flat.js';

/** What the hot methods of a client or Cluster need of its attachment. */
export interface HotRoute {
  readonly client: HasOptions;
  readonly commandClass: HostCommandClass | undefined;
  readonly counters: Stats;
  /** Set for a Cluster: hands it a command that failed on its node. */
  readonly routing: ClusterRouting | undefined;
  /** Why no command can take the hot path now. */
  fallThroughReason(): FallThroughReason | undefined;
  /** The connection of a command with this first key, or why it cannot take the hot path. */
  connectionFor(command: HotCommand, key: unknown): Connection | FallThroughReason;
}

/** Finds the attachment of the object that a method is called on, if it has one. */
export type FindRoute = (receiver: unknown) => HotRoute | undefined;

/** Sends the commands of one name, or leaves them to the host. */
export interface HotSender {
  /** Sends a command, or says why the host must. `method` is the host's, which is called then. */
  send(route: HotRoute, method: AnyFunction, args: unknown[]): Promise<unknown> | FallThroughReason;
  /**
   * Calls the host's method for the command that `send` has just left to it, with all its arguments: `leading` of them
   * are in front of those that `send` was given, as the name of `call(name, …)`.
   */
  leaveToHost(
    route: HotRoute,
    methodName: string,
    reason: FallThroughReason,
    method: AnyFunction,
    receiver: unknown,
    args: unknown[],
    leading?: number,
  ): unknown;
}

/**
 * The hot path: methods for the overlay between a client and its class. Each encodes its command itself if nothing is
 * unusual; otherwise it calls the method that the client would have without us.
 *
 * Own properties of the client — `defineCommand('get')`, `addBuiltinCommand('get')`, a test's stub — hide the overlay
 * by the rules of the language.
 *
 * @param parent - the client's prototype.
 * @param find - finds the attachment of the object that a method is called on, if it has one.
 */
export function hotMethods(parent: object, find: FindRoute): Record<string, AnyFunction> {
  const methods: Record<string, AnyFunction> = {};
  for (const command of HOT_COMMANDS) {
    for (const encoding of ['utf8', null] as const) {
      const name = encoding === null ? `${command.name}Buffer` : command.name;
      if (typeof (parent as Record<string, unknown>)[name] === 'function') {
        methods[name] = hotMethod(name, { command, encoding }, parent as Record<string, AnyFunction>, find);
      }
    }
  }
  return methods;
}

/** @param parent - has the host's own method under this name. */
export function hotMethod(
  methodName: string,
  variant: CommandVariant,
  parent: Record<string, AnyFunction>,
  find: FindRoute,
): AnyFunction {
  const sender = hotSender(variant);
  return function hot(...args) {
    const route = find(this);
    const method = parent[methodName] as AnyFunction;
    if (route === undefined) return method.apply(this, args);
    const promise = sender.send(route, method, args);
    if (typeof promise !== 'string') return promise;
    return sender.leaveToHost(route, methodName, promise, method, this, args);
  };
}

/** A command has fallen through. */
export function countFallThrough(route: HotRoute, methodName: string, reason: FallThroughReason): void {
  route.counters.fellThrough(reason);
  if (debugFallThrough.enabled) debugFallThrough('%s: %s', methodName, reason);
}

export function hotSender(variant: CommandVariant): HotSender {
  const { name } = variant.command;
  const heads = new CommandHeads((count) => commandHead(name, count));
  let genuine: AnyFunction | undefined;

  /** The transformed arguments of the current call. */
  let transformation: Transformation | undefined;
  /**
   * Its arguments, if there were arrays among them, flattened: elements may be getters, which are read once per call.
   * Ordering: set when transformers and getters have run. They are user code, and may call this method or end the
   * connection, so afterwards it is checked again whether the hot path can be taken.
   */
  let flattened: unknown[] | undefined;

  return {
    send(route, method, args) {
      const callback = args.length > 0 ? args[args.length - 1] : undefined;
      if (typeof callback !== 'function') return tryHot(route, method, args);
      const promise = tryHot(route, method, args.slice(0, -1));
      if (typeof promise !== 'string') asCallback(promise, callback as NodeCallback);
      return promise;
    },

    leaveToHost(route, methodName, reason, method, receiver, args, leading = 0) {
      countFallThrough(route, methodName, reason);
      const transformed = transformation;
      const given = flattened === undefined ? args : withFlattened(args, leading, flattened);
      transformation = undefined;
      flattened = undefined;
      if (transformed === undefined) return method.apply(receiver, given);
      // Transformers are user code and may read getters: both run once per call, as in a plain client.
      return withTransformation(route.commandClass as HostCommandClass, name, transformed, () =>
        method.apply(receiver, given),
      );
    },
  };

  function tryHot(route: HotRoute, method: AnyFunction, args: unknown[]): Promise<unknown> | FallThroughReason {
    transformation = undefined;
    flattened = undefined;
    const { client, commandClass } = route;
    if (commandClass === undefined) return 'cork-only';
    const reason = route.fallThroughReason();
    if (reason !== undefined) return reason;
    if (method !== genuine) {
      if (!isGenuineMethod(method)) return 'patched';
      genuine = method;
    }
    const keyPrefix = keyPrefixOf(client);
    const transformer = argumentTransformerOf(commandClass, name);
    if (keyPrefix === undefined && transformer === undefined && !Array.isArray(args[0])) {
      return trySending(route, args, true);
    }
    const prepared = prepare(keyPrefix, transformer, args);
    if (typeof prepared === 'string') return prepared;
    const changed = transformer === undefined && flattened === undefined ? undefined : route.fallThroughReason();
    return changed ?? trySending(route, prepared, false);
  }

  /** @param mayHoldArrays - not beyond the first argument. */
  function trySending(route: HotRoute, args: unknown[], mayHoldArrays: boolean): Promise<unknown> | FallThroughReason {
    const connection = route.connectionFor(variant.command, args[0]);
    if (typeof connection === 'string') return connection;
    if (connection.cache !== undefined && variant.command.cacheable) {
      const kept = connection.cache.read(variant, args);
      if (kept !== undefined) return kept;
    }
    const encoded = encode(args, connection.batch.encodesExactly);
    if (encoded !== undefined) return connection.sendHot(variant, encoded, args, route.routing);
    // Arrays are looked for only now: doing so before each encoding costs more than this.
    return mayHoldArrays && holdsArray(args) ? tryFlattened(route, args) : 'arguments';
  }

  function tryFlattened(route: HotRoute, args: unknown[]): Promise<unknown> | FallThroughReason {
    const flat = flatOf(args);
    flattened = flat;
    return route.fallThroughReason() ?? trySending(route, flat, false);
  }

  function encode(args: readonly unknown[], exact: boolean): string | Part[] | undefined {
    const head = heads.for(args.length);
    return exact ? encodeExactly(head, args) : encodeAssumingAscii(head, args);
  }

  /**
   * What the host does to arguments before it encodes them: one level of arrays is flattened, then the command's
   * transformer and `keyPrefix` are applied (`built/Command.js`, constructor).
   */
  function prepare(
    keyPrefix: string | Buffer | undefined,
    transformer: ArgumentTransformer | undefined,
    args: unknown[],
  ): unknown[] | FallThroughReason {
    // A function here is not the callback, which was removed before: the host converts it to text.
    if (typeof args[args.length - 1] === 'function') return 'arguments';
    const flat = holdsArray(args) ? flatOf(args) : args;
    let prepared = flat;
    if (transformer !== undefined) {
      const transformed = runTransformer(transformer, flat.slice());
      transformation = transformed;
      if (flat !== args) flattened = flat;
      if ('error' in transformed) return 'transformer';
      // A copy: the transformer may keep its array, and change it before the command is sent.
      prepared = transformed.args.slice();
    }
    if (flat !== args) flattened = flat;
    return keyPrefix === undefined ? prepared : (withKeyPrefix(variant.command, keyPrefix, prepared) ?? 'arguments');
  }
}

/** Whether `flat()` would change these arguments, and maybe run getters. */
export function holdsArray(args: readonly unknown[]): boolean {
  for (let index = 0; index < args.length; index += 1) if (Array.isArray(args[index])) return true;
  return false;
}

/** Host: one level of arrays is flattened, so one array of all arguments is equivalent to the arguments. */
export function withFlattened(args: readonly unknown[], leading: number, flattened: unknown[]): unknown[] {
  const last = args[args.length - 1];
  const callback = args.length > leading && typeof last === 'function' ? [last] : [];
  return [...args.slice(0, leading), flattened, ...callback];
}

/** The arguments with `keyPrefix` before each key, in a new array; undefined if only the host can find the keys. */
export function withKeyPrefix(
  command: HotCommand,
  prefix: string | Buffer,
  args: readonly unknown[],
): unknown[] | undefined {
  const positions = KEY_POSITIONS[command.keys];
  if (positions === undefined || typeof prefix !== 'string') return undefined;
  if (Number.isFinite(positions.count) && args.length < positions.count) return undefined;
  const prefixed = args.slice();
  const last = Math.min(args.length, positions.count * positions.step);
  for (let index = 0; index < last; index += positions.step) {
    const key = prefixedKey(prefix, args[index]);
    if (key === undefined) return undefined;
    prefixed[index] = key;
  }
  return prefixed;
}

/** A key with `keyPrefix` before it; undefined if only the host can say. */
export function prefixedKey(prefix: unknown, key: unknown): string | undefined {
  if (typeof prefix !== 'string') return undefined;
  return typeof key === 'string' || (typeof key === 'number' && isPlainNumber(key)) ? prefix + key : undefined;
}
