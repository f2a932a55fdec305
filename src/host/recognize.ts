/**
 * Whether a client is of a release in `known-releases.ts`: only such a client is coalesced, since the rest of this folder
 * relies on how they work inside. Which of them were run, and which only compared: docs/compatibility.md.
 *
 * Where its modules are in Node's module cache, all their text is compared. In a bundle, in Jest, on Bun and on Deno it is
 * the names in the methods that can be reached from the client.
 */
import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import Module from 'node:module';
import { types } from 'node:util';
import { fileDigest, filesDigest, type ModuleCache, methodDigest, sourceOf } from './digest.js';
import { KNOWN_METHODS, KNOWN_RELEASES } from './known-releases.js';
import { isUnpatchedPipelineFunction } from './pipeline.js';
import { commandClassOf } from './probe.js';
import type { AnyFunction } from './types.js';

/** Where the classes are in both packages, and in ioredis 4. */
const CLASS_FILE = /[\\/]built[\\/](?:Redis|redis[\\/]index|cluster[\\/]index)\.js$/;
/** What the queue, the decoder and callbacks rest on. */
export const DEPENDENCIES = ['denque', 'redis-parser', 'standard-as-callback'];

type Classes = Record<string, object>;

const known = new Set(Object.values(KNOWN_RELEASES));
/** By the class's prototype, or a package's module. */
const found = new WeakMap<object, string>();

/** Where no release is known: what was found, such as `ioredis 7.0.0`. Otherwise undefined. Looks once per class. */
export function unknownRelease(client: object): string | undefined {
  const prototype = hostPrototype(client);
  const name = found.get(prototype) ?? look(client, prototype);
  found.set(prototype, name);
  return name === '' ? undefined : name;
}

/** The one of the host's class: users extend it. */
export function hostPrototype(client: object): object {
  let last = Object.getPrototypeOf(client) as object;
  for (let prototype = last; prototype !== null; prototype = Object.getPrototypeOf(prototype) as object)
    if (Object.hasOwn(prototype, 'setStatus')) last = prototype;
  return last;
}

function look(client: object, prototype: object): string {
  const cache = moduleCache();
  const path = Object.keys(cache).find(
    (file) => CLASS_FILE.test(file) && prototypeIn(cache[file]?.exports) === prototype,
  );
  if (path === undefined) return lookAtMethods(client, prototype);
  const folder = path.replace(/(?<=[\\/]built[\\/]).*$/, '');
  const module = cache[`${folder}Redis.js`] ?? {};
  const name = found.get(module) ?? lookAtFiles(folder, cache) ?? lookAtMethods(client, prototype);
  found.set(module, name);
  return name;
}

/** V8 alone tells what text was loaded, and Deno puts more around it. */
function moduleCache(): ModuleCache {
  if (process.versions.bun !== undefined || process.versions.deno !== undefined) return {};
  // Any path will do. Jest's cache is a Proxy, of modules whose text it has wrapped in its own way.
  const { cache } = Module.createRequire(process.execPath);
  return types.isProxy(cache) ? {} : cache;
}

function prototypeIn(exported: unknown): unknown {
  const { default: named = exported } = (exported ?? {}) as { default?: unknown };
  return (named as { prototype?: unknown } | undefined)?.prototype;
}

const lookAtMethods = (client: object, prototype: object) =>
  areMethodsKnown(client, prototype) ? '' : 'a bundled or otherwise loaded client';

/** Undefined if they cannot be read: they may be gone by now. */
function lookAtFiles(folder: string, cache: ModuleCache): string | undefined {
  try {
    return nameByFiles(folder, cache);
  } catch {
    return undefined;
  }
}

function nameByFiles(folder: string, cache: ModuleCache): string {
  const { name, version, dependencies } = JSON.parse(readFileSync(`${folder}../package.json`, 'utf8')) as {
    name: string;
    version: string;
    dependencies: Record<string, string>;
  };
  const release = `${name} ${version}`;
  if (!known.has(filesDigest(folder, cache))) return release in KNOWN_RELEASES ? `${release}, changed` : release;
  const changed = DEPENDENCIES.filter((dependency) => dependency in dependencies).find(
    (dependency) => !known.has(dependencyDigest(dependency, folder, cache)),
  );
  return changed === undefined ? '' : `${release} with another ${changed}`;
}

export function dependencyDigest(name: string, folder: string, cache: ModuleCache): string {
  // Host: what the package exports is in its main file, or in one beside it.
  const main = Module.createRequire(folder).resolve(name);
  const exported = cache[main]?.exports;
  const path = Object.keys(cache).find((file) => file !== main && cache[file]?.exports === exported) ?? main;
  return fileDigest(path, exported);
}

/** A method that is not known may be a layer over the client: a function, and not from its classes. */
const IN_FUNCTIONS = /\b(?:_queue|_transactions|replyPending|addBatch|showFriendlyErrorStack|keyPrefix)\b/;
/** Fewer than each class has, since layers replace some. */
const LEAST_METHODS = 30;

function areMethodsKnown(client: object, prototype: object): boolean {
  let methods = 0;
  for (const [name, method] of reachableMethods(client, prototype)) {
    if (KNOWN_METHODS.has(methodDigest(name, method))) methods += 1;
    else if (!Object.hasOwn(method, 'prototype') || IN_FUNCTIONS.test(sourceOf(method))) return false;
  }
  return methods >= LEAST_METHODS;
}

/** Methods of the client's class and of its commands and pipelines, and some of those that are generated, by their names. */
export function reachableMethods(client: object, prototype: object): [string, AnyFunction][] {
  const own = prototype as { pipeline?: AnyFunction } & Record<string, unknown>;
  const commandClass = commandClassOf(client);
  const { echo, echoBuffer, call, callBuffer, defineCommand, addBuiltinCommand } = own;
  const classes: Classes = {
    client: prototype,
    commander: { echo, echoBuffer, call, callBuffer, defineCommand, addBuiltinCommand },
    ...(commandClass && { command: commandClass.prototype }),
    ...(isUnpatchedPipelineFunction(own.pipeline) && {
      pipeline: Object.getPrototypeOf(own.pipeline.call(client)) as object,
    }),
  };
  return Object.entries(classes).flatMap(([className, members]) =>
    Object.entries(Object.getOwnPropertyDescriptors(members)).flatMap(
      ([name, { value, get }]): [string, AnyFunction][] => {
        const method: unknown = value ?? get;
        // Node's own are part of the class. A minifier changes what `parseOptions` looks like, and nothing relies on it.
        if (typeof method !== 'function' || name in EventEmitter.prototype || name === 'parseOptions') return [];
        return [[`${className}.${name}`, method as AnyFunction]];
      },
    ),
  );
}
