import { blockingMethods } from '../calls/blocking-warning.js';
import { fastCalls, fastCommandNamed } from '../calls/call-by-name.js';
import { commandMethod, formOf } from '../calls/method.js';
import { ScriptSender } from '../calls/scripts.js';
import { FAST_COMMANDS, methodsNamed } from '../commands/fast-commands.js';
import { type CallTarget, callTargetOf, MARK, type Marked } from '../core/call-target.js';
import { CommandSender, type Sender } from '../core/sender.js';
import { define, methodOf, unwrapped, wrapperOf } from '../host/probe.js';
import { definedNames, scriptNamed } from '../host/script.js';
import type { AnyFunction, HasOptions, HostCommand } from '../host/types.js';
import type { ResolvedOptions } from '../options.js';
import { pipelineMethods, refuseWhole } from '../pipelines/fast-pipeline.js';

/** The overlays by kind, one of each per class of clients. */
const overlays = {
  fast: new WeakMap<object, object>(),
  /** The fast overlay with the layer that refuses calls under `maxPending`. */
  bounded: new WeakMap<object, object>(),
};

/**
 * Puts the overlay between a client and its class, `client → overlay → Redis.prototype`. The overlay holds `duplicate`
 * and the fast methods. So the class gets no property, and the client only its attachment.
 */
export function addOverlay(client: HasOptions, { maxPending }: ResolvedOptions): void {
  const kind = maxPending !== undefined ? 'bounded' : 'fast';
  Object.setPrototypeOf(client, overlayFor(Object.getPrototypeOf(client), kind));
  for (const name of definedNames(client)) replaceDefined(client, name);
  if (kind === 'bounded' && Object.hasOwn(client, 'sendCommand')) aroundSendCommand(client, client, BOUNDED);
}

/** Puts the client's class back, and the host's methods where ours still are among the client's own. */
export function removeOverlay(client: object): void {
  const sendCommand = ownMethod(client, 'sendCommand');
  if (sendCommand !== undefined) define(client, 'sendCommand', unwrapped(sendCommand));
  for (const [methodName] of definedNames(client).flatMap(methodsNamed)) {
    const own = ownMethod(client, methodName);
    const form = own && formOf(own);
    if (form !== undefined) define(client, methodName, form.parent[methodName]);
  }
  const overlay = Object.getPrototypeOf(client) as object;
  const parent = Object.getPrototypeOf(overlay) as object;
  // Other code may have put a prototype in front. Then the overlay stays, finds no mark and passes every call on.
  if (Object.values(overlays).some((ofKind) => ofKind.get(parent) === overlay)) Object.setPrototypeOf(client, parent);
}

/** What the client itself has under a name, if it is a method. */
function ownMethod(client: object, name: string): AnyFunction | undefined {
  return Object.hasOwn(client, name) ? methodOf(client, name) : undefined;
}

type Methods = Record<string, AnyFunction>;

type Change = (overlay: Methods, parent: Methods) => void;
let change: Change | undefined;
const allOverlays = new Set<WeakRef<object>>();

/** Changes all overlays, those that are made later, too. */
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

/** Ours are defined, not assigned: a class may be frozen, or have accessors of the user's, which stay as they are. */
function addMethods(overlay: object, parent: Methods): void {
  const fastMethods = FAST_COMMANDS.flatMap((command) =>
    methodsNamed(command.name).map(([methodName, encoding]) => ({
      methodName,
      parent,
      sender: new CommandSender(command, encoding),
    })),
  );
  // One by one: `Object.fromEntries` takes three times as long.
  for (const form of [...fastMethods, ...fastCalls(parent), ...blockingMethods(parent)])
    if (methodOf(parent, form.methodName) !== undefined) define(overlay, form.methodName, commandMethod(form));
  const others = { ...definingMethods(parent), ...pipelineMethods(parent), duplicate: duplicateOf(parent) };
  for (const [name, method] of Object.entries(others))
    if (methodOf(parent, name) !== undefined) define(overlay, name, method);
  // As the host's.
  Reflect.defineProperty(overlay, 'duplicate', { enumerable: false });
}

function duplicateOf(parent: Methods): AnyFunction {
  return function duplicate(this: unknown, ...args) {
    const copy = (parent.duplicate as AnyFunction).apply(this, args) as object;
    (this as Marked)[MARK]?.attachCopy(copy, args);
    return copy;
  };
}

/** A layer of ours around all calls of a client, beside its fast methods. */
interface AroundCalls {
  /** Around a command of the host's: all but those of fast pipelines pass through `sendCommand`. */
  sendCommand(target: CallTarget, args: [command: HostCommand, stream: unknown], pass: () => unknown): unknown;
  /** A pipeline or transaction was made. */
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
  // A client may have one that cannot be replaced.
  define(holder, 'sendCommand', sendCommand);
}

export function aroundCalls(overlay: Methods, parent: Methods, around: AroundCalls): void {
  aroundSendCommand(overlay, parent, around);
  for (const name of ['pipeline', 'multi'] as const) {
    const make = methodOf(overlay, name);
    if (make === undefined) continue;
    define(overlay, name, function (this: unknown, ...args: unknown[]) {
      const result = make.apply(this, args);
      const target = callTargetOf(this);
      // `multi({ pipeline: false })` sends MULTI, and returns a promise; a layer may return anything.
      if (target !== undefined && '_queue' in Object(result)) around.made(result, target, name);
      return result;
    });
  }
}

/** The layer that refuses calls under `maxPending`. */
const BOUNDED: AroundCalls = {
  sendCommand: ({ admission }, [command, stream], pass) =>
    admission?.refuses(command, stream) ? command.promise : pass(),
  made: refuseWhole,
};

/** Methods of the client that define others on it, which hide the overlay. */
function definingMethods(parent: Record<string, AnyFunction>): Record<string, AnyFunction> {
  const defining = (name: string): AnyFunction =>
    function (this: unknown, ...args) {
      const result = (parent[name] as AnyFunction).apply(this, args);
      if (callTargetOf(this) !== undefined) replaceDefined(this as object, String(args[0]));
      return result;
    };
  return { defineCommand: defining('defineCommand'), addBuiltinCommand: defining('addBuiltinCommand') };
}

/**
 * Replaces what the host has defined on the client itself under a name, and its `Buffer` form, by fast methods. They
 * stay own properties. Methods that users have defined there are not replaced.
 */
function replaceDefined(client: object, name: string): void {
  for (const [methodName, encoding] of methodsNamed(name)) {
    const original = ownMethod(client, methodName);
    if (original === undefined || formOf(original) !== undefined) continue;
    const sender = senderOf(client, name, encoding, original);
    if (sender === undefined) continue;
    // Without a prototype: V8 would keep a hidden class for each name.
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
