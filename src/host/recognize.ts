/**
 * Whether a client is of a known release: only such a client has the fast path (`selectMode` of
 * `attach/cork-attachment.ts`), since the rest of this folder relies on how they work inside. Which of them were run,
 * and which only compared: docs/compatibility.md.
 *
 * What runs decides, and not where it lies: the functions that can be reached are known by their own texts
 * (`functions.ts`), the others by what they do (`proof.ts`). What was looked at is compared again at the first command
 * of each turn. Files tell how an unknown client is called, and nothing else.
 */
import { AsyncResource } from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import Module from 'node:module';
import { isHostCluster } from './cluster.js';
import { sourceOf } from './digest.js';
import {
  firstUnknown,
  type Holders,
  isKnown,
  openNothing,
  reachClass,
  reachConnection,
  reachMade,
  reachModules,
  watch,
  wrapsKnown,
} from './functions.js';
import { KNOWN_RELEASES } from './known-releases.js';
import { commandClassOf, hostPrototype } from './probe.js';
import { disproof } from './proof.js';
import type { AnyFunction, HostCommandClass } from './types.js';

/** A copy of a known release in this process. */
export interface HostCopy {
  readonly commandClass: HostCommandClass;
  /** The first function that is stood in for and is another one by now, such as `command.toWritable`. */
  changed(): string | undefined;
}

/** A client of no known release. */
export interface UnknownClient {
  /** Such as `ioredis 7.0.0`. */
  readonly unknown: string;
  /** The function that is not known, `command.toWritable differs`, or what the client does, `encodes otherwise`. */
  readonly differs: string;
  /** Who has rewritten it, if that can be told. */
  readonly by?: string | undefined;
}

/** Proven copies by the prototype of the class of clients. An unknown one may be as it was published later. */
const proven = new WeakMap<object, HostCopy>();

/** What a client is a copy of, or why it is of no known release. Proves each copy once. */
export function copyOf(client: object): HostCopy | UnknownClient {
  const prototype = hostPrototype(client) ?? (Object.getPrototypeOf(client) as object);
  const found = proven.get(prototype);
  const isCluster = isHostCluster(client);
  const commandClass = commandClassOf(client);
  if (commandClass === undefined) return unknownClient(prototype, 'commander.echo');
  if (found?.commandClass === commandClass) {
    const differs = firstUnknown({ [isCluster ? 'cluster' : 'client']: prototype });
    return differs === undefined ? found : unknownClient(prototype, differs);
  }
  let copy: HostCopy | string;
  try {
    copy = root.runInAsyncScope(prove, undefined, prototype, commandClass, isCluster);
  } catch (error) {
    copy = `fails: ${String(error)}`;
  }
  if (typeof copy === 'string') return unknownClient(prototype, copy);
  proven.set(prototype, copy);
  return copy;
}

/** Tracers find no request of a user's there. */
const root = new AsyncResource('ioredis-coalesce');

function prove(prototype: object, commandClass: HostCommandClass, isCluster: boolean): HostCopy | string {
  const all: Holders = reachClass(prototype, commandClass, isCluster);
  const add = (holders: Holders) => {
    Object.assign(all, holders);
    return firstUnknown(holders);
  };
  const unknown = firstUnknown(all) ?? add(reachMade(prototype, isCluster)) ?? add(reachModules(commandClass));
  if (unknown !== undefined) return unknown;
  if (!isCluster) {
    const connect = connectOf(prototype);
    if (connect === undefined) return 'client.connect';
    const open = (options: object) => openNothing(prototype, connect, options);
    const differs = add(reachConnection(open({ protocol: 3 }))) ?? disproof(commandClass, prototype, open);
    if (differs !== undefined) return differs;
  }
  return { commandClass, changed: watch(all) };
}

/** The class's own `connect`, without a layer: OpenTelemetry's keeps what it wraps, those of others are within it. */
function connectOf(prototype: object): AnyFunction | undefined {
  const { _connect, connect } = prototype as Record<string, AnyFunction & { readonly __original?: unknown }>;
  if (isKnown('client', '_connect', _connect)) return _connect;
  for (let method: unknown = connect; typeof method === 'function'; method = (method as typeof connect)?.__original) {
    const own = method as AnyFunction;
    if (isKnown('client', 'connect', own) || wrapsKnown('client', 'connect', own)) return own;
  }
  return undefined;
}

/** The path of the modules that export the classes, in both packages and in ioredis 4. */
const CLASS_FILE = /[\\/](?:Redis|redis[\\/]index|cluster[\\/]index)\.js$/;

function unknownClient(prototype: object, differs: string): UnknownClient {
  const release = releaseOf(prototype);
  const isPublished = release !== undefined && KNOWN_RELEASES.includes(release);
  const isFunction = /^\w+\.\w+$/.test(differs);
  const change = isFunction ? `of which ${differs} was changed` : `changed: it ${differs}`;
  const unknown = isPublished ? `${release}, ${change}` : release;
  return {
    unknown: unknown ?? 'a bundled or otherwise loaded client',
    differs: isFunction ? `${differs} differs` : `it ${differs}`,
    by: rewriterOf(prototype),
  };
}

/** Such as `ioredis 7.0.0`; undefined if its files cannot be found. */
function releaseOf(prototype: object): string | undefined {
  try {
    const { cache } = Module.createRequire(process.execPath);
    const file = Object.keys(cache).find(
      (path) => CLASS_FILE.test(path) && prototypeIn(cache[path]?.exports) === prototype,
    );
    const path = file?.replace(/built[\\/](?:redis[\\/]|cluster[\\/])?\w+\.js$/, 'package.json') as string;
    const { name, version } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>;
    return `${name} ${version}`;
  } catch {
    return undefined;
  }
}

function prototypeIn(exported: unknown): unknown {
  const { default: named = exported } = Object(exported) as { default?: unknown };
  return (Object(named) as { prototype?: unknown }).prototype;
}

/** Who has rewritten methods of a class, if its marks tell. */
function rewriterOf(prototype: object): string | undefined {
  const methods = Object.values(Object.getOwnPropertyDescriptors(prototype)).map(({ value }) => value as unknown);
  const has = (mark: string) =>
    methods.some((method) => typeof method === 'function' && sourceOf(method as AnyFunction).includes(mark));
  if (has('tr_ch_apm$nr_')) return 'New Relic';
  return '__SENTRY_ORCHESTRION__' in globalThis && has('tr_ch_apm') ? 'Sentry' : undefined;
}
