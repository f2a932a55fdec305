/**
 * Whether a client is of a release in `known-releases.ts`: only such a client has the fast path (`groundOf` of
 * `attach/cork-attachment.ts`), since the rest of this folder relies on how they work inside. Which of them were run,
 * and which only compared: docs/compatibility.md.
 *
 * Compared are the files that order commands and replies, byte by byte as they were loaded, where its modules are in
 * Node's module cache; else (in a bundle, in Jest, on Bun and Deno) the names in the methods that can be reached. What
 * each catches, and what it leaves: `digest.ts`. What an APM has wrapped within `Redis.js` is compared with the text on
 * disk (`isWrapped`), and is then a layer like one that was put there later (`isUnpatchedSendCommand`).
 */
import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import Module from 'node:module';
import { types } from 'node:util';
import { isHostCluster } from './cluster.js';
import {
  COMMENTS,
  classOf,
  fileHash,
  filesDigest,
  type Hash,
  type LoadedModules,
  loadedHash,
  sourceOf,
} from './digest.js';
import { KNOWN_RELEASES } from './known-releases.js';
import { isUnpatchedPipelineFunction } from './pipeline.js';
import { commandClassOf, hostPrototype, isKnownMethod } from './probe.js';
import type { AnyFunction } from './types.js';

/** The path of the modules that export the classes, in both packages and in ioredis 4. */
const CLASS_FILE = /[\\/]built[\\/](?:Redis|redis[\\/]index|cluster[\\/]index)\.js$/;
type Classes = Record<string, object>;

const known = new Set(Object.keys(KNOWN_RELEASES).flatMap((digests) => digests.split(' ')));

/** A client of no known release. */
export interface UnknownClient {
  /** Such as `ioredis 7.0.0`. */
  readonly name: string;
  /**
   * `release`: one that is not in the table. `changed`: one that is, but it or a dependency was patched on disk.
   * `rewritten`: the same, as it was loaded. `bundle`: its files cannot be found, and its methods are not known.
   */
  readonly cause: 'release' | 'changed' | 'rewritten' | 'bundle';
  /** Who has rewritten it, if that can be told. */
  readonly by?: string;
}

/** Findings by the class's prototype; undefined for a known release. */
const found = new WeakMap<object, UnknownClient | undefined>();

/** What is known of a client of an unknown release; undefined for a known one. Looks once per class. */
export function unknownRelease(client: object): UnknownClient | undefined {
  const prototype = hostPrototype(client) ?? (Object.getPrototypeOf(client) as object);
  if (!found.has(prototype)) found.set(prototype, look(client, prototype));
  return found.get(prototype);
}

function look(client: object, prototype: object): UnknownClient | undefined {
  const cache = moduleCache();
  // Services have thousands of modules: the cheap question first.
  const path = Object.keys(cache).find(
    (file) => file.includes('built') && CLASS_FILE.test(file) && prototypeIn(cache[file]) === prototype,
  );
  const folder = path?.replace(/(?<=[\\/]built[\\/]).*$/, '');
  const fromFiles = folder === undefined ? 'unknown' : lookAtFiles(folder, cache, isHostCluster(client));
  return fromFiles === 'unknown' ? lookAtMethods(client, prototype) : fromFiles;
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

/** `unknown` if its files do not tell: a loader keeps what they require elsewhere, or intrinsics are frozen. */
function lookAtFiles(folder: string, cache: LoadedModules, isCluster: boolean): UnknownClient | 'unknown' | undefined {
  const digestBy = (hash: Hash) => filesDigest(folder, cache, isCluster, hash);
  const isKnown = (hash: Hash) => known.has(digestBy(hash) ?? '');
  let finding: UnknownClient;
  try {
    const digest = digestBy(loadedHash);
    if (digest === undefined) return 'unknown';
    if (known.has(digest) || isKnown(hashUnlessWrapped)) return undefined;
    finding = findingOf(folder, cache, isKnown(fileHash));
  } catch {
    return 'unknown';
  }
  // The nodes of an unknown Cluster stay plain, too.
  for (const path of Object.keys(cache))
    if (path.startsWith(folder) && CLASS_FILE.test(path)) found.set(prototypeIn(cache[path]) as object, finding);
  return finding;
}

/** The hash of the text as it was loaded; on disk, if that differs from it by what was put around methods. */
const hashUnlessWrapped: Hash = (module, name) => {
  const isOnDisk =
    name === 'Redis.js' && isWrapped(classOf(module) as AnyFunction, readFileSync(module.filename, 'utf8'));
  return (isOnDisk ? fileHash : loadedHash)(module, name);
};

function findingOf(folder: string, cache: LoadedModules, isKnownOnDisk: boolean): UnknownClient {
  const release = releaseOf(folder);
  if (isKnownOnDisk) {
    const loaded = cache[`${folder}Redis.js`];
    const by = loaded && rewriterOf(sourceOf(classOf(loaded) as AnyFunction));
    return { name: `${release}, rewritten as it was loaded`, cause: 'rewritten', ...(by && { by }) };
  }
  return Object.values(KNOWN_RELEASES).flat().includes(release)
    ? { name: `${release}, it or a dependency changed`, cause: 'changed' }
    : { name: release, cause: 'release' };
}

function releaseOf(folder: string): string {
  try {
    const { name, version } = JSON.parse(readFileSync(`${folder}../package.json`, 'utf8')) as Record<string, string>;
    return `${name} ${version}`;
  } catch {
    return 'a client without its package.json';
  }
}

/** An unknown method may be of a layer over the client: then it is of no class, and has none of these words. */
const IN_FUNCTIONS = /\b(?:_queue|_transactions|replyPending|addBatch|showFriendlyErrorStack|keyPrefix)\b/;
/** The fewest known methods of a known client: fewer than each class has, since layers replace some. */
const LEAST_METHODS = 30;

function lookAtMethods(client: object, prototype: object): UnknownClient | undefined {
  let methods = 0;
  for (const [name, method] of reachableMethods(client, prototype)) {
    if (isKnownMethod(name, method) || wrapsKnown(name, method)) methods += 1;
    else if (!Object.hasOwn(method, 'prototype') || IN_FUNCTIONS.test(sourceOf(method))) return unknownIn(method);
  }
  return methods < LEAST_METHODS ? unknownIn() : undefined;
}

function unknownIn(method?: AnyFunction): UnknownClient {
  const by = method && rewriterOf(sourceOf(method));
  const name = 'a bundled or otherwise loaded client';
  return by === undefined ? { name, cause: 'bundle' } : { name, cause: 'rewritten', by };
}

/** Methods of the client's class and of its commands and pipelines, and some that are generated, by their names. */
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
        // Node's own are part of the class. A minifier changes `parseOptions`, and nothing relies on it.
        if (typeof method !== 'function' || name in EventEmitter.prototype || name === 'parseOptions') return [];
        return [[`${className}.${name}`, method as AnyFunction]];
      },
    ),
  );
}

// ---- Rewritten as it was loaded ----
//
// New Relic 13, and Sentry 11 with ioredis before 5.11, print `Redis.js` anew and put the code of a method into a
// function within it, around which they publish what happens. Such a method is a layer, as one that a tracer has put
// over the client's own; all else must mean what it did.

/** The methods that nothing here calls in the host's place: their callers pass through what was put around them. */
const MAY_BE_WRAPPED = ['sendCommand', 'connect'];

/** A text without what printers choose themselves: no comments, blanks, parentheses, commas, quotes. */
const withoutStyle = (text: string) => text.replaceAll(COMMENTS, '').replaceAll(/[\s(),;'"`\\]/g, '');

/** The text from `start` to the end of the first block in it. */
function throughBlock(text: string, start: number): string {
  let depth = 0;
  for (let end = text.indexOf('{', start); end >= 0 && end < text.length; end += 1) {
    if (text[end] === '{') depth += 1;
    else if (text[end] === '}') depth -= 1;
    if (depth === 0) return text.slice(start, end + 1);
  }
  return '';
}

function methodIn(text: string, name: string): string {
  const start = text.search(new RegExp(`(?<=})${name}(?=[\\w$.]*{)`));
  return start < 0 ? '' : throughBlock(text, start);
}

/** Whether a class is the one in the text of its file, but for how it is printed, and methods of it are wrapped. */
function isWrapped(loaded: AnyFunction, file: string): boolean {
  let now = withoutStyle(sourceOf(loaded));
  let before = withoutStyle(file);
  let wrapped = 0;
  for (const name of MAY_BE_WRAPPED) {
    const method = methodIn(now, name);
    const own = methodIn(before, name);
    if (own === '' || !method.includes(own.slice(name.length))) return false;
    if (method !== own) wrapped += 1;
    now = now.replace(method, '');
    before = before.replace(own, '');
  }
  return wrapped > 0 && before.includes(now);
}

/** Whether a method has a known one within it, where no file tells what it was. */
function wrapsKnown(name: string, method: AnyFunction): boolean {
  if (!MAY_BE_WRAPPED.some((each) => name === `client.${each}`)) return false;
  const source = sourceOf(method);
  const start = source.search(/\bfunction\b/);
  return start >= 0 && isKnownMethod(name, method, throughBlock(source, start));
}

/** Who has rewritten a class or method, if its marks tell. */
function rewriterOf(source: string): string | undefined {
  if (source.includes('tr_ch_apm$nr_')) return 'New Relic';
  return source.includes('tr_ch_apm') && '__SENTRY_ORCHESTRION__' in globalThis ? 'Sentry' : undefined;
}
