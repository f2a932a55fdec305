import { HOT_COMMANDS } from '../commands/hot-commands.js';
import { CallSettings, guarded } from '../connection/entries/call-settings.js';
import type { ClientCache, Coalesced, Coalescer } from '../handle.js';
import { dropUnsent, isAutoPipelining } from '../host/state.js';
import type { AnyFunction, HasOptions, HostCommand } from '../host/types.js';
import { type CallOptions, type ResolvedOptions, resolveCallOptions } from '../options.js';
import type { CoalescerStats } from '../stats.js';
import { asCallback, type NodeCallback } from '../util/promises.js';
import { callHost, countFallThrough, FallThrough, formOf, type HotForm, isCommandMethod } from './hot-path.js';

/** A client, a Cluster or a stand-in, with its handle. */
type Viewed = Coalesced & HasOptions & { sendCommand: AnyFunction } & Record<PropertyKey, unknown>;

/** Symbols, not private fields: people wrap what they are given in a Proxy. */
const CLIENT = Symbol('client');
const CALL = Symbol('call');
/** Where a view is found behind a Proxy that passes on names and no symbols. */
const ITSELF = 'ioredis-coalesce.view';

function itself(receiver: unknown): View {
  const view = receiver as View & { [ITSELF]: View };
  return view[CLIENT] === undefined ? view[ITSELF] : view;
}

/**
 * A client as it is for calls with options of their own.
 *
 *     view ──► hot methods, `sendCommand`, `coalescer` ──► Proxy: all other members of the client
 *
 * Hot methods send as those of the client do, with the same parts (`HotForm`). Where a call falls through, the host's
 * method is called on the view, of which it uses `options` and `sendCommand` alone: there the command gets its options.
 * All other methods are called on the client.
 *
 * Not `Object.create(client)`: V8 keeps prototypes in another form, and the client would become slower.
 */
class View {
  readonly [CLIENT]: Viewed;
  readonly [CALL]: CallSettings;

  constructor(client: Viewed, call: CallSettings) {
    this[CLIENT] = client;
    this[CALL] = call;
  }
}

/** The classes of views, one per client: the prototype leads to that client. */
const classes = new WeakMap<object, { readonly overlay: object; readonly viewClass: typeof View }>();

/** A view of `client`, whose calls have these options over those of `base`. */
export function viewOf(client: object, options: CallOptions, base?: CallSettings): object {
  const call = new CallSettings(resolveCallOptions(options, base?.options));
  const overlay = Object.getPrototypeOf(client) as object;
  let kept = classes.get(client);
  if (kept?.overlay !== overlay) {
    kept = { overlay, viewClass: classFor(client as Viewed, overlay) };
    classes.set(client, kept);
  }
  return new kept.viewClass(client as Viewed, call);
}

function classFor(client: Viewed, overlay: object): typeof View {
  const viewClass = class extends View {};
  Reflect.deleteProperty(viewClass.prototype, 'constructor');
  Object.defineProperties(viewClass.prototype, membersFor(overlay));
  Object.setPrototypeOf(viewClass.prototype, otherMembersOf(client));
  return viewClass;
}

const ORDINARY = { writable: true, configurable: true };
const members = new WeakMap<object, PropertyDescriptorMap>();

/** What views of all clients with this overlay have in common. */
function membersFor(overlay: object): PropertyDescriptorMap {
  const kept = members.get(overlay);
  if (kept !== undefined) return kept;
  const made: PropertyDescriptorMap = {
    sendCommand: {
      ...ORDINARY,
      value(this: View, ...args: [HostCommand]) {
        const view = itself(this);
        return sendWith(view[CALL], view[CLIENT], args);
      },
    },
    coalescer: {
      get(this: View) {
        const view = itself(this);
        return new ViewHandle(view[CLIENT], view[CALL]);
      },
      configurable: true,
    },
    [ITSELF]: {
      get(this: View) {
        return this;
      },
    },
  };
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(overlay))) {
    const form = typeof value === 'function' ? formOf(value as AnyFunction) : undefined;
    if (form === undefined) continue;
    made[name] = { ...ORDINARY, value: hotMethod(name, value as AnyFunction, form) };
  }
  members.set(overlay, made);
  return made;
}

/** Like the client's hot method, unless the client has another one under this name by now. */
function hotMethod(name: string, hot: AnyFunction, form: HotForm): AnyFunction {
  return function (this: unknown, ...args) {
    const view = itself(this);
    const method = view[CLIENT][name] as AnyFunction;
    return method === hot ? sendHot(view, form, args) : callMethod(view, name, method, args);
  };
}

/** The members of a client as they are when they are asked for. */
function otherMembersOf(client: Viewed): object {
  return new Proxy(Object.create(null) as object, {
    get: (_, name) => {
      const value = client[name];
      return typeof value === 'function' && name !== 'constructor' ? onView(name, value as AnyFunction) : value;
    },
    has: (_, name) => name in client,
    getPrototypeOf: () => Object.getPrototypeOf(client) as object,
  });
}

const methodsOnViews = new WeakMap<AnyFunction, AnyFunction>();

function onView(name: PropertyKey, method: AnyFunction): AnyFunction {
  let made = methodsOnViews.get(method);
  if (made === undefined) {
    made = function (this: unknown, ...args) {
      return callMethod(itself(this), name, method, args);
    };
    methodsOnViews.set(method, made);
  }
  return made;
}

function sendHot(view: View, form: HotForm, args: unknown[]): unknown {
  const call = view[CALL];
  if (call.signal?.aborted) return rejected(call.signal, args);
  const { leading } = form;
  const method = form.method();
  const route = form.find(view[CLIENT]);
  const sender = route && form.senderFor(route, args);
  if (route === undefined || sender === undefined) return callCold(view, method, args, leading);
  const sent = sender.send(route, method, leading === 0 ? args : args.slice(leading), call);
  if (!(sent instanceof FallThrough)) return sent;
  countFallThrough(route, form.methodName, sent.reason);
  return sendCold(view, args, leading, (receiver, given) => sent.callHost(method, receiver, given, leading));
}

function callCold(view: View, method: AnyFunction, args: unknown[], leading: number): unknown {
  return sendCold(view, args, leading, (receiver, given) => callHost(method, receiver, given, leading));
}

/**
 * Calls a host's method that sends a command. Its callback is called by the host, unless the caller's signal, or its time,
 * comes first.
 *
 * @param leading - how many arguments are in front of the command's.
 */
function sendCold(
  view: View,
  args: unknown[],
  leading: number,
  callHostMethod: (receiver: object, args: readonly unknown[]) => unknown,
): unknown {
  const { [CLIENT]: client, [CALL]: call } = view;
  // Host: with auto-pipelining a method collects the commands of all callers on its receiver.
  const send = (): unknown =>
    isAutoPipelining(client)
      ? guardedIfPromise(callHostMethod(client, args), call, call.timeout)
      : callHostMethod(view, args);
  const callback = args.length > leading ? args.at(-1) : undefined;
  if (typeof callback !== 'function') return send();
  let called = false;
  args[args.length - 1] = (...outcome: unknown[]) => {
    if (called) return;
    called = true;
    callback(...outcome);
  };
  const result = send();
  if (result instanceof Promise) {
    result.catch((error) => {
      if (called) return;
      called = true;
      asCallback(Promise.reject(error), callback as NodeCallback);
    });
  }
  return result;
}

/** The methods that take the name of their command as an argument. */
const TAKING_NAMES = new Set<PropertyKey>(['call', 'callBuffer', 'send_command']);
const MAKING_PIPELINES = new Set<PropertyKey>(['pipeline', 'multi']);
/** Of commands, if the client's methods are not the host's: stubs, stand-ins. */
const NAMES = new Set<PropertyKey>(HOT_COMMANDS.flatMap(({ name }) => [name, `${name}Buffer`]));

/** Calls a method of the client. */
function callMethod(view: View, name: PropertyKey, method: AnyFunction, args: unknown[]): unknown {
  const form = formOf(method);
  if (form !== undefined) return sendHot(view, form, args);
  const { [CLIENT]: client, [CALL]: call } = view;
  const isCommand = isCommandMethod(method);
  if (call.signal?.aborted && (isCommand || NAMES.has(name))) return rejected(call.signal, args);
  if (isCommand) return callCold(view, method, args, TAKING_NAMES.has(name) ? 1 : 0);
  const result = method.apply(client, args);
  if (MAKING_PIPELINES.has(name)) guardExec(result, call);
  return guardedIfPromise(result, call, call.timeout);
}

/** A call with a signal that was aborted before: nothing is sent. */
function rejected({ reason }: AbortSignal, args: readonly unknown[]): Promise<never> {
  const promise = Promise.reject(reason);
  const last = args.at(-1);
  if (typeof last === 'function') asCallback(promise, last as NodeCallback);
  return promise;
}

/** The options of a pipeline or transaction are those of `exec()`, which sends it. */
function guardExec(made: unknown, call: CallSettings): void {
  const pipeline = made as { exec?: AnyFunction } | null;
  const exec = typeof pipeline === 'object' ? pipeline?.exec : undefined;
  if (typeof exec !== 'function') return;
  Object.defineProperty(made, 'exec', {
    ...ORDINARY,
    enumerable: true,
    value(...args: unknown[]) {
      if (call.signal?.aborted) return rejected(call.signal, args);
      const callback = typeof args.at(-1) === 'function' ? args.pop() : undefined;
      // Not on a Proxy of it, which may hide what tells that the pipeline has become the host's.
      const result = guardedIfPromise(exec.apply(made, args), call, call.timeout);
      if (callback !== undefined && result instanceof Promise) asCallback(result, callback as NodeCallback);
      return result;
    },
  });
}

/** The handle of a view: that of its client at the moment, but for the views it makes. */
class ViewHandle implements Coalescer {
  readonly #client: Viewed;
  readonly #call: CallSettings;

  constructor(client: Viewed, call: CallSettings) {
    this.#client = client;
    this.#call = call;
  }

  withOptions(options: CallOptions): object {
    return viewOf(this.#client, options, this.#call);
  }

  get enabled(): boolean {
    return this.#client.coalescer.enabled;
  }

  get options(): ResolvedOptions {
    return this.#client.coalescer.options;
  }

  get cache(): ClientCache | undefined {
    return this.#client.coalescer.cache;
  }

  stats(): CoalescerStats {
    return this.#client.coalescer.stats();
  }

  flush(): void {
    this.#client.coalescer.flush();
  }

  detach(): void {
    this.#client.coalescer.detach();
  }
}

/**
 * Sends a command by the host's own `sendCommand`.
 *
 * Host: a command that has a timer keeps it when `sendCommand` wants to start that of `commandTimeout`.
 *
 * @param call - the options of the call, if it has any.
 * @param args - the command, and what else the host passes.
 */
export function sendWith(
  call: CallSettings | undefined,
  client: { sendCommand: AnyFunction },
  args: readonly [HostCommand, ...unknown[]],
): unknown {
  if (call === undefined) return client.sendCommand(...args);
  const { signal, timeout } = call;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const [command] = args as readonly [HostCommand & { setTimeout?(ms: number): void }];
  if (timeout !== undefined) command.setTimeout?.(timeout);
  return guardedIfPromise(client.sendCommand(...args), call, undefined, () => dropUnsent(client, command));
}

/** What a method has returned, with the caller's signal and time, if it is a promise. */
export function guardedIfPromise(
  result: unknown,
  call: CallSettings,
  ms: number | undefined,
  aborted?: () => void,
): unknown {
  return result instanceof Promise ? guarded(result, call, ms, aborted) : result;
}
