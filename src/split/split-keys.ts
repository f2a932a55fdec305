/**
 * The option `splitKeys` of a Cluster: a call with keys of several slots is made as several calls of the same method,
 * one for each slot. This rests on public methods alone, so it is the same whether the Cluster is coalesced or plain.
 */
import calculateSlot from 'cluster-key-slot';
import { MAX_SPREAD } from '../calls/call-host.js';
import { commandMethod, type MethodSpec } from '../calls/method.js';
import { methodsNamed } from '../commands/fast-commands.js';
import type { Coalesced } from '../handle.js';
import type { AnyFunction, HasOptions } from '../host/types.js';
import { processWide } from '../util/process-wide.js';
import { asCallback, rejectedWith } from '../util/promises.js';
import { flatOf } from '../util/values.js';

/** The part of a call whose keys are in one slot. */
interface SlotPart {
  /** Keys, or keys and their values in turn. */
  readonly args: unknown[];
  /** The position of each key among those of the call. */
  readonly positions: number[];
}

/** Makes the reply of the call from those of its parts. */
type Join = (replies: readonly unknown[], parts: readonly SlotPart[]) => unknown;

const JOINS: ReadonlyMap<string, Join> = new Map<string, Join>([
  ['mget', inOrderOfCall],
  ['mset', (replies) => replies[0]],
  ...['del', 'unlink', 'exists', 'touch'].map((name) => [name, sum] as const),
]);
const NAMES = [...JOINS.keys()].flatMap((name) =>
  methodsNamed(name).map(([methodName]) => [methodName, name] as const),
);
const CALLS_BY_NAME = ['call', 'callBuffer', 'send_command'];

type Methods = Record<string, AnyFunction>;

/** What ends the splitting of a Cluster. */
const endings = processWide('splitting', () => new WeakMap<object, () => void>());

/**
 * Splits the keys of a Cluster's calls from now on, or no longer. The methods that do so are the Cluster's own, over
 * those of its class and of the overlay. Methods that users have put there stay.
 */
export function setSplitting(cluster: HasOptions, on: boolean): void {
  endings.get(cluster)?.();
  endings.delete(cluster);
  if (!on) return;
  const below = (name: string) => (Object.getPrototypeOf(cluster) as Methods)[name] as AnyFunction;
  const made: Methods = {
    duplicate(this: unknown, ...args) {
      const copy = below('duplicate').apply(this, args) as HasOptions & Partial<Coalesced>;
      // A coalesced copy has options of its own, and so has one that is asked to.
      const isAsked = (args[1] as { coalesce?: unknown } | undefined)?.coalesce !== undefined;
      if (!copy.coalescer?.enabled && !isAsked) setSplitting(copy, true);
      return copy;
    },
  };
  const method = (methodName: string, compose: MethodSpec['compose']) => {
    const parent = {
      get [methodName]() {
        return below(methodName);
      },
    };
    made[methodName] = commandMethod({ methodName, parent, compose });
  };
  for (const [methodName, name] of NAMES) {
    method(methodName, (args, send) => split(cluster, name, args, send));
  }
  for (const methodName of CALLS_BY_NAME) {
    method(methodName, ([name, ...args], send) => split(cluster, name, args, (given) => send([name, ...given])));
  }
  for (const [name, value] of Object.entries(made)) {
    if (Object.hasOwn(cluster, name) || typeof below(name) !== 'function') delete made[name];
    else Object.defineProperty(cluster, name, { value, writable: true, configurable: true });
  }
  endings.set(cluster, () => {
    for (const [name, value] of Object.entries(made)) {
      if ((cluster as unknown as Methods)[name] === value) Reflect.deleteProperty(cluster, name);
    }
  });
}

/** @param send - calls the method that is below this one. */
function split({ options }: HasOptions, name: unknown, args: unknown[], send: (args: unknown[]) => unknown): unknown {
  const { keyPrefix = '' } = options;
  // Host: some versions put no prefix before the keys of a command in upper case.
  const known = typeof name === 'string' && keyPrefix === '' ? name.toLowerCase() : name;
  const join = JOINS.get(known as string);
  if (join === undefined && args.length <= MAX_SPREAD) return send(args);
  const callback = typeof args.at(-1) === 'function' ? args.slice(-1) : [];
  const flat = flatOf(args.slice(0, args.length - callback.length));
  // In one array, which the host flattens: elements may be arrays, too.
  const sendAll = (all: unknown[]) => send([all, ...callback]);
  if (join === undefined) return sendAll(flat);
  let parts: readonly SlotPart[];
  try {
    parts = known === 'mset' ? partsOf(pairsOf(flat), 2, keyPrefix) : partsOf(flat, 1, keyPrefix);
  } catch (error) {
    return rejectedWith(error, callback[0]);
  }
  if (parts.length < 2) return sendAll(parts[0]?.args ?? []);
  const joined = Promise.all(parts.map(async (part) => send([part.args]))).then((replies) => join(replies, parts));
  asCallback(joined, callback[0]);
  return joined;
}

/** Host: MSET takes a Map or an object, too. */
function pairsOf(args: unknown[]): unknown[] {
  const [only] = args;
  if (args.length !== 1 || typeof only !== 'object' || only === null) return args;
  return [...(only instanceof Map ? only : Object.entries(only))].flat();
}

/**
 * The parts, in the order of their first keys. Arguments of which a value is missing are one part that lacks a value:
 * then the server gives its error for that, and none about slots.
 *
 * @param step - from one key to the next.
 */
function partsOf(given: readonly unknown[], step: number, prefix: string | Buffer): SlotPart[] {
  const args = given.map((argument, index) => (index % step === 0 ? readOnce(argument) : argument));
  if (args.length % step !== 0) {
    return [{ args: args.length < step ? args : [...args.slice(0, step), args[0]], positions: [] }];
  }
  const bySlot = new Map<number, SlotPart>();
  for (let index = 0; index < args.length; index += step) {
    const slot = slotOf(args[index], prefix);
    let part = bySlot.get(slot);
    if (part === undefined) {
      part = { args: [], positions: [] };
      bySlot.set(slot, part);
    }
    part.args.push(...args.slice(index, index + step));
    part.positions.push(index / step);
  }
  return [...bySlot.values()];
}

/** Keys are read here, and again when the part is sent: one that is an object becomes text before. */
function readOnce(key: unknown): unknown {
  return typeof key === 'object' && key !== null && !(key instanceof Buffer) ? String(key) : key;
}

/** Host: null and undefined are empty text. */
function slotOf(key: unknown, prefix: string | Buffer): number {
  if (typeof prefix === 'string' && !(key instanceof Buffer)) return calculateSlot(prefix + String(key ?? ''));
  const bytes = (part: unknown) => (part instanceof Buffer ? part : Buffer.from(String(part ?? '')));
  return calculateSlot(Buffer.concat([bytes(prefix), bytes(key)]));
}

function inOrderOfCall(replies: readonly unknown[], parts: readonly SlotPart[]): unknown[] {
  const values: unknown[] = [];
  for (const [index, { positions }] of parts.entries()) {
    const found = replies[index];
    if (!Array.isArray(found) || found.length !== positions.length) {
      throw new TypeError('ioredis-coalesce: splitKeys cannot join replies of MGET that a transformer has changed');
    }
    for (const [place, position] of positions.entries()) values[position] = found[place];
  }
  return values;
}

/** Host: with `stringNumbers` replies are text. */
function sum(replies: readonly unknown[]): unknown {
  const total = replies.reduce<number>((before, reply) => before + Number(reply), 0);
  return typeof replies[0] === 'number' ? total : String(total);
}
