import { inspect } from 'node:util';
import type { ClientCache, Coalesced, Coalescer } from '../handle.js';
import { definedNames, scriptNamed } from '../host/script.js';
import { showsCallers } from '../host/state.js';
import type { AnyFunction, HasOptions } from '../host/types.js';
import { type CallOptions, DEFAULT_OPTIONS, type ResolvedOptions } from '../options.js';
import { type CoalescerStats, Stats } from '../stats.js';
import { processWide } from '../util/process-wide.js';
import { blockingMethods } from './blocking.js';
import { hotCalls, hotCommandNamed } from './hot-calls.js';
import {
  CommandSender,
  commandMethod,
  formOf,
  hotMethods,
  MARK,
  methodsNamed,
  routeOf,
  type Sender,
} from './hot-path.js';
import { ScriptSender } from './hot-scripts.js';
import { pipelineMethods } from './light-pipeline.js';
import { viewOf } from './view.js';

/** What is attached to a client or a Cluster, under `MARK`: its handle, and the route of its methods. */
export abstract class Attachment implements Coalescer {
  enabled = true;
  abstract readonly client: object;
  abstract readonly options: ResolvedOptions;
  abstract readonly cache: ClientCache | undefined;
  abstract stats(): CoalescerStats;
  abstract flush(): void;
  /** Coalesces a copy that the host's `duplicate(...args)` made. */
  abstract attachCopy(copy: object, args: readonly unknown[]): void;
  /** Undoes all but the overlay. */
  protected abstract leave(): void;

  withOptions(options: CallOptions): object {
    return viewOf(this.client, options);
  }

  detach(): void {
    if (attachedTo(this.client) !== this) return;
    removeOverlay(this.client, this);
    this.enabled = false;
    this.leave();
  }

  /** Without the client or Cluster, whose options may hold a password and whose queues hold arguments. */
  toJSON(): object {
    return { options: this.options, stats: this.stats() };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}

interface Marked {
  [MARK]?: Attachment;
}

/**
 * The overlays by form, one of each per class of clients. `bare` has no command methods, so none of our functions is on
 * the stack of their callers.
 */
const overlays = { hot: new WeakMap<object, object>(), bare: new WeakMap<object, object>() };

/**
 * Clients that `register` has coalesced, without being asked by their code, which may have another copy of this package:
 * in a bundle, or of another version.
 */
const provisional = processWide('provisional', () => new WeakSet<object>());

export function markProvisional(client: object): void {
  provisional.add(client);
}

/** Code asks for a client's options itself: makes one that `register` has coalesced plain again; false for others. */
export function releaseProvisional(client: object): boolean {
  if (!provisional.delete(client)) return false;
  attachedTo(client)?.detach();
  return true;
}

/** The attachment of `client`, if it is coalesced, by this copy of the package or another one. */
export function attachedTo(client: object): Coalescer | undefined {
  return (client as Marked)[MARK];
}

/**
 * Puts the overlay between a client and its class, `client → overlay → Redis.prototype`. The overlay holds `duplicate`,
 * `coalescer` and, unless it is bare, the hot methods. So a client gets one additional own property, and its class
 * none.
 */
export function addOverlay(client: HasOptions, attached: Attachment): void {
  const { blocking, splitKeys } = attached.options;
  const form = showsCallers(client) && !blocking && !splitKeys ? 'bare' : 'hot';
  if (idleHandleOf(client) !== undefined) Reflect.deleteProperty(client, 'coalescer');
  Object.defineProperty(client, MARK, { value: attached, configurable: true });
  Object.setPrototypeOf(client, overlayFor(Object.getPrototypeOf(client), form));
  if (form === 'hot') for (const name of definedNames(client)) replaceDefined(client, name);
}

/**
 * The client keeps the handle, as one of a plain client, so that its options and last counters can be read, and
 * `coalesce()` finds the options again.
 */
function removeOverlay(client: object, attached: Attachment): void {
  Reflect.deleteProperty(client, MARK);
  restoreOwnMethods(client);
  keepHandle(client, attached);
  const overlay = Object.getPrototypeOf(client) as object;
  const parent = Object.getPrototypeOf(overlay) as object;
  // Other code may have put a prototype in front. Then the overlay stays, finds no mark and passes every call on.
  if (overlays.hot.get(parent) === overlay || overlays.bare.get(parent) === overlay) {
    Object.setPrototypeOf(client, parent);
  }
}

function overlayFor(parent: object, form: keyof typeof overlays): object {
  let overlay = overlays[form].get(parent);
  if (overlay === undefined) {
    overlay = createBareOverlay(parent);
    if (form === 'hot') addCommandMethods(overlay, parent as Record<string, AnyFunction>);
    overlays[form].set(parent, overlay);
  }
  return overlay;
}

function createBareOverlay(parent: object): object {
  const overlay = Object.create(parent) as object;
  Object.defineProperties(overlay, {
    coalescer: {
      get(this: Marked) {
        return this[MARK];
      },
      configurable: true,
    },
    duplicate: {
      value(this: Marked, ...args: unknown[]) {
        const copy = (parent as { duplicate(...args: unknown[]): object }).duplicate.apply(this, args);
        // A copy of the drop-in class is coalesced already.
        if (this[MARK] !== undefined && (!('coalescer' in copy) || releaseProvisional(copy))) {
          this[MARK].attachCopy(copy, args);
        }
        return copy;
      },
      writable: true,
      configurable: true,
    },
  });
  return overlay;
}

function addCommandMethods(overlay: object, parent: Record<string, AnyFunction>): void {
  const forms = [...hotMethods(parent), ...hotCalls(parent), ...blockingMethods(parent)];
  const methods: [string, AnyFunction][] = [
    ...forms.map((form): [string, AnyFunction] => [form.methodName, commandMethod(form)]),
    ...Object.entries(followingMethods(parent)),
  ];
  const known = methods.filter(([name]) => typeof parent[name] === 'function');
  Object.assign(overlay, Object.fromEntries(known), pipelineMethods(parent));
}

/** Methods of the client after which there is something to do here. */
function followingMethods(parent: Record<string, AnyFunction>): Record<string, AnyFunction> {
  const following = (name: string, then: (client: object, args: readonly unknown[]) => void): AnyFunction =>
    function (this: unknown, ...args) {
      const result = (parent[name] as AnyFunction).apply(this, args);
      if (routeOf(this) !== undefined) then(this as object, args);
      return result;
    };
  // What the host defines on the client itself hides the overlay.
  const defined = (client: object, [name]: readonly unknown[]) => replaceDefined(client, String(name));
  return {
    defineCommand: following('defineCommand', defined),
    addBuiltinCommand: following('addBuiltinCommand', defined),
    disconnect: following('disconnect', (client, [reconnect]) => {
      if (!reconnect) routeOf(client)?.blocking?.disconnected?.();
    }),
  };
}

/**
 * Replaces what the host has defined on the client itself under a name, and its `Buffer` form, by hot methods. They stay
 * own properties. Methods that users have defined there are not replaced.
 */
function replaceDefined(client: object, name: string): void {
  const methods = client as Record<string, unknown>;
  for (const [methodName, encoding] of methodsNamed(name)) {
    const original = Object.hasOwn(methods, methodName) ? methods[methodName] : undefined;
    if (typeof original !== 'function' || formOf(original as AnyFunction) !== undefined) continue;
    const sender = senderOf(client, name, encoding, original as AnyFunction);
    if (sender !== undefined)
      methods[methodName] = commandMethod({ methodName, parent: { [methodName]: original }, sender });
  }
}

/** Puts the host's methods back where ours still are. */
function restoreOwnMethods(client: object): void {
  const methods = client as Record<string, unknown>;
  for (const [methodName] of definedNames(client).flatMap(methodsNamed)) {
    const form = Object.hasOwn(methods, methodName) ? formOf(methods[methodName] as AnyFunction) : undefined;
    if (form !== undefined) methods[methodName] = form.parent[methodName];
  }
}

function senderOf(client: object, name: string, encoding: 'utf8' | null, original: AnyFunction): Sender | undefined {
  const script = scriptNamed(client, name);
  const sender = script && ScriptSender.of(script, encoding, original);
  if (sender !== undefined) return sender;
  const commandClass = routeOf(client)?.commandClass;
  const command = commandClass && hotCommandNamed(name, commandClass);
  return command && new CommandSender({ command, encoding });
}

/**
 * Gives a client that stays plain its handle, unless it has one: code that uses the handle still works, and sees that
 * nothing was coalesced.
 */
export function addIdleHandle(client: object, options: ResolvedOptions): void {
  if ((client as Partial<Coalesced>).coalescer !== undefined) return;
  keepHandle(client, {
    enabled: false,
    options,
    cache: undefined,
    stats: () => new Stats().snapshot(0, 0),
    withOptions: (call) => viewOf(client, call),
    flush() {},
    detach() {},
  });
}

/** Keeps a handle of a plain client as its own property. A frozen client keeps none. */
function keepHandle(client: object, handle: Coalescer): void {
  Reflect.defineProperty(client, 'coalescer', { value: handle, configurable: true });
}

/** The options that a client had before `detach()`; the defaults if it was not coalesced. */
export function lastOptions(client: object): ResolvedOptions {
  return idleHandleOf(client)?.options ?? DEFAULT_OPTIONS;
}

/** The handle of a plain client, whichever copy of this package made it. */
function idleHandleOf(client: object): Coalescer | undefined {
  const own = Object.getOwnPropertyDescriptor(client, 'coalescer')?.value as Coalescer | undefined;
  return own?.enabled === false ? own : undefined;
}
