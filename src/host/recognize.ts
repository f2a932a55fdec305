/**
 * Whether a client is of a release in `known-releases.ts`: only such a client is coalesced (`leavePlainIfUnknown`,
 * `attach/attachment.ts`), since the rest of this folder relies on how they work inside. Which of them were run, and
 * which only compared: docs/compatibility.md.
 *
 * Where its modules are in Node's module cache, all their text is compared. In a bundle, in Jest, on Bun and on Deno it is
 * the names in the methods that can be reached from the client.
 */
import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import Module from 'node:module';
import { types } from 'node:util';
import { isHostCluster } from './cluster.js';
import { filesDigest, type LoadedModules, methodDigest } from './digest.js';
import { KNOWN_METHODS, KNOWN_RELEASES } from './known-releases.js';
import { isUnpatchedPipelineFunction } from './pipeline.js';
import { commandClassOf, hostPrototype, sourceOf } from './probe.js';
import type { AnyFunction } from './types.js';

/** The path of the modules that export the classes, in both packages and in ioredis 4. */
const CLASS_FILE = /[\\/]built[\\/](?:Redis|redis[\\/]index|cluster[\\/]index)\.js$/;
type Classes = Record<string, object>;

const known = new Set(Object.keys(KNOWN_RELEASES).flatMap((digests) => digests.split(' ')));
/** Findings by the class's prototype: an empty text for a known release, else the name to report. */
const found = new WeakMap<object, string>();

/** The name of an unknown release, such as `ioredis 7.0.0`; undefined for a known one. Looks once per class. */
export function unknownRelease(client: object): string | undefined {
  const prototype = hostPrototype(client) ?? (Object.getPrototypeOf(client) as object);
  const name = found.get(prototype) ?? look(client, prototype);
  found.set(prototype, name);
  return name === '' ? undefined : name;
}

function look(client: object, prototype: object): string {
  const cache = moduleCache();
  // Services have thousands of modules: the cheap question first.
  const path = Object.keys(cache).find(
    (file) => file.includes('built') && CLASS_FILE.test(file) && prototypeIn(cache[file]) === prototype,
  );
  const folder = path?.replace(/(?<=[\\/]built[\\/]).*$/, '');
  const name = folder && lookAtFiles(folder, cache, isHostCluster(client));
  return name ?? (areMethodsKnown(client, prototype) ? '' : 'a bundled or otherwise loaded client');
}

/** V8 alone tells what text was loaded, and Deno puts more around it. */
function moduleCache(): LoadedModules {
  if (process.versions.bun !== undefined || process.versions.deno !== undefined) return {};
  // Any path will do. Jest's cache is a Proxy, of modules whose text it has wrapped in its own way.
  const { cache } = Module.createRequire(process.execPath);
  return types.isProxy(cache) ? {} : cache;
}

/** The prototype of the class that a module exports. */
function prototypeIn(module: LoadedModules[string]): unknown {
  const { default: named = module?.exports } = (module?.exports ?? {}) as { default?: unknown };
  return (named as { prototype?: unknown } | undefined)?.prototype;
}

/** Looks at its files. Undefined if they do not tell: a loader keeps what they require elsewhere, or intrinsics are frozen. */
function lookAtFiles(folder: string, cache: LoadedModules, isCluster: boolean): string | undefined {
  try {
    const digest = filesDigest(folder, cache, isCluster);
    if (digest === undefined) return undefined;
    if (known.has(digest)) return '';
  } catch {
    return undefined;
  }
  const name = nameOf(folder);
  // The nodes of an unknown Cluster stay plain, too.
  for (const path of Object.keys(cache))
    if (path.startsWith(folder) && CLASS_FILE.test(path)) found.set(prototypeIn(cache[path]) as object, name);
  return name;
}

function nameOf(folder: string): string {
  try {
    const { name, version } = JSON.parse(readFileSync(`${folder}../package.json`, 'utf8')) as Record<string, string>;
    const release = `${name} ${version}`;
    return Object.values(KNOWN_RELEASES).flat().includes(release) ? `${release}, it or a dependency changed` : release;
  } catch {
    return 'a client without its package.json';
  }
}

/** A method that is not known may be of a layer over the client: then it is no method of a class, and has none of these words. */
const IN_FUNCTIONS = /\b(?:_queue|_transactions|replyPending|addBatch|showFriendlyErrorStack|keyPrefix)\b/;
/** The fewest known methods of a known client: fewer than each class has, since layers replace some. */
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
