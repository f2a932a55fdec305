import { addedBuiltinNames, scriptNamed, scriptNames } from '../host/script.js';
import type { AnyFunction } from '../host/types.js';
import { hotCommandNamed } from './hot-calls.js';
import { type FindRoute, hotMethod } from './hot-path.js';
import { hotScriptMethod } from './hot-scripts.js';

/** The client's methods that define methods on the client itself. */
export const DEFINERS = ['defineCommand', 'addBuiltinCommand'] as const;

/** The host's method that each of ours replaces. */
const originals = new WeakMap<AnyFunction, AnyFunction>();

/**
 * Replaces the methods that the host has defined on the client itself by hot ones. They stay own properties. Methods
 * that users have defined there are not replaced.
 */
export function replaceOwnMethods(client: object, find: FindRoute): void {
  for (const name of definedNames(client)) replaceDefined(client, name, find);
}

/** Does the same for one name and its `Buffer` form. */
export function replaceDefined(client: object, name: string, find: FindRoute): void {
  const methods = client as Record<string, unknown>;
  for (const encoding of ['utf8', null] as const) {
    const methodName = encoding === null ? `${name}Buffer` : name;
    const original = Object.hasOwn(methods, methodName) ? methods[methodName] : undefined;
    if (typeof original !== 'function' || originals.has(original as AnyFunction)) continue;
    const hot = replacementFor(client, name, encoding, original as AnyFunction, find);
    if (hot === undefined) continue;
    originals.set(hot, original as AnyFunction);
    methods[methodName] = hot;
  }
}

/** Puts the host's methods back where ours still are. */
export function restoreOwnMethods(client: object): void {
  const methods = client as Record<string, unknown>;
  for (const name of definedNames(client)) {
    for (const methodName of [name, `${name}Buffer`]) {
      const original = originals.get(methods[methodName] as AnyFunction);
      if (original !== undefined) methods[methodName] = original;
    }
  }
}

function definedNames(client: object): string[] {
  return [...scriptNames(client), ...addedBuiltinNames(client)];
}

function replacementFor(
  client: object,
  name: string,
  encoding: 'utf8' | null,
  original: AnyFunction,
  find: FindRoute,
): AnyFunction | undefined {
  const methodName = encoding === null ? `${name}Buffer` : name;
  const script = scriptNamed(client, name);
  if (script !== undefined) {
    const hot = hotScriptMethod(script, methodName, encoding, original, find);
    if (hot !== undefined) return hot;
  }
  const commandClass = find(client)?.commandClass;
  const command = commandClass && hotCommandNamed(name, commandClass);
  return command && hotMethod(methodName, { command, encoding }, { [methodName]: original }, find);
}
