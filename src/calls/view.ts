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
import { callHost, countFallback, isUnpatchedCommand } from './call-host.js';
import { formOf, type MethodForm } from './method.js';
import { callOf, guarded } from './signals.js';

type Members = Record<PropertyKey, unknown>;

/** A client, a Cluster or a test double, with its handle. */
type Viewed = Coalesced & HasOptions & { sendCommand: AnyFunction } & Members;

/**
 * What a view consists of: the client, and the options of its calls. It is the handler of the view's Proxy, and the
 * object that the host's methods are called on where they send a command: of that they use `options` and `sendCommand`.
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

  /** A member of the view: what was written onto it, such as a stub, or else what the client has at the moment. */
  get(own: Members, name: PropertyKey): unknown {
    if (Object.hasOwn(own, name)) return own[name];
    const { client, call } = this;
    const value = client[name];
    if (name === 'coalescer') return handleOf(client.coalescer, (more) => viewOf(client, more, call));
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
 * A view of `client`, whose calls have these options over those of `base`: the client as it is for calls with options
 * of their own.
 *
 * Fast methods send as those of the client do, with the same parts (`MethodForm`). Where a call falls back, the host's
 * method is called on the `View`: there the command gets its options. All other methods are called on the client.
 */
export function viewOf(client: object, options: CallOptions, base?: CallOptions): object {
  return new Proxy<Members>({}, new View(client as Viewed, callOf(resolveCallOptions(options, base))));
}

/** The handle of a view: its client's, but for `withOptions`. Methods run on the client's, which has private fields. */
function handleOf(handle: Coalescer, withOptions: (more: CallOptions) => object): object {
  return new Proxy(handle, {
    get: (_, name) => {
      const value: unknown = name === 'withOptions' ? withOptions : Reflect.get(handle, name);
      return typeof value === 'function' ? value.bind(handle) : value;
    },
  });
}

function sendFast(view: View, form: MethodForm, args: unknown[]): unknown {
  const { client, call } = view;
  const { methodName, parent, leading = 0 } = form;
  const method = parent[methodName] as AnyFunction;
  const target = callTargetOf(client);
  const sender = target && (form.sender ?? form.senderFor?.(target, args[0]));
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
  // A subclass's method, or one that users have put in the host's place, may need all of the client.
  if (!isUnpatchedCommand(method)) return callOnClient(view, method, args);
  const callback = args.length > leading ? args.at(-1) : undefined;
  let result: unknown;
  if (typeof callback === 'function') {
    // Called by the promise below, which the caller's signal may settle; by the host if a stub returned none.
    args[args.length - 1] = (...outcome: unknown[]) => {
      if (!(result instanceof Promise)) callback(...outcome);
    };
  }
  // Host: with auto-pipelining a method collects the commands of all callers on its receiver.
  result = client.options.enableAutoPipelining
    ? guardedIfPromise(callHost(method, client, args, leading, read), call, call.timeout)
    : callHost(method, view, args, leading, read);
  if (result instanceof Promise) asCallback(result, callback);
  return result;
}

/** The methods that take the name of their command as an argument. */
const TAKING_NAMES = new Set<PropertyKey>(['call', 'callBuffer', 'send_command']);
const MAKING_PIPELINES = new Set<PropertyKey>(['pipeline', 'multi']);
/** The methods of commands, also where the client's are not the host's: stubs, test doubles. */
const NAMES = new Set<PropertyKey>(FAST_COMMANDS.flatMap(({ name }) => [name, `${name}Buffer`]));

function callMethod(
  view: View,
  name: PropertyKey,
  args: unknown[],
  method = view.client[name] as AnyFunction,
): unknown {
  const { call } = view;
  if (name === 'sendCommand') return view.sendCommand(...(args as [HostCommand]));
  const form = formOf(method);
  const isCommand = form !== undefined || isUnpatchedCommand(method);
  if (call.signal?.aborted && (isCommand || NAMES.has(name))) return rejectedWith(call.signal.reason, args.at(-1));
  if (form?.compose !== undefined) {
    return form.compose(args, (given) => callMethod(view, name, given, form.parent[form.methodName] as AnyFunction));
  }
  if (form !== undefined) return sendFast(view, form, args);
  if (isCommand) return callHostMethod(view, method, args, TAKING_NAMES.has(name) ? 1 : 0);
  const result = callOnClient(view, method, args);
  if (MAKING_PIPELINES.has(name)) guardExec(result, call);
  return result;
}

/** Calls a method that may be anything. A function among its arguments is for the method to call. */
function callOnClient({ client, call }: View, method: AnyFunction, args: unknown[]): unknown {
  const result = method.apply(client, args);
  const promise = guardedIfPromise(result, call, call.timeout);
  // A caller with a callback does not look at the promise, and only the method's own has a handler.
  if (promise !== result && typeof args.at(-1) === 'function') (promise as Promise<unknown>).catch(() => {});
  return promise;
}

/** The options of a pipeline or transaction are those of `exec()`, which sends it. */
function guardExec(made: unknown, call: CallOptions): void {
  let called = false;
  aroundExec(made, (_, send, args) => {
    const { signal, timeout } = call;
    const callback = typeof args.at(-1) === 'function' ? args.pop() : undefined;
    const result = signal?.aborted ? Promise.reject(signal.reason) : guardedIfPromise(send(args), call, timeout);
    if (result instanceof Promise) {
      asCallback(result, callback);
      // Host: a Cluster calls it again when a pipeline is redirected, and looks at no promise.
      if (called) result.catch(() => {});
    }
    called = true;
    return result;
  });
}

/**
 * Sends a command by the host's own `sendCommand`.
 *
 * Host: a command that has a timer keeps it when `sendCommand` wants to start that of `commandTimeout`.
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
    // Sent as without options, which rejects it. Offline, the host would fail to write it when it has connected.
    const promise = client.sendCommand(...args);
    dropUnsent(client, command);
    return promise;
  }
  if (timeout !== undefined) command.setTimeout?.(timeout);
  return guardedIfPromise(client.sendCommand(...args), call, undefined, () => dropUnsent(client, command));
}

/** Puts the caller's signal and time around what a method has returned, if it is a promise. */
function guardedIfPromise(result: unknown, call: CallOptions, ms: number | undefined, aborted?: () => void): unknown {
  return result instanceof Promise ? guarded(result, call, ms, aborted) : result;
}
