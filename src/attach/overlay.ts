import { blockingMethods } from '../calls/blocking-warning.js';
import { fastCalls, fastCommandNamed } from '../calls/call-by-name.js';
import { commandMethod, specOf } from '../calls/method.js';
import { ScriptSender } from '../calls/scripts.js';
import { FAST_COMMANDS, methodsNamed } from '../commands/fast-commands.js';
import { type CallTarget, callTargetOf, MARK, type Marked } from '../core/call-target.js';
import { CommandSender, type Sender } from '../core/sender.js';
import { define, methodOf, unwrapped, wrapperOf } from '../host/probe.js';
import { definedNames, scriptNamed } from '../host/script.js';
import type { AnyFunction, HasOptions, HostCommand } from '../host/types.js';
import type { ResolvedOptions } from '../options.js';
import { keepScripts, pipelineMethods, refuseWhole } from '../pipelines/fast-pipeline.js';

/** The overlays: one of each kind per client class. */
const overlays = {
  fast: new WeakMap<object, object>(),
  /** The fast overlay with the layer that refuses calls under `maxPending`. */
  bounded: new WeakMap<object, object>(),
};

/**
 * Inserts the overlay between a client and its class: `client → overlay → Redis.prototype`. The overlay has `duplicate`
 * and the fast methods, so the class gets no properties, and the client only its attachment.
 */
export function addOverlay(client: HasOptions, { maxPending }: ResolvedOptions): void {
  const kind = maxPending !== undefined ? 'bounded' : 'fast';
  Object.setPrototypeOf(client, overlayFor(Object.getPrototypeOf(client), kind));
  for (const name of definedNames(client)) replaceDefined(client, name);
  if (kind === 'bounded' && Object.hasOwn(client, 'sendCommand')) aroundSendCommand(client, client, BOUNDED);
}

/** Removes the overlay from the prototype chain, and restores the host's methods where ours are own properties. */
export function removeOverlay(client: object): void {
  const sendCommand = ownMethod(client, 'sendCommand');
  if (sendCommand !== undefined) define(client, 'sendCommand', unwrapped(sendCommand));
  for (const [methodName] of definedNames(client).flatMap(methodsNamed)) {
    const own = ownMethod(client, methodName);
    const spec = own && specOf(own);
    if (spec !== undefined) define(client, methodName, spec.parent[methodName]);
  }
  const overlay = Object.getPrototypeOf(client) as object;
  const parent = Object.getPrototypeOf(overlay) as object;
  // Other code may have inserted a prototype. Then the overlay stays, finds no mark and passes every call on.
  if (Object.values(overlays).some((ofKind) => ofKind.get(parent) === overlay)) Object.setPrototypeOf(client, parent);
}

/** The client's own method of this name, if it has one. */
function ownMethod(client: object, name: string): AnyFunction | undefined {
  return Object.hasOwn(client, name) ? methodOf(client, name) : undefined;
}

type Methods = Record<string, AnyFunction>;

type Change = (overlay: Methods, parent: Methods) => void;
let change: Change | undefined;
const allOverlays = new Set<WeakRef<object>>();

/** Applies a change to all overlays, including future ones. */
export function changeOverlays(by: Change): void {
  change = by;
  for (const each of allOverlays) {
    const overlay = each.deref();
    if (overlay !== undefined) by(overlay as Methods, Object.getPrototypeOf(overlay) as Methods);
  }
}

function overlayFor(parent: object, kind: keyof typeof overlays): object {
  let overlay = overlays[kind].get(parent);
  if (overlay !== undefined) return overlay;
  overlay = Object.create(parent) as object;
  addMethods(overlay, parent as Methods);
  if (kind === 'bounded') aroundCalls(overlay as Methods, parent as Methods, BOUNDED);
  change?.(overlay as Methods, parent as Methods);
  allOverlays.add(new WeakRef(overlay));
  overlays[kind].set(parent, overlay);
  return overlay;
}

/** Defines the methods, because assignment fails where a class is frozen or a user's accessor is inherited. */
function addMethods(overlay: object, parent: Methods): void {
  const fastMethods = FAST_COMMANDS.flatMap((command) =>
    methodsNamed(command.name).map(([methodName, encoding]) => ({
      methodName,
      parent,
      sender: new CommandSender(command, encoding),
    })),
  );
  // One by one: `Object.fromEntries` takes three times as long.
  for (const spec of [...fastMethods, ...fastCalls(parent), ...blockingMethods(parent)])
    if (methodOf(parent, spec.methodName) !== undefined) define(overlay, spec.methodName, commandMethod(spec));
  const others = { ...definingMethods(parent), ...pipelineMethods(parent), duplicate: duplicateOf(parent) };
  for (const [name, method] of Object.entries(others))
    if (methodOf(parent, name) !== undefined) define(overlay, name, method);
  // Like the host's method.
  Reflect.defineProperty(overlay, 'duplicate', { enumerable: false });
}

function duplicateOf(parent: Methods): AnyFunction {
  return function duplicate(this: unknown, ...args) {
    const copy = (parent.duplicate as AnyFunction).apply(this, args) as object;
    (this as Marked)[MARK]?.attachCopy(copy, args);
    return copy;
  };
}

/** Our own layer around those calls of a client that do not go through its fast methods. */
interface AroundCalls {
  /** Wraps the sending of a host command. All but those in fast pipelines pass through `sendCommand`. */
  sendCommand(target: CallTarget, args: [command: HostCommand, stream: unknown], pass: () => unknown): unknown;
  /** Called with each new pipeline or transaction. */
  made(pipeline: unknown, target: CallTarget, name: 'pipeline' | 'multi'): void;
}

function aroundSendCommand(holder: object, parent: object, around: AroundCalls): void {
  const present = ownMethod(holder, 'sendCommand');
  const behind = () => present ?? ((parent as Methods).sendCommand as AnyFunction);
  const sendCommand = wrapperOf(
    function (this: unknown, ...args) {
      const pass = () => behind().apply(this, args);
      const target = callTargetOf(this);
      return target === undefined ? pass() : around.sendCommand(target, args as [HostCommand, unknown], pass);
    },
    () => unwrapped(behind()),
  );
  // Defining it may fail: the client may have a `sendCommand` that cannot be replaced.
  define(holder, 'sendCommand', sendCommand);
}

export function aroundCalls(overlay: Methods, parent: Methods, around: AroundCalls): void {
  aroundSendCommand(overlay, parent, around);
  // Like the host's method.
  if (Object.hasOwn(overlay, 'sendCommand')) Reflect.defineProperty(overlay, 'sendCommand', { enumerable: false });
  for (const name of ['pipeline', 'multi'] as const) {
    const make = methodOf(overlay, name);
    if (make === undefined) continue;
    define(overlay, name, function (this: unknown, ...args: unknown[]) {
      const result = make.apply(this, args);
      const target = callTargetOf(this);
      // `multi({ pipeline: false })` sends MULTI and returns a promise; a layer may return anything.
      if (target !== undefined && '_queue' in Object(result)) around.made(result, target, name);
      return result;
    });
  }
}

/** The layer that refuses calls beyond `maxPending`. */
const BOUNDED: AroundCalls = {
  sendCommand: ({ admission }, [command, stream], pass) =>
    admission?.refuses(command, stream) ? command.promise : pass(),
  made: refuseWhole,
};

/** The methods that define others on the client itself, where they would hide the overlay's. */
function definingMethods(parent: Record<string, AnyFunction>): Record<string, AnyFunction> {
  const defining = (name: string): AnyFunction =>
    function (this: unknown, ...args) {
      keepScripts(this);
      const result = (parent[name] as AnyFunction).apply(this, args);
      if (callTargetOf(this) !== undefined) replaceDefined(this as object, String(args[0]));
      return result;
    };
  return { defineCommand: defining('defineCommand'), addBuiltinCommand: defining('addBuiltinCommand') };
}

/**
 * Replaces the methods of this name, with and without `Buffer`, that the host defined on the client itself, with fast
 * ones, which are own properties, too. Methods defined by users are kept.
 */
function replaceDefined(client: object, name: string): void {
  for (const [methodName, encoding] of methodsNamed(name)) {
    const original = ownMethod(client, methodName);
    if (original === undefined || specOf(original) !== undefined) continue;
    const sender = senderOf(client, name, encoding, original);
    if (sender === undefined) continue;
    // No prototype, because V8 would then keep a hidden class for each name.
    const parent = Object.create(null) as Record<string, unknown>;
    parent[methodName] = original;
    define(client, methodName, commandMethod({ methodName, parent, sender }));
  }
}

function senderOf(client: object, name: string, encoding: 'utf8' | null, original: AnyFunction): Sender | undefined {
  const script = scriptNamed(client, name);
  const sender = script && ScriptSender.of(script, encoding, original);
  if (sender !== undefined) return sender;
  const commandClass = callTargetOf(client)?.commandClass;
  const command = commandClass && fastCommandNamed(name, commandClass);
  return command && new CommandSender(command, encoding);
}
