import { FAST_COMMANDS } from '../commands/fast-commands.js';
import { callTargetOf } from '../core/call-target.js';
import type { Call } from '../core/features.js';
import type { Coalesced, Coalescer } from '../handle.js';
import { type ArgumentsSoFar, Fallback } from '../host/arguments.js';
import { isRejected } from '../host/command-class.js';
import { aroundExec } from '../host/pipeline.js';
import { dropUnsent } from '../host/state.js';
import type { AnyFunction, HasOptions, HostCommand } from '../host/types.js';
import { type CallOptions, resolveCallOptions } from '../options.js';
import { asCallback, rejectedWith } from '../util/promises.js';
import { VIEWED } from '../util/values.js';
import { callHost, countFallback, isUnpatchedCommand } from './call-host.js';
import { type MethodSpec, specOf } from './method.js';
import { callOf, guarded } from './signals.js';

type Members = Record<PropertyKey, unknown>;

/** A client, a Cluster or a test double, with its handle. */
type Viewed = Coalesced & HasOptions & { sendCommand: AnyFunction } & Members;

/**
 * A client, and the options of the view's calls. This is the handler of the view's Proxy, and the receiver of host
 * methods that send a command, which use only its `options` and `sendCommand`.
 */
class View implements ProxyHandler<Members> {
  constructor(
    readonly client: Viewed,
    readonly call: Call,
  ) {}

  get options(): HasOptions['options'] {
    return this.client.options;
  }

  sendCommand(...args: [HostCommand]): unknown {
    return sendWith(this.call, this.client, args);
  }

  /** A member of the view: the view's own, such as a stub, or the client's current one. */
  get(own: Members, name: PropertyKey): unknown {
    if (Object.hasOwn(own, name)) return own[name];
    const { client, call } = this;
    const value = client[name];
    if (name === 'coalescer') return handleOf(client.coalescer, (more) => viewOf(client, more, call));
    if (name === VIEWED) return client;
    if (typeof value !== 'function' || name === 'constructor') return value;
    return (...args: unknown[]) => callMethod(this, name, args);
  }

  has(own: Members, name: PropertyKey): boolean {
    return name in own || name in this.client;
  }

  getPrototypeOf(): object {
    return Object.getPrototypeOf(this.client) as object;
  }
}

/**
 * A view of `client`: the same client, whose calls have these options, and those of `base`.
 *
 * Fast methods have the client's definitions (`MethodSpec`). If a call falls back, the host's method is called on the
 * `View`, which gives the command its options. All other methods are called on the client.
 */
export function viewOf(client: object, options: CallOptions, base?: CallOptions): object {
  return new Proxy<Members>({}, new View(client as Viewed, callOf(resolveCallOptions(options, base))));
}

/** The client's handle with another `withOptions`. Methods run on the client's, because it has private fields. */
function handleOf(handle: Coalescer, withOptions: (more: CallOptions) => object): object {
  return new Proxy(handle, {
    get: (_, name) => {
      const value: unknown = name === 'withOptions' ? withOptions : Reflect.get(handle, name);
      return typeof value === 'function' ? value.bind(handle) : value;
    },
  });
}

function sendFast(view: View, spec: MethodSpec, args: unknown[]): unknown {
  const { client, call } = view;
  const { methodName, parent, leading = 0 } = spec;
  const method = parent[methodName] as AnyFunction;
  const target = callTargetOf(client);
  const sender = target && (spec.sender ?? spec.senderFor?.(target, args[0]));
  if (target === undefined || sender === undefined) return callHostMethod(view, method, args, leading);
  const sent = sender.send(target, method, leading === 0 ? args : args.slice(leading), call);
  if (!(sent instanceof Fallback)) return sent;
  countFallback(target, methodName, sent.reason);
  return callHostMethod(view, method, args, leading, sent.argumentsSoFar);
}

function callHostMethod(
  view: View,
  method: AnyFunction,
  args: unknown[],
  leading: number,
  read?: ArgumentsSoFar,
): unknown {
  const { client, call } = view;
  // A subclass's method, or a user's replacement, may need the whole client.
  if (!isUnpatchedCommand(method)) return callOnClient(view, method, args);
  const callback = args.length > leading ? args.at(-1) : undefined;
  let result: unknown;
  if (typeof callback === 'function') {
    // The promise below calls it, since a signal may settle that promise. If a stub returned none, the host calls it.
    args[args.length - 1] = (...outcome: unknown[]) => {
      if (!(result instanceof Promise)) callback(...outcome);
    };
  }
  // Host: with auto-pipelining, methods collect the commands of all callers on their receiver.
  result = client.options.enableAutoPipelining
    ? guardedIfPromise(callHost(method, client, args, leading, read), call, call.timeout)
    : callHost(method, view, args, leading, read);
  if (result instanceof Promise) asCallback(result, callback);
  return result;
}

/** The methods whose first argument is the name of the command. */
const NAMED_CALLS = new Set<PropertyKey>(['call', 'callBuffer', 'send_command']);
const PIPELINE_METHODS = new Set<PropertyKey>(['pipeline', 'multi']);
/** The names of command methods, for stubs and test doubles, which are not recognized otherwise. */
const COMMAND_METHODS = new Set<PropertyKey>(FAST_COMMANDS.flatMap(({ name }) => [name, `${name}Buffer`]));

function callMethod(
  view: View,
  name: PropertyKey,
  args: unknown[],
  method = view.client[name] as AnyFunction,
): unknown {
  const { call } = view;
  if (name === 'sendCommand') return view.sendCommand(...(args as [HostCommand]));
  const spec = specOf(method);
  const isCommand = spec !== undefined || isUnpatchedCommand(method);
  if (call.signal?.aborted && (isCommand || COMMAND_METHODS.has(name)))
    return rejectedWith(call.signal.reason, args.at(-1));
  if (spec?.compose !== undefined) {
    return spec.compose(args, (given) => callMethod(view, name, given, spec.parent[spec.methodName] as AnyFunction));
  }
  if (spec !== undefined) return sendFast(view, spec, args);
  if (isCommand) return callHostMethod(view, method, args, NAMED_CALLS.has(name) ? 1 : 0);
  const result = callOnClient(view, method, args);
  if (PIPELINE_METHODS.has(name)) guardExec(result, call);
  return result;
}

/** Calls any method on the client. If the last argument is a function, the method calls it. */
function callOnClient({ client, call }: View, method: AnyFunction, args: unknown[]): unknown {
  const result = method.apply(client, args);
  const promise = guardedIfPromise(result, call, call.timeout);
  // A caller with a callback ignores the promise, and only the method's own promise has a handler.
  if (promise !== result && typeof args.at(-1) === 'function') (promise as Promise<unknown>).catch(() => {});
  return promise;
}

/** Applies the options to the `exec()` of a pipeline or transaction. */
function guardExec(made: unknown, call: CallOptions): void {
  /** The calls that have not settled. Host: until then, a Cluster may call it again, to redirect the commands. */
  let open = 0;
  const close = () => {
    open -= 1;
  };
  aroundExec(made, (_, send, args) => {
    const { signal, timeout } = call;
    const callback = typeof args.at(-1) === 'function' ? args.pop() : undefined;
    const isHosts = open > 0;
    if (signal?.aborted && !isHosts) return rejectedWith(signal.reason, callback);
    const sent = send(args);
    const result = guardedIfPromise(sent, call, timeout);
    if (!(result instanceof Promise)) return result;
    asCallback(result, callback);
    if (result === sent) return result;
    open += 1;
    (sent as Promise<unknown>).then(close, close);
    // Host: it ignores the promise.
    if (isHosts) result.catch(() => {});
    return result;
  });
}

/**
 * Sends a command by the host's own `sendCommand`.
 *
 * Host: a command with a timer keeps it when `sendCommand` would start that of `commandTimeout`.
 */
export function sendWith(
  call: CallOptions | undefined,
  client: { sendCommand: AnyFunction },
  args: readonly [HostCommand, ...unknown[]],
): unknown {
  if (call === undefined) return client.sendCommand(...args);
  const { signal, timeout } = call;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const [command] = args as readonly [HostCommand & { setTimeout?(ms: number): void }];
  if (isRejected(command)) {
    // `sendCommand` rejects it. Offline, the host would keep it, and fail to write it once connected.
    const promise = client.sendCommand(...args);
    dropUnsent(client, command);
    return promise;
  }
  if (timeout !== undefined) command.setTimeout?.(timeout);
  return guardedIfPromise(client.sendCommand(...args), call, undefined, () => dropUnsent(client, command));
}

/** Applies the caller's signal and timeout to a method's result, if it is a promise. */
function guardedIfPromise(result: unknown, call: CallOptions, ms: number | undefined, aborted?: () => void): unknown {
  return result instanceof Promise ? guarded(result, call, ms, aborted) : result;
}
