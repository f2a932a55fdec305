import { debugFallThrough } from '../channels.js';
import { type CommandVariant, type HotCommand, KEY_POSITIONS } from '../commands/hot-commands.js';
import type { Connection } from '../connection/connection.js';
import type { PendingBound } from '../connection/sending/pending-bound.js';
import type { ClusterRouting } from '../host/cluster-routing.js';
import { isGenuineMethod } from '../host/probe.js';
import { isGenuineScriptMethod } from '../host/script.js';
import {
  type ArgumentTransformer,
  argumentTransformerOf,
  HOST_ONLY,
  runTransformer,
  withTransformation,
} from '../host/transformers.js';
import type { AnyFunction, HasOptions, HostCommandClass } from '../host/types.js';
import type { CallOptions } from '../options.js';
import { CommandHeads, commandHead, encodeAssumingAscii, encodeExactly, isPlainNumber } from '../resp/encoder.js';
import type { FallThroughReason, Stats } from '../stats.js';
import { asCallback } from '../util/promises.js';
import { coldWatch } from './cold-watch.js';

/** On a coalesced client or Cluster, whichever copy of this package did it. */
export const MARK = Symbol.for('ioredis-coalesce.coalescer');

/** On a plain Cluster that has the option `splitKeys`. */
export const SPLITS = Symbol.for('ioredis-coalesce.splits');

/**
 * What the methods of a client or Cluster need of its attachment, `ClientAttachment` or `ClusterAttachment`, or of the
 * `PlainSplitting` of a Cluster that is not coalesced.
 */
export interface HotRoute {
  readonly client: HasOptions & { sendCommand: AnyFunction };
  readonly commandClass: HostCommandClass | undefined;
  /** Undefined for a Cluster that is not coalesced. */
  readonly counters: Stats | undefined;
  /** False after `detach()`. */
  readonly enabled: boolean;
  /** Set for a Cluster: hands it a command that failed on its node. */
  readonly routing: ClusterRouting | undefined;
  /** Set for a Cluster with the option `splitKeys`. */
  readonly splitter: KeySplitter | undefined;
  /** Set with the option `maxPending`: the client's own; for a Cluster, that of its offline queue. */
  readonly bound: PendingBound | undefined;
  /** The bound that commands with this first key are under. */
  boundFor?(key: unknown): PendingBound | undefined;
  /** Why no command can take the hot path now. */
  fallThroughReason(watchable?: boolean): FallThroughReason | undefined;
  /**
   * The connection that a command with this first key can be sent on now, or why it cannot take the hot path.
   *
   * @param watchable - see `Connection#fallThroughReason`.
   */
  connectionFor(command: HotCommand, key: unknown, watchable?: boolean): Connection | FallThroughReason;
  /** The name of a blocking command that other commands wait behind, if there is one; none after `detach()`. */
  readonly blockedBy: string | undefined;
  /** Coalesces a copy that the host's `duplicate(...args)` made, unless it is coalesced already. */
  attachCopy(copy: object, args: readonly unknown[]): void;
}

export interface Marked {
  readonly [MARK]?: HotRoute;
  readonly [SPLITS]?: HotRoute;
}

/** The attachment of the object that a method is called on, if it has one. */
export function routeOf(receiver: unknown): HotRoute | undefined {
  const marked = receiver as Marked | undefined;
  const attached = marked?.[MARK] ?? marked?.[SPLITS];
  return attached !== undefined && attached.client === receiver ? attached : undefined;
}

/** Sends a call with keys of several slots as several commands; undefined if it can be sent as it is. */
export interface KeySplitter {
  /** The host's `Command` class, with the hot path or without. */
  readonly commandClass: HostCommandClass;
  send(sender: Sender, given: readonly unknown[], call: CallOptions | undefined): Promise<unknown> | undefined;
}

/** The parts of a method of ours that sends one command. A view makes the same call with options of its own (`view.ts`). */
export interface MethodForm {
  readonly methodName: string;
  /** Has the host's method under this name. */
  readonly parent: Readonly<Record<string, unknown>>;
  /** How many arguments are in front of the command's, such as the name in `call(name, …)`. */
  readonly leading?: number;
  /** Sends the calls that can be hot; or a function that finds who sends one, by the name in front of its arguments. */
  readonly sender?: Sender;
  senderFor?(route: HotRoute, name: unknown): Sender | undefined;
  /** Told of each call that has no sender, before the host's method sends it. `args` are all arguments of the method. */
  watch?(route: HotRoute, args: readonly unknown[]): void;
}

const forms = new WeakMap<AnyFunction, MethodForm>();

/** The parts of a method, if `commandMethod` has made it. */
export function formOf(method: AnyFunction): MethodForm | undefined {
  return forms.get(method);
}

/**
 * A method that encodes its command here if nothing is unusual; otherwise it calls the method that the client would have
 * without us.
 */
export function commandMethod(form: MethodForm): AnyFunction {
  const { methodName, parent, leading = 0, sender } = form;

  function cold(receiver: unknown, route: HotRoute | undefined, args: readonly unknown[], sent?: FallThrough): unknown {
    if (route !== undefined) {
      if (sent === undefined) form.watch?.(route, args);
      else countFallThrough(route, methodName, sent.reason);
    }
    return callHost(parent[methodName] as AnyFunction, receiver, args, leading, sent?.read);
  }

  function hot(this: unknown, ...args: unknown[]): unknown {
    const route = routeOf(this);
    if (route === undefined || sender === undefined) return cold(this, route, args);
    const sent = sender.send(route, parent[methodName] as AnyFunction, args);
    return sent instanceof FallThrough ? cold(this, route, args, sent) : sent;
  }

  function named(this: unknown, name: unknown, ...args: unknown[]): unknown {
    const route = routeOf(this);
    const found = route && form.senderFor?.(route, name);
    if (route === undefined || found === undefined) return cold(this, route, [name, ...args]);
    const sent = found.send(route, parent[methodName] as AnyFunction, args);
    return sent instanceof FallThrough ? cold(this, route, [name, ...args], sent) : sent;
  }

  const made = leading === 0 ? hot : named;
  forms.set(made, form);
  return made;
}

/** Whether a method is the host's, and sends one command by `sendCommand`. */
export function isGenuineCommand(method: AnyFunction): boolean {
  return isGenuineMethod(method) || isGenuineScriptMethod(method);
}

/** The arguments of a call as far as they have been read. User code in them runs once per call, as on a plain client. */
export interface ReadArguments {
  /** Without arrays, if there were any among them: elements may be getters. */
  readonly flattened?: readonly unknown[] | undefined;
  /** Makes a call to which the command's transformer gives what it has given before; set if it has run. */
  readonly asTransformed?: (call: () => unknown) => unknown;
}

/** A call that the host must answer. */
export class FallThrough {
  constructor(
    readonly reason: FallThroughReason,
    readonly read?: ReadArguments,
  ) {}
}

/** Nothing was sent. Not undefined: a tracer may return that for what it has sent. */
export const NOT_PLAIN = new FallThrough('arguments');

/** A command has fallen through. */
export function countFallThrough({ counters }: HotRoute, methodName: string, reason: FallThroughReason): void {
  if (counters === undefined) return;
  coldWatch.fellThrough(counters, reason);
  if (debugFallThrough.enabled) debugFallThrough('%s: %s', methodName, reason);
}

/**
 * More arguments than this are not spread again. The caller's own are on the stack by now, and 123,000 of them fill it
 * (Node's default size), so there may be no room for them twice.
 */
const MOST_SPREAD = 1_000;

/**
 * Calls a method of the host's with the arguments that one of ours was called with. A method that a user has put in its
 * place gets them as they are.
 *
 * @param args - all arguments of the call.
 * @param leading - how many of them are in front of the command's, such as the name in `call(name, …)`.
 */
export function callHost(
  method: AnyFunction,
  receiver: unknown,
  args: readonly unknown[],
  leading = 0,
  { flattened, asTransformed }: ReadArguments = {},
): unknown {
  const given = flattened === undefined ? args : inOneArray(args, leading, flattened);
  if (asTransformed !== undefined) return asTransformed(() => callHost(method, receiver, given, leading));
  if (given.length <= MOST_SPREAD || !isGenuineCommand(method)) return method.apply(receiver, given as unknown[]);
  const end = endsInCallback(given, leading) ? -1 : given.length;
  return method.apply(receiver, inOneArray(given, leading, flatOf(given.slice(leading, end))));
}

/** Host: one level of arrays is flattened, so one array of all arguments is equivalent to the arguments. */
function inOneArray(args: readonly unknown[], leading: number, flattened: readonly unknown[]): unknown[] {
  const callback = endsInCallback(args, leading) ? args.slice(-1) : [];
  return [...args.slice(0, leading), flattened, ...callback];
}

function endsInCallback(args: readonly unknown[], leading: number): boolean {
  return args.length > leading && typeof args[args.length - 1] === 'function';
}

/** The two methods of a command: one replies with text, the other with Buffers. */
export function methodsNamed(name: string): readonly (readonly [methodName: string, encoding: 'utf8' | null])[] {
  return [
    [name, 'utf8'],
    [`${name}Buffer`, null],
  ];
}

/**
 * May this call be encoded here? If so, sends it. The question is the same for single commands, `call` and scripts;
 * how their keys are found and how they are encoded is not.
 */
export abstract class Sender {
  /** The command that is sent. */
  abstract readonly variant: CommandVariant;
  /** The host's own method, as last seen. */
  protected genuine: AnyFunction | undefined;

  /** Whether the keys among the arguments have to be found before a call is sent. */
  protected abstract needsKeys(route: HotRoute): boolean;
  /** Flat arguments, transformed and with `keyPrefix`, and their first key. */
  protected abstract prepare(
    route: HotRoute,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
  ): Prepared | FallThrough;
  /** Sends a command; `NOT_PLAIN` if its arguments cannot be encoded here. `args` are those of the call. */
  protected abstract sendOn(
    connection: Connection,
    route: HotRoute,
    prepared: readonly unknown[],
    args: readonly unknown[],
    call: CallOptions | undefined,
  ): Promise<unknown> | FallThrough;

  /**
   * @param method - the host's, for a call that falls through.
   * @param call - the options of this call, if it has any.
   */
  send(route: HotRoute, method: AnyFunction, given: unknown[], call?: CallOptions): Promise<unknown> | FallThrough {
    if (method !== this.genuine) {
      if (!isGenuineMethod(method)) return new FallThrough('patched');
      this.genuine = method;
    }
    const split = route.splitter?.send(this, given, call);
    if (split !== undefined) return split;
    const { commandClass } = route;
    if (commandClass === undefined) return new FallThrough('cork-only');
    const last = given.length > 0 ? given[given.length - 1] : undefined;
    const args = typeof last === 'function' ? given.slice(0, -1) : given;
    const { command } = this.variant;
    const transformer = argumentTransformerOf(commandClass, command.name);
    // A tracer would see another promise than the one that has the callback.
    const watchable = call === undefined && typeof last !== 'function';
    let sent: Promise<unknown> | FallThrough = NOT_PLAIN;
    if (transformer === undefined && !Array.isArray(args[0]) && !this.needsKeys(route)) {
      const connection = route.connectionFor(command, args[0], watchable);
      if (typeof connection === 'string') return new FallThrough(connection);
      sent = this.sendOn(connection, route, args, args, call);
      // Arrays are looked for only now: doing so before each encoding costs more than this.
      if (sent === NOT_PLAIN && !holdsArray(args)) return sent;
    }
    if (sent === NOT_PLAIN) sent = this.#prepareAndSend(route, args, transformer, call, watchable);
    if (typeof last === 'function' && !(sent instanceof FallThrough)) asCallback(sent, last);
    return sent;
  }

  #prepareAndSend(
    route: HotRoute,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
    call: CallOptions | undefined,
    watchable: boolean,
  ): Promise<unknown> | FallThrough {
    // Transformers and getters of arrays are user code: it runs here only if the command can still be sent here.
    const runsUserCode = transformer !== undefined || holdsArray(args);
    const reason = runsUserCode ? route.fallThroughReason(watchable) : undefined;
    if (reason !== undefined) return new FallThrough(reason);
    const prepared = this.prepare(route, args, transformer);
    return prepared instanceof FallThrough ? prepared : this.sendPrepared(route, prepared, args, call, watchable);
  }

  /** @param args - those of the call. */
  sendPrepared(
    route: HotRoute,
    { sent, key, read }: Prepared,
    args: readonly unknown[],
    call?: CallOptions,
    watchable = call === undefined,
  ): Promise<unknown> | FallThrough {
    // Ordering: asked when user code has run.
    const connection = route.connectionFor(this.variant.command, key, watchable);
    if (typeof connection === 'string') return new FallThrough(connection, read);
    const promise = this.sendOn(connection, route, sent, args, call);
    return promise === NOT_PLAIN ? new FallThrough('arguments', read) : promise;
  }
}

/** Sends the commands of one name. */
export class CommandSender extends Sender {
  readonly #heads = new CommandHeads((count) => commandHead(this.variant.command.name, count));

  constructor(readonly variant: CommandVariant) {
    super();
  }

  protected needsKeys({ client }: HotRoute): boolean {
    return Boolean(client.options.keyPrefix);
  }

  protected prepare(
    { client, commandClass }: HotRoute,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
  ): Prepared | FallThrough {
    const { command } = this.variant;
    return prepareArguments(command, commandClass as HostCommandClass, client.options.keyPrefix, transformer, args);
  }

  protected sendOn(
    connection: Connection,
    { routing }: HotRoute,
    prepared: readonly unknown[],
    _args: readonly unknown[],
    call: CallOptions | undefined,
  ): Promise<unknown> | FallThrough {
    const { variant } = this;
    // A call that reads past the cache is sent without asking: its answer is kept all the same.
    const asks = connection.cache !== undefined && variant.command.cacheable && call?.cache !== false;
    const answer = asks ? connection.cache.asked(variant, prepared) : undefined;
    if (answer !== undefined) return connection.sendHot(variant, '', prepared, routing, call, answer);
    const refusal = connection.bound?.refusalOf(1);
    if (refusal !== undefined) return Promise.reject(refusal);
    // A tracer sees each read.
    if (connection.watch === undefined && connection.fused?.takes(variant, prepared))
      return connection.sendHot(variant, undefined, prepared, routing, call);
    const head = this.#heads.for(prepared.length);
    const exact = connection.batch.exactBatches > 0;
    const encoded = exact ? encodeExactly(head, prepared) : encodeAssumingAscii(head, prepared);
    return encoded === undefined ? NOT_PLAIN : connection.sendHot(variant, encoded, prepared, routing, call);
  }
}

/** Arguments as they are encoded, if they are plain. */
export interface Prepared {
  readonly sent: readonly unknown[];
  /** The first key. */
  readonly key: unknown;
  /** For the host, if the command falls through after all. */
  readonly read?: ReadArguments;
}

/**
 * What the host does to arguments before it encodes them: one level of arrays is flattened, then the command's
 * transformer and `keyPrefix` are applied (`built/Command.js`, constructor).
 *
 * @param args - without the callback.
 */
export function prepareArguments(
  command: HotCommand,
  commandClass: HostCommandClass,
  keyPrefix: string | Buffer | undefined,
  transformer: ArgumentTransformer | undefined,
  args: readonly unknown[],
): Prepared | FallThrough {
  // A function here is not the callback, which was removed before: the host converts it to text.
  if (typeof args[args.length - 1] === 'function') return new FallThrough('arguments');
  const flattened = holdsArray(args) ? flatOf(args) : undefined;
  let sent = flattened ?? args;
  let read: ReadArguments = { flattened };
  if (transformer === HOST_ONLY) return new FallThrough('transformer', read);
  if (transformer !== undefined) {
    const transformation = runTransformer(transformer, sent.slice());
    const asTransformed = (call: () => unknown) => withTransformation(commandClass, command.name, transformation, call);
    read = { flattened, asTransformed };
    // Host: it sends anything that has a length.
    if (!('args' in transformation && Array.isArray(transformation.args))) return new FallThrough('transformer', read);
    // A copy: the transformer may keep its array, and change it before the command is sent.
    sent = transformation.args.slice() as unknown[];
  }
  const prefixed = keyPrefix ? withKeyPrefix(command, keyPrefix, sent) : sent;
  return prefixed === undefined ? new FallThrough('arguments', read) : { sent: prefixed, key: prefixed[0], read };
}

/** Whether `flat()` would change these arguments, and maybe run getters. */
export function holdsArray(args: readonly unknown[]): boolean {
  for (let index = 0; index < args.length; index += 1) if (Array.isArray(args[index])) return true;
  return false;
}

/** The arguments with `keyPrefix` before each key, in a new array; undefined if only the host can find the keys. */
function withKeyPrefix(command: HotCommand, prefix: string | Buffer, args: readonly unknown[]): unknown[] | undefined {
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

/**
 * `values.flat()`: one level of arrays is flattened, holes are left out. V8's own takes 25 times as long for the
 * arguments of a script (1.9 µs for 12; Node 20).
 *
 * @param values - without holes.
 */
export function flatOf(values: readonly unknown[]): unknown[] {
  const flat: unknown[] = [];
  for (let outer = 0; outer < values.length; outer += 1) {
    const value = values[outer];
    if (!Array.isArray(value)) {
      flat.push(value);
      continue;
    }
    // A getter may change the length: `flat` reads it once (ECMA-262, FlattenIntoArray).
    const { length } = value;
    for (let index = 0; index < length; index += 1) if (index in value) flat.push(value[index]);
  }
  return flat;
}
