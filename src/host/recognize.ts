/**
 * Whether a client is of a known release: only such a client has the fast path (`selectMode` of
 * `attach/cork-attachment.ts`), since the rest of this folder relies on internals. Releases that were run, or only
 * compared: docs/compatibility.md.
 *
 * The code that runs decides, not its location: functions that can be reached are recognized by their text
 * (`functions.ts`), others by their behaviour (`proof.ts`). Those reached are compared again at the first command of
 * each turn. Files only provide the name of an unknown client.
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
  /** The first function of `STOOD_IN` that has been replaced, such as `command.toWritable`. */
  changed(): string | undefined;
}

/** A client of no known release. */
export interface UnknownClient {
  /** Such as `ioredis 7.0.0`. */
  readonly unknown: string;
  /** The unknown function, `command.toWritable differs`, or the client's behaviour, `it encodes otherwise`. */
  readonly differs: string;
  /** The tool that rewrote it, if known. */
  readonly by?: string | undefined;
}

/** Proven copies, by the prototype of their client class. Not unknown ones, which may be restored later. */
const proven = new WeakMap<object, HostCopy>();

/** The host copy of a client, or why it is of no known release. Proves each copy once. */
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

/** Tracers find no user's request in it. */
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

/** The class's own `connect`, without layers: OpenTelemetry's refers to the one it wraps, others contain it. */
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

/** The tool that rewrote a class, known by its marks. */
function rewriterOf(prototype: object): string | undefined {
  const methods = Object.values(Object.getOwnPropertyDescriptors(prototype)).map(({ value }) => value as unknown);
  const has = (mark: string) =>
    methods.some((method) => typeof method === 'function' && sourceOf(method as AnyFunction).includes(mark));
  if (has('tr_ch_apm$nr_')) return 'New Relic';
  return '__SENTRY_ORCHESTRION__' in globalThis && has('tr_ch_apm') ? 'Sentry' : undefined;
}
