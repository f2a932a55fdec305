import { HOT_COMMANDS, type HotCommand, type KeyRule } from '../commands/hot-commands.js';
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
import { commandHead, encodeAssumingAscii, encodeExactly, isPlainNumber, type Part } from '../resp/encoder.js';
import type { FallThroughReason, Stats } from '../stats.js';
import { debugFallThrough } from '../util/debug.js';

/** What the hot methods of a client or Cluster need of its attachment. */
export interface HotRoute {
  readonly client: HasOptions;
  readonly commandClass: HostCommandClass | undefined;
  readonly counters: Stats;
  /** Set for a Cluster: what becomes of a command that its node fails. */
  readonly routing: ClusterRouting | undefined;
  /** Why no command can take the hot path now. */
  fallThroughReason(): FallThroughReason | undefined;
  /** The connection of a command with this first key, or why it cannot take the hot path. */
  connectionFor(command: HotCommand, key: unknown): Connection | FallThroughReason;
}

type HotMethod = (this: unknown, ...args: unknown[]) => unknown;

/** Heads are kept for commands of up to this many arguments. */
const KEPT_HEADS = 32;

/**
 * Layer 2: methods for the prototype layer that stands between a client and its class. Each encodes its command
 * itself when everything is plain, and else calls the method that the client would have without us.
 *
 * Own properties of the client — `defineCommand('get')`, `addBuiltinCommand('get')`, a test's stub — hide the layer by
 * the language's own rules.
 *
 * @param parent - the client's prototype.
 * @param find - finds the attachment of the object that a method is called on, if it has one.
 */
export function hotMethods(
  parent: object,
  find: (receiver: unknown) => HotRoute | undefined,
): Record<string, HotMethod> {
  const methods: Record<string, HotMethod> = {};
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

function hotMethod(
  methodName: string,
  variant: CommandVariant,
  parent: Record<string, AnyFunction>,
  find: (receiver: unknown) => HotRoute | undefined,
): HotMethod {
  const { name } = variant.command;
  const heads: string[] = [];
  let genuine: AnyFunction | undefined;

  /** What the transformer has made of the arguments of the call that is being looked at. */
  let transformation: Transformation | undefined;

  return function hot(...args) {
    const route = find(this);
    const method = parent[methodName] as AnyFunction;
    if (route === undefined) return method.apply(this, args);
    const promise = tryHot(route, method, args);
    if (typeof promise !== 'string') return promise;
    route.counters.fellThrough(promise);
    if (debugFallThrough.enabled) debugFallThrough('%s: %s', methodName, promise);
    const transformed = transformation;
    if (transformed === undefined) return method.apply(this, args);
    transformation = undefined;
    // Transformers are the user's, and read getters of the user's: once per call, as in a plain client.
    return withTransformation(route.commandClass as HostCommandClass, name, transformed, () =>
      method.apply(this, args),
    );
  };

  function tryHot(route: HotRoute, method: AnyFunction, args: unknown[]): Promise<unknown> | FallThroughReason {
    const { client, commandClass } = route;
    if (commandClass === undefined) return 'cork-only';
    const reason = route.fallThroughReason();
    if (reason !== undefined) return reason;
    if (method !== genuine) {
      if (!isGenuineMethod(method)) return 'patched';
      genuine = method;
    }
    let sent = args;
    const keyPrefix = keyPrefixOf(client);
    const transformer = argumentTransformerOf(commandClass, name);
    if (keyPrefix !== undefined || transformer !== undefined || Array.isArray(args[0])) {
      const prepared = prepare(keyPrefix, transformer, args);
      if (typeof prepared === 'string') return prepared;
      sent = prepared;
      if (transformer !== undefined) {
        // It is the user's code, or has run some: the connection may have ended.
        const changed = route.fallThroughReason();
        if (changed !== undefined) return changed;
      }
    }
    const connection = route.connectionFor(variant.command, sent[0]);
    if (typeof connection === 'string') return connection;
    const exact = connection.encodesExactly;
    let encoded = encode(sent, exact);
    if (encoded === undefined && sent === args) {
      // Arrays are looked for only now: `args.some(Array.isArray)` before each encoding costs more than this.
      sent = args.flat();
      encoded = encode(sent, exact);
    }
    if (encoded === undefined) return 'arguments';
    transformation = undefined;
    return connection.sendHot(variant, encoded, sent, route.routing);
  }

  function encode(args: readonly unknown[], exact: boolean): string | Part[] | undefined {
    const head = headFor(args.length);
    return exact ? encodeExactly(head, args) : encodeAssumingAscii(head, args);
  }

  function headFor(count: number): string {
    const kept = heads[count];
    if (kept !== undefined) return kept;
    const head = commandHead(name, count);
    if (count < KEPT_HEADS) heads[count] = head;
    return head;
  }

  /**
   * What the host does to arguments before it encodes them: one level of arrays is flattened, then the command's
   * transformer and `keyPrefix` are applied (`built/Command.js`, constructor).
   */
  function prepare(
    keyPrefix: string | Buffer | undefined,
    transformer: ArgumentTransformer | undefined,
    args: readonly unknown[],
  ): unknown[] | FallThroughReason {
    // A callback is the host's business: nothing is to be run for it here.
    if (typeof args[args.length - 1] === 'function') return 'arguments';
    let prepared = args.flat();
    if (transformer !== undefined) {
      transformation = runTransformer(transformer, prepared);
      if ('error' in transformation) return 'transformer';
      prepared = transformation.args;
    }
    return keyPrefix === undefined ? prepared : (withKeyPrefix(variant.command, keyPrefix, prepared) ?? 'arguments');
  }
}

/** The first key and the step to the next, by rule; `count` keys at the most. */
const KEY_POSITIONS: Readonly<Record<KeyRule, { count: number; step: number } | undefined>> = {
  first: { count: 1, step: 1 },
  two: { count: 2, step: 1 },
  all: { count: Number.POSITIVE_INFINITY, step: 1 },
  pairs: { count: Number.POSITIVE_INFINITY, step: 2 },
  none: { count: 0, step: 1 },
  own: undefined,
};

/** The arguments with `keyPrefix` before each key, in a new array; undefined where it takes the host to say. */
function withKeyPrefix(command: HotCommand, prefix: string | Buffer, args: readonly unknown[]): unknown[] | undefined {
  const positions = KEY_POSITIONS[command.keys];
  if (positions === undefined || typeof prefix !== 'string') return undefined;
  if (Number.isFinite(positions.count) && args.length < positions.count) return undefined;
  const prefixed = args.slice();
  const last = Math.min(args.length, positions.count * positions.step);
  for (let index = 0; index < last; index += positions.step) {
    const key = args[index];
    if (typeof key !== 'string' && !(typeof key === 'number' && isPlainNumber(key))) return undefined;
    prefixed[index] = prefix + key;
  }
  return prefixed;
}
