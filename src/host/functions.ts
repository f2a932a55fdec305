/**
 * The functions of the host that the fast path replaces, and how to reach each: as data, and in one copy of the host.
 * This reads no file, makes no client and waits for nothing, so it has no visible effect.
 *
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.1–0.4, `built/Redis.js`, `built/redis/event_handler.js`,
 * `built/DataHandler.js`, `built/resp/decoder.js`; redis-parser 3, `lib/parser.js`.
 */
import { EventEmitter } from 'node:events';
import Module from 'node:module';
import { deprecate } from 'node:util';
import { digestOf, exactDigest, isMinified, sourceOf } from './digest.js';
import { KNOWN_FUNCTIONS } from './known-releases.js';
import type { AnyFunction, HostClient, HostCommandClass } from './types.js';

/**
 * The functions by place. They are compared at the first command of each turn: if one has been replaced, the host does
 * the work.
 */
export const STOOD_IN = {
  /** Of `Command`, found through `echo`. */
  command: [
    ...['initPromise', 'stringifyArguments', 'toWritable', 'transformReply', '_convertValue', '_iterateKeys'],
    ...['getKeys', 'getSlot', 'setTimeout', '_clearTimers', 'setReplyContext'],
  ],
  /** Statics of that class. */
  flags: ['checkFlag', 'getFlagMap'],
  /** Of the objects that `pipeline()` makes. */
  pipeline: ['exec', 'execBuffer', 'fillResult', 'sendCommand', 'multi'],
  /** Of the class of a defined script. */
  script: ['execute'],
  /** Of the object that the connect handler makes: ioredis's `DataHandler`. */
  handler: ['dispatch', 'returnReply', 'returnError', 'handleMonitorReply', 'handleSubscriberReply', 'shiftCommand'],
  /** Of the object that the handler makes: ioredis 6 has its own decoder, others use redis-parser. */
  decoder: ['write', 'execute'],
  /** Exports of modules in Node's cache. In a bundle they cannot be replaced from outside. */
  helpers: ['toArg', 'convertBufferToString', 'wrapMultiResult'],
  callbacks: ['default'],
  keys: ['exists', 'getKeyIndexes', 'hasFlag'],
} as const;
type Stood = keyof typeof STOOD_IN;

/** Further places with known functions: the fast path calls them, or depends on how they treat its entries. */
export type Place = Stood | 'client' | 'cluster' | 'commander' | 'scriptCommand' | 'listeners';

/** The modules of the last three places, as the host's `Command.js` requires them. */
const MODULES = {
  helpers: ['./utils'],
  callbacks: ['standard-as-callback'],
  keys: ['@ioredis/commands', '@iovalkey/commands'],
};

/** The host and users call them, and all commands see what layers around them do. */
const LAYERED = ['sendCommand', 'connect', 'setStatus', 'disconnect', 'end', 'duplicate', 'monitor'];
const ON_EMITTERS: Partial<Record<Place, true>> = { client: true, cluster: true };
/** The fast path does not depend on it. */
const IGNORED = ['parseOptions'];
/** The fast path replaces these constructors, too. */
const CONSTRUCTED: readonly string[] = ['command', 'pipeline'];

export const isIgnored = (place: string, name: string) =>
  IGNORED.includes(name) || (name === 'constructor' && !CONSTRUCTED.includes(place));

/** The text of a function, or of a class's constructor: its methods are recognized one by one. */
export function textOf(name: string, method: AnyFunction): string {
  const source = sourceOf(method);
  const start = name === 'constructor' ? source.search(/\bconstructor\s*\(/) : 0;
  if (start <= 0) return source;
  // Parameters may have braces: `options = {}`.
  const parameters = throughPair(source, start, '(', ')');
  return parameters + throughPair(source, start + parameters.length, '{', '}');
}

/** Minifiers inline two other functions in it, each differently; its behaviour is proven (`proof.ts`). */
const INLINING = 'listeners.close';

/** The text of functions that this run time's `util.deprecate()` returns, such as the host's `execBuffer`. */
const DEPRECATED = sourceOf(deprecate(() => {}, '') as AnyFunction);

/**
 * Whether a function is one that a known release has in this place under this name. Called for each command of a
 * layered client, so each text is read once.
 */
export function isKnown(place: Place, name: string, method: unknown): method is AnyFunction {
  if (typeof method !== 'function') return false;
  const key = `${place}.${name}`;
  if (knownAs.get(method) === key) return true;
  if (unknownAs.get(method)?.includes(key)) return false;
  const source = textOf(name, method as AnyFunction);
  // BullMQ's clients have a hundred methods with one text.
  if (source === lastKnown.get(key)) return true;
  const isTheirs = (key === INLINING && isMinified(source)) || (name === 'execBuffer' && source === DEPRECATED);
  const digests = digestsFor(place, name);
  const isOf = (digest: string) => digests?.includes(digest) === true;
  const isPublished = isTheirs || isOf(exactDigest(source)) || isOf(digestOf(method as AnyFunction, source));
  if (!isPublished) {
    unknownAs.set(method, [...(unknownAs.get(method) ?? []), key]);
    return false;
  }
  lastKnown.set(key, source);
  // Not those of scripts.
  if (place !== 'listeners') knownAs.set(method, key);
  return true;
}
const knownAs = new WeakMap<object, string>();
const unknownAs = new WeakMap<object, string[]>();
const lastKnown = new Map<string, string>();

function digestsFor(place: Place, name: string): string | undefined {
  const functions = KNOWN_FUNCTIONS[place];
  return functions !== undefined && Object.hasOwn(functions, name) ? functions[name] : undefined;
}

/** The objects of one copy of the host that have its functions, by place. */
export type Holders = Partial<Record<Place, object>>;

/** The first function of no known release (`command.toWritable`); undefined if all are known. */
export function firstUnknown(holders: Holders): string | undefined {
  for (const [place, holder] of Object.entries(holders) as [Place, object][]) {
    for (const [name, { value, get }] of Object.entries(Object.getOwnPropertyDescriptors(holder))) {
      const method: unknown = value ?? get;
      if (typeof method !== 'function' || isIgnored(place, name)) continue;
      // Node's own are part of the class.
      if (place in ON_EMITTERS && name in EventEmitter.prototype) continue;
      if (isKnown(place, name, method)) continue;
      // Methods of classes have no `prototype`; functions that users assign have one.
      const isUsers = Object.hasOwn(method, 'prototype') && get === undefined;
      const mayBe = digestsFor(place, name) !== undefined ? LAYERED.includes(name) && place in ON_EMITTERS : isUsers;
      if (!mayBe || !(isUsers || wrapsKnown(place, name, method as AnyFunction))) return `${place}.${name}`;
    }
  }
  return undefined;
}

/**
 * Whether a method contains a known one: New Relic 13, and Sentry 11 with ioredis before 5.11, move the code of a
 * method into a function inside it, and publish events around that.
 */
export function wrapsKnown(place: Place, name: string, method: AnyFunction): boolean {
  const source = sourceOf(method);
  return [...source.matchAll(/\bfunction\b\s*/g)].some(({ index, 0: { length } }) => {
    const own = name + throughPair(source, index, '{', '}').slice(length);
    return digestsFor(place, name)?.includes(digestOf(method, own)) === true;
  });
}

/** The text from `start` to the end of the first pair of these brackets in it. */
function throughPair(text: string, start: number, open: string, close: string): string {
  let depth = 0;
  for (let end = text.indexOf(open, start); end >= 0 && end < text.length; end += 1) {
    if (text[end] === open) depth += 1;
    else if (text[end] === close) depth -= 1;
    if (depth === 0) return text.slice(start, end + 1);
  }
  return '';
}

const prototypeOf = (object: unknown) => (object === undefined ? undefined : (Object.getPrototypeOf(object) as object));

/** The objects reached from a class of clients or Clusters by calling only the makers of commands. */
export function reachClass(prototype: object, commandClass: HostCommandClass, isCluster: boolean): Holders {
  const { echo, call, defineCommand, addBuiltinCommand, pipeline, multi } = prototype as Record<string, AnyFunction>;
  return {
    [isCluster ? 'cluster' : 'client']: prototype,
    commander: { echo, call, defineCommand, addBuiltinCommand, pipeline, multi },
    command: commandClass.prototype,
    flags: commandClass,
  };
}

interface Defining {
  script: AnyFunction;
  scriptsSet: { script: object & { Command: { prototype: object } } };
}

/** The objects made by its known methods, on a stand-in for a client. */
export function reachMade(prototype: object, isCluster: boolean): Holders {
  const { pipeline, defineCommand } = prototype as Record<string, AnyFunction>;
  const client = { isCluster, options: {}, scriptsSet: {}, addedBuiltinSet: new Set(), script: undefined };
  const made = prototypeOf(pipeline?.call(client));
  defineCommand?.call(client, 'script', { lua: 'return 1', numberOfKeys: 0 });
  const { script, scriptsSet } = client as unknown as Defining;
  return {
    pipeline: made as object,
    script: prototypeOf(scriptsSet.script) as object,
    scriptCommand: scriptsSet.script.Command.prototype,
    listeners: { script },
  };
}

/** A connection that was never opened: the host's own objects and listeners on a stand-in for a client. */
export interface Unopened {
  readonly client: HostClient & Record<string, unknown>;
  readonly listeners: Readonly<Record<'connect' | 'close' | 'data', AnyFunction>>;
  readonly handler: object;
  readonly decoder: object;
}

/** Fields that the constructors of ioredis's `DataHandler`, its decoder and redis-parser assign. */
const ASSIGNED = { handler: ['redis'], decoder: ['onReply', 'returnReply'] };

function noop(): void {}
const never = () => new Promise<never>(noop);

/**
 * Runs the host's own `connect` and connect handler on a stand-in for a client, until they would ask a server.
 *
 * Host: only `then` of the connector's promise is used, so one that calls back at once makes all of this one step.
 * Nothing refers to `DataHandler` and decoder. They are found when they assign a field, by an accessor that all objects
 * inherit during that step.
 *
 * @param connect - the class's own, without layers.
 */
export function openNothing(prototype: object, connect: AnyFunction, options: object): Unopened {
  const listeners: Record<string, AnyFunction> = {};
  const listen = (name: string, listener: AnyFunction) => {
    listeners[name] = listener;
  };
  const stream = { connecting: true, writable: true, once: listen, on: listen, prependListener: listen, resume: noop };
  const { resetCommandQueue, resetOfflineQueue } = prototype as Record<string, AnyFunction>;
  const client = {
    ...{ status: 'wait', connectionEpoch: 0, retryAttempts: 0, isCluster: false, resetCommandQueue, resetOfflineQueue },
    ...{ once: noop, removeListener: noop, silentEmit: noop, emit: noop, flushQueue: noop, listeners: () => [] },
    ...{ client: never, hello: never, _readyCheck: noop, recoverFromFatalError: noop, clearSocketTimeout: noop },
    options: { db: 0, enableReadyCheck: true, disableClientInfo: true, ...options },
    // biome-ignore lint/suspicious/noThenProperty: the host uses what a connector returns as a promise
    connector: { connect: () => ({ then: (opened: AnyFunction) => opened.call(undefined, stream) }) },
    setStatus(status: string) {
      this.status = status;
    },
  };
  resetOfflineQueue?.call(client);
  connect.call(client);
  const met = new Map<string, object>();
  const traps = Object.entries(ASSIGNED).flatMap(([what, names]) => names.map((name) => [what, name] as const));
  for (const [what, name] of traps) {
    Object.defineProperty(Object.prototype, name, {
      configurable: true,
      set(this: object, value: unknown) {
        if (Object.getPrototypeOf(this) !== Object.prototype) met.set(what, this);
        Object.defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true });
      },
    });
  }
  try {
    void listeners.connect?.call(stream);
  } finally {
    for (const [, name] of traps) Reflect.deleteProperty(Object.prototype, name);
  }
  return { client, listeners, handler: met.get('handler'), decoder: met.get('decoder') } as unknown as Unopened;
}

/** The objects of a host's connection. */
export function reachConnection({ handler, decoder, listeners }: Unopened): Holders {
  return {
    handler: prototypeOf(handler) as object,
    decoder: prototypeOf(decoder) as object,
    listeners: {
      ...listeners,
      ...Object.fromEntries(Object.entries(decoder).filter(([, of]) => typeof of === 'function')),
    },
  };
}

/** Exports of the host's modules. */
export function reachModules(commandClass: HostCommandClass): Holders {
  const { cache } = Module.createRequire(process.execPath);
  const file = Object.keys(cache).find(
    (path) => path.endsWith('Command.js') && cache[path]?.exports?.default === commandClass,
  );
  if (file === undefined) return {};
  const { resolve } = Module.createRequire(file);
  const exportsOf = (name: string): [object] | [] => {
    try {
      return [cache[resolve(name)]?.exports as object];
    } catch {
      return [];
    }
  };
  return Object.fromEntries(
    Object.entries(MODULES).flatMap(([place, names]) =>
      names.flatMap(exportsOf).flatMap((each) => (each ? [[place, each]] : [])),
    ),
  );
}

type Compared = Readonly<Record<string, unknown>>;
type Places = Readonly<Record<Stood, Compared>>;

const NOT_REACHED: Compared = {};

/** @returns a function that names the first watched function that has been replaced since. */
export function watch(all: Holders): () => string | undefined {
  const places = Object.entries(STOOD_IN) as [Stood, readonly string[]][];
  const holderOf = (place: Stood) => (all[place] ?? NOT_REACHED) as Compared;
  const now = Object.fromEntries(places.map(([place]) => [place, holderOf(place)])) as Places;
  const before = Object.fromEntries(
    places.map(([place, names]) => [place, Object.fromEntries(names.map((name) => [name, now[place][name]]))]),
  ) as Places;
  const replaced = () => {
    const titles = places.flatMap(([place, names]) => names.map((name) => [place, name] as const));
    return titles.find(([place, name]) => now[place][name] !== before[place][name])?.join('.');
  };
  // `STOOD_IN` again, written out: V8 caches properties that are named in code, and this runs in each turn.
  return () => {
    let a: Compared;
    let b: Compared;
    a = now.command;
    b = before.command;
    if (
      a.initPromise !== b.initPromise ||
      a.stringifyArguments !== b.stringifyArguments ||
      a.toWritable !== b.toWritable ||
      a.transformReply !== b.transformReply ||
      a._convertValue !== b._convertValue ||
      a._iterateKeys !== b._iterateKeys ||
      a.getKeys !== b.getKeys ||
      a.getSlot !== b.getSlot ||
      a.setTimeout !== b.setTimeout ||
      a._clearTimers !== b._clearTimers ||
      a.setReplyContext !== b.setReplyContext
    )
      return replaced();
    a = now.flags;
    b = before.flags;
    if (a.checkFlag !== b.checkFlag || a.getFlagMap !== b.getFlagMap) return replaced();
    a = now.pipeline;
    b = before.pipeline;
    if (
      a.exec !== b.exec ||
      a.execBuffer !== b.execBuffer ||
      a.fillResult !== b.fillResult ||
      a.sendCommand !== b.sendCommand ||
      a.multi !== b.multi
    )
      return replaced();
    a = now.script;
    b = before.script;
    if (a.execute !== b.execute) return replaced();
    a = now.handler;
    b = before.handler;
    if (
      a.dispatch !== b.dispatch ||
      a.returnReply !== b.returnReply ||
      a.returnError !== b.returnError ||
      a.handleMonitorReply !== b.handleMonitorReply ||
      a.handleSubscriberReply !== b.handleSubscriberReply ||
      a.shiftCommand !== b.shiftCommand
    )
      return replaced();
    a = now.decoder;
    b = before.decoder;
    if (a.write !== b.write || a.execute !== b.execute) return replaced();
    a = now.helpers;
    b = before.helpers;
    if (
      a.toArg !== b.toArg ||
      a.convertBufferToString !== b.convertBufferToString ||
      a.wrapMultiResult !== b.wrapMultiResult
    )
      return replaced();
    a = now.callbacks;
    b = before.callbacks;
    if (a.default !== b.default) return replaced();
    a = now.keys;
    b = before.keys;
    if (a.exists !== b.exists || a.getKeyIndexes !== b.getKeyIndexes || a.hasFlag !== b.hasFlag) return replaced();
    return undefined;
  };
}
