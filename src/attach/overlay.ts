import { blockingMethods } from '../calls/blocking-warning.js';
import { fastCalls, fastCommandNamed } from '../calls/call-by-name.js';
import { commandMethod, formOf } from '../calls/method.js';
import { ScriptSender } from '../calls/scripts.js';
import { FAST_COMMANDS, methodsNamed } from '../commands/fast-commands.js';
import { type CallTarget, callTargetOf, MARK, type Marked } from '../core/call-target.js';
import { CommandSender, type Sender } from '../core/sender.js';
import { unwrapped, wrapperOf } from '../host/probe.js';
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
  const methods = client as Record<string, unknown>;
  const { sendCommand } = client as Methods;
  if (sendCommand && Object.hasOwn(client, 'sendCommand')) Reflect.set(client, 'sendCommand', unwrapped(sendCommand));
  for (const [methodName] of definedNames(client).flatMap(methodsNamed)) {
    const form = Object.hasOwn(methods, methodName) ? formOf(methods[methodName] as AnyFunction) : undefined;
    if (form !== undefined) methods[methodName] = form.parent[methodName];
  }
  const overlay = Object.getPrototypeOf(client) as object;
  const parent = Object.getPrototypeOf(overlay) as object;
  // Other code may have put a prototype in front. Then the overlay stays, finds no mark and passes every call on.
  if (Object.values(overlays).some((ofKind) => ofKind.get(parent) === overlay)) Object.setPrototypeOf(client, parent);
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
  overlay = Object.create(parent, {
    duplicate: {
      value(this: Marked, ...args: unknown[]) {
        const copy = (parent as { duplicate(...args: unknown[]): object }).duplicate.apply(this, args);
        this[MARK]?.attachCopy(copy, args);
        return copy;
      },
      writable: true,
      configurable: true,
    },
  }) as object;
  addCommandMethods(overlay as Methods, parent as Methods);
  if (kind === 'bounded') aroundCalls(overlay as Methods, parent as Methods, BOUNDED);
  change?.(overlay as Methods, parent as Methods);
  allOverlays.add(new WeakRef(overlay));
  overlays[kind].set(parent, overlay);
  return overlay;
}

function addCommandMethods(overlay: Methods, parent: Methods): void {
  const fastMethods = FAST_COMMANDS.flatMap((command) =>
    methodsNamed(command.name).map(([methodName, encoding]) => ({
      methodName,
      parent,
      sender: new CommandSender(command, encoding),
    })),
  );
  // One by one: `Object.fromEntries` takes three times as long.
  for (const form of [...fastMethods, ...fastCalls(parent), ...blockingMethods(parent)])
    if (typeof parent[form.methodName] === 'function') overlay[form.methodName] = commandMethod(form);
  Object.assign(overlay, definingMethods(parent), pipelineMethods(parent));
}

/** A layer of ours around all calls of a client, beside its fast methods. */
interface AroundCalls {
  /** Around a command of the host's: all but those of fast pipelines pass through `sendCommand`. */
  sendCommand(target: CallTarget, args: [command: HostCommand, stream: unknown], pass: () => unknown): unknown;
  /** A pipeline or transaction was made. */
  made(pipeline: unknown, target: CallTarget, name: 'pipeline' | 'multi'): void;
}

function aroundSendCommand(holder: object, parent: object, around: AroundCalls): void {
  const present = Object.hasOwn(holder, 'sendCommand') ? (holder as Methods).sendCommand : undefined;
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
  Reflect.set(holder, 'sendCommand', sendCommand);
}

export function aroundCalls(overlay: Methods, parent: Methods, around: AroundCalls): void {
  aroundSendCommand(overlay, parent, around);
  for (const name of ['pipeline', 'multi'] as const) {
    const make = overlay[name] as AnyFunction;
    overlay[name] = function (this: unknown, ...args) {
      const result = make.apply(this, args);
      const target = callTargetOf(this);
      // `multi({ pipeline: false })` sends MULTI, and returns a promise; a layer may return anything.
      if (target !== undefined && '_queue' in Object(result)) around.made(result, target, name);
      return result;
    };
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
  const methods = client as Record<string, unknown>;
  for (const [methodName, encoding] of methodsNamed(name)) {
    const original = Object.hasOwn(methods, methodName) ? methods[methodName] : undefined;
    if (typeof original !== 'function' || formOf(original as AnyFunction) !== undefined) continue;
    const sender = senderOf(client, name, encoding, original as AnyFunction);
    if (sender === undefined) continue;
    // Without a prototype: V8 would keep a hidden class for each name.
    const parent = Object.create(null) as Record<string, unknown>;
    parent[methodName] = original;
    methods[methodName] = commandMethod({ methodName, parent, sender });
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
