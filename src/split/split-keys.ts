/**
 * The option `splitKeys` of a Cluster: a call with keys of several slots becomes several calls of the same method, one
 * per slot. It uses public methods only, so it works the same on coalesced and plain Clusters.
 */
import { MAX_SPREAD } from '../calls/call-host.js';
import { commandMethod, type MethodSpec } from '../calls/method.js';
import { methodsNamed } from '../commands/fast-commands.js';
import { callTargetOf } from '../core/call-target.js';
import type { Coalesced } from '../handle.js';
import { slotGroupOf } from '../host/cluster.js';
import { argumentTransformerOf, findsKeysInAnyCase } from '../host/command-class.js';
import { commandClassOf } from '../host/probe.js';
import type { AnyFunction, HasOptions, HostCommandClass } from '../host/types.js';
import { processWide } from '../util/process-wide.js';
import { asCallback, rejectedWith } from '../util/promises.js';
import { flatOf } from '../util/values.js';

/** The part of a call whose keys are in one slot. */
interface SlotPart {
  /** Keys, or alternating keys and values. */
  readonly args: unknown[];
  /** The position of each key in the call. */
  readonly positions: number[];
}

/** Joins the replies of the parts into the call's reply. */
type Join = (replies: readonly unknown[], parts: readonly SlotPart[]) => unknown;

const JOINS: ReadonlyMap<string, Join> = new Map<string, Join>([
  ['mget', inOrderOfCall],
  ['mset', (replies) => replies[0]],
  ...['del', 'unlink', 'exists', 'touch'].map((name) => [name, sum] as const),
]);
const SPLIT_METHODS = [...JOINS.keys()].flatMap((name) =>
  methodsNamed(name).map(([methodName]) => [methodName, name] as const),
);
const NAMED_CALLS = ['call', 'callBuffer', 'send_command'];

type Methods = Record<string, AnyFunction>;

/** Functions that end the splitting, by Cluster. */
const endFunctions = processWide('splitting', () => new WeakMap<object, () => void>());

/**
 * Switches the splitting of a Cluster's calls on or off. The methods that split are own properties of the Cluster,
 * which hide those of the overlay and the class. Own methods of users are kept.
 */
export function setSplitting(cluster: HasOptions, on: boolean): void {
  endFunctions.get(cluster)?.();
  endFunctions.delete(cluster);
  if (!on) return;
  const below = (name: string) => (Object.getPrototypeOf(cluster) as Methods)[name] as AnyFunction;
  const made: Methods = {
    duplicate(this: unknown, ...args) {
      const copy = below('duplicate').apply(this, args) as HasOptions & Partial<Coalesced>;
      // A copy that is coalesced, or was given the option `coalesce`, has its own `splitKeys`.
      const hasOwnSetting = (args[1] as { coalesce?: unknown } | undefined)?.coalesce !== undefined;
      if (!copy.coalescer?.enabled && !hasOwnSetting) setSplitting(copy, true);
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
  for (const [methodName, name] of SPLIT_METHODS) {
    method(methodName, (args, send) => split(cluster, name, args, send));
  }
  for (const methodName of NAMED_CALLS) {
    method(methodName, ([name, ...args], send) => split(cluster, name, args, (given) => send([name, ...given])));
  }
  for (const [name, value] of Object.entries(made)) {
    if (Object.hasOwn(cluster, name) || typeof below(name) !== 'function') delete made[name];
    else Object.defineProperty(cluster, name, { value, writable: true, configurable: true });
  }
  endFunctions.set(cluster, () => {
    for (const [name, value] of Object.entries(made)) {
      if ((cluster as unknown as Methods)[name] === value) Reflect.deleteProperty(cluster, name);
    }
  });
}

/** Changes a client's own methods below those that split keys: these are removed before, and defined again after it. */
export function belowSplitting(client: HasOptions, change: () => void): void {
  const splits = endFunctions.has(client);
  setSplitting(client, false);
  change();
  if (splits) setSplitting(client, true);
}

/** @param send - calls the method below this one. */
function split(cluster: HasOptions, name: unknown, args: unknown[], send: (args: unknown[]) => unknown): unknown {
  const { keyPrefix = '' } = cluster.options;
  const isInAnyCase = typeof name === 'string' && (keyPrefix === '' || prefixesInAnyCase(cluster));
  const known = isInAnyCase ? name.toLowerCase() : name;
  const join = JOINS.get(known as string);
  if (join === undefined && args.length <= MAX_SPREAD) return send(args);
  const callback = typeof args.at(-1) === 'function' ? args.slice(-1) : [];
  const flat = flatOf(args.slice(0, args.length - callback.length));
  // In one array, of which the host flattens one level, because the elements may be arrays.
  const sendAll = (all: unknown[]) => send([all, ...callback]);
  // Only the transformer knows which keys it makes of an object.
  const isTransformed = known !== 'mset' && flat.some(isObject) && hasTransformer(cluster, name as string);
  if (join === undefined || isTransformed) return sendAll(flat);
  let parts: readonly SlotPart[];
  try {
    // Host: only the lower-case name has the transformer that accepts an object.
    parts = partsOf(name === 'mset' ? pairsOf(flat) : flat, known === 'mset' ? 2 : 1, keyPrefix);
  } catch (error) {
    return rejectedWith(error, callback[0]);
  }
  if (parts.length < 2) return sendAll(parts[0]?.args ?? []);
  const joined = Promise.all(parts.map(async (part) => send([part.args]))).then((replies) => join(replies, parts));
  asCallback(joined, callback[0]);
  return joined;
}

/** Host: MSET also accepts a Map or an object. */
function pairsOf(args: unknown[]): unknown[] {
  const [only] = args;
  if (args.length !== 1 || typeof only !== 'object' || only === null) return args;
  return [...(only instanceof Map ? only : Object.entries(only))].flat();
}

/**
 * The parts, in the order of their first keys. If a value is missing, a single part without it: the server must report
 * that error, not one about slots.
 *
 * @param step - the distance from one key to the next.
 */
function partsOf(given: readonly unknown[], step: number, prefix: string | Buffer): SlotPart[] {
  const args = given.map((argument, index) => (index % step === 0 ? readOnce(argument) : argument));
  if (args.length % step !== 0) {
    return [{ args: args.length < step ? args : [...args.slice(0, step), args[0]], positions: [] }];
  }
  const bySlot = new Map<number | string, SlotPart>();
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

/** Converts an object to text once, because a key is read here and again when its part is sent. */
function readOnce(key: unknown): unknown {
  return isObject(key) ? String(key) : key;
}

function isObject(key: unknown): boolean {
  return typeof key === 'object' && key !== null && !(key instanceof Buffer);
}

function classOf(cluster: HasOptions): HostCommandClass | undefined {
  return callTargetOf(cluster)?.commandClass ?? commandClassOf(cluster);
}

function prefixesInAnyCase(cluster: HasOptions): boolean {
  const commandClass = classOf(cluster);
  return commandClass !== undefined && findsKeysInAnyCase(commandClass);
}

function hasTransformer(cluster: HasOptions, name: string): boolean {
  const commandClass = classOf(cluster);
  return commandClass !== undefined && argumentTransformerOf(commandClass, name) !== undefined;
}

/** Host: it sends null and undefined as empty text. */
function slotOf(key: unknown, prefix: string | Buffer): number | string {
  if (typeof prefix === 'string' && !(key instanceof Buffer)) return slotGroupOf(prefix + String(key ?? ''));
  const bytes = (part: unknown) => (part instanceof Buffer ? part : Buffer.from(String(part ?? '')));
  return slotGroupOf(Buffer.concat([bytes(prefix), bytes(key)]));
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

/** Host: with `stringNumbers`, replies are text. */
function sum(replies: readonly unknown[]): unknown {
  const total = replies.reduce<number>((before, reply) => before + Number(reply), 0);
  return typeof replies[0] === 'number' ? total : String(total);
}
