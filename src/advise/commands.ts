/** Analyses the commands of a round trip, and its reply. */
import { types } from 'node:util';
import { effectOfName } from '../commands/effects.js';
import { FAST_COMMANDS } from '../commands/fast-commands.js';

const MAX_VALUES = 64;
const MAX_VALUE_LENGTH = 200;
const MAX_TEXT_LENGTH = 800;
const MAX_JSON_LENGTH = 16_384;

const CACHEABLE = new Set(FAST_COMMANDS.filter(({ cacheable }) => cacheable).map(({ name }) => name));
/** The separators of key parts. */
const PARTS = /[:{}]/;

/** Commands without keys: the first change nothing, the second send messages. */
const HARMLESS = new Set(['ping', 'echo', 'time']);
const MESSAGES = new Set(['publish', 'spublish']);
/** Commands whose reply usually decides what happens to the key. */
const CHECKS = new Set(['exists', 'type', 'ttl', 'pttl', 'expiretime', 'pexpiretime', 'hexists']);
/** The first and last command of a transaction. */
const FRAME = new Set(['multi', 'exec']);

interface Command {
  readonly name: string;
  readonly args: readonly unknown[];
}

/** The commands of one round trip. */
export class Commands {
  readonly args: readonly string[];
  /** All arguments, to search for values of replies. */
  readonly text: string;
  readonly words: readonly string[];
  /** The words by their position in the arguments. Digits at the end of a word are also a separate word. */
  readonly slots: ReadonlyMap<string, string>;
  /** Whether one of them writes, or may write. */
  readonly write: boolean;
  /** Whether one of them makes a decision, like a lock, or may do anything, like a script. */
  readonly decide: boolean;
  /** The key of SETNX, SET NX or SET XX. */
  readonly lock: string | undefined;
  /** The key, if it is a single cacheable read. */
  readonly read: string | undefined;
  readonly #names: readonly string[];

  constructor(commands: readonly Command[]) {
    this.args = commands.flatMap((command) => textsOf(command.args));
    this.text = this.args.join(' ');
    this.slots = slotsOf(this.args);
    this.words = [...this.slots.values()];
    this.#names = commands.map(({ name }) => name.toLowerCase()).filter((name) => !FRAME.has(name));
    this.write = this.#names.some(mayWrite);
    const [key, , ...options] = this.args;
    const isSet = this.#names.includes('set') && (options.includes('nx') || options.includes('xx'));
    this.lock = isSet || this.#names.some((name) => name.endsWith('nx')) ? (key ?? '') : undefined;
    this.read = commands.length === 1 && CACHEABLE.has(this.#names[0] ?? '') ? key : undefined;
    this.decide = this.lock !== undefined || this.#names.some(mayDoAnything);
  }

  /** Whether one of them deletes a key. */
  remove(key: string): boolean {
    return this.args.includes(key) && this.#names.some((name) => name === 'del' || name === 'unlink');
  }

  /** Whether one is EXISTS, TYPE or TTL of a key of the others. One of the two may already have the `keyPrefix`. */
  check({ args }: Commands): boolean {
    const isShared = (arg: string) => args.some((other) => other.endsWith(arg) || arg.endsWith(other));
    return this.#names.some((name) => CHECKS.has(name)) && this.args.some(isShared);
  }

  /**
   * The part of the key by which `cache.prefetch` could predict this read from the commands before: an identity that
   * both keys contain, or an element of a list.
   */
  predictableBy({ read }: Commands, listed: ReadonlySet<string>): string | undefined {
    const identities = read?.split(PARTS).filter((part) => /\d/.test(part)) ?? [];
    return this.read?.split(PARTS).findLast((part) => listed.has(part) || identities.includes(part));
  }

  /** Values of the reply that its arguments do not contain. Ignores short numeric arguments, as counts or ranges. */
  valuesIn(reply: unknown): string[] {
    const own = new Set(slotsOf(this.args.filter((arg, index) => index === 0 || !/^-?\d{1,3}$/.test(arg))).values());
    return valuesIn(reply).filter((value) => !(isShort(value) ? own.has(value) : this.text.includes(value)));
  }

  /** Classifies the replies of a pipeline, or that of a single command. */
  answerOf(reply: unknown): Answer {
    const isBatch = this.#names.length !== 1 && Array.isArray(reply);
    return answerOf(isBatch ? reply.map((result) => (Array.isArray(result) ? result[1] : result)) : reply);
  }
}

function mayWrite(name: string): boolean {
  const effect = effectOfName(name);
  return typeof effect === 'object' ? effect.changes : effect !== 'shows' && !HARMLESS.has(name);
}

function mayDoAnything(name: string): boolean {
  return mayWrite(name) && typeof effectOfName(name) !== 'object' && !MESSAGES.has(name);
}

/** The reply, if it looks like yes or no; undefined for any other one. */
export function flagIn(reply: unknown): string | undefined {
  if (typeof reply === 'object' && !(reply instanceof Buffer)) return undefined;
  const text = String(reply).toLowerCase();
  return /^(?:[01]|true|false|yes|no|on|off|[yn]|(?:en|dis)abled)$/.test(text) ? text : undefined;
}

/** The kind of a reply, as conditions distinguish it. `nothing` is null, zero or empty. */
export type Answer = 'OK' | 'nothing' | 'other';

function answerOf(reply: unknown): Answer {
  if (reply === null || reply === undefined) return 'nothing';
  if (typeof reply === 'object' && !(reply instanceof Buffer)) {
    const [answer = 'nothing', ...others] = new Set(Object.values(reply).slice(0, MAX_VALUES).map(answerOf));
    return others.length === 0 ? answer : 'other';
  }
  const text = String(reply);
  return text === '' || text === '0' ? 'nothing' : text === 'OK' ? 'OK' : 'other';
}

/** Short values often match by coincidence. */
export const isShort = (value: string): boolean => value.length <= 3;

/** The words by position: `1.0` is the first word of the second argument. */
function slotsOf(args: readonly string[]): Map<string, string> {
  const slots = new Map<string, string>();
  for (const [index, arg] of args.entries()) {
    for (const [at, word] of (arg.match(/[\p{L}\p{N}]+/gu) ?? []).entries()) {
      slots.set(`${index}.${at}`, word);
      // A random token's digits are no identity.
      const digits = /^\D+(\d+)$/.exec(word)?.[1];
      if (digits !== undefined) slots.set(`${index}.${at}.digits`, digits);
    }
  }
  return slots;
}

/** The values in a reply, including those in JSON, and in lists separated by commas or the like. */
function valuesIn(reply: unknown): string[] {
  if (reply === null || reply === undefined) return [];
  if (typeof reply === 'object' && !(reply instanceof Buffer)) {
    // Field names with a number in them may be identities.
    const names = Array.isArray(reply) ? [] : Object.keys(reply).filter((name) => /\d/.test(name));
    return [...names, ...Object.values(reply)].slice(0, MAX_VALUES).flatMap(valuesIn).slice(0, MAX_VALUES);
  }
  const text = String(reply).toLowerCase();
  if (/^\s*[{[]/.test(text) && text.length <= MAX_JSON_LENGTH) {
    try {
      return valuesIn(JSON.parse(text));
    } catch {}
  }
  if (text.length > MAX_VALUE_LENGTH) return [];
  const parts = /^\S+$/.test(text) ? text.split(/[,;|/:]/) : [];
  return [text, ...(parts.length > 1 ? parts : [])].filter((part) => part !== '' && part !== 'ok');
}

/** The arguments as text. Omits those whose conversion would run user code, which must run only once per call. */
function textsOf(args: readonly unknown[]): string[] {
  const values = args.slice(0, MAX_VALUES).flatMap(elementsOf).flatMap(elementsOf).slice(0, MAX_VALUES);
  return values
    .map((value) =>
      value instanceof Buffer ? Buffer.prototype.toString.call(value, 'utf8', 0, MAX_TEXT_LENGTH) : value,
    )
    .filter((text) => typeof text === 'string' || typeof text === 'number')
    .map((text) => String(text).slice(0, MAX_TEXT_LENGTH).toLowerCase());
}

/** The elements of an array, without calling getters; any other value as the only element. */
function elementsOf(list: unknown): unknown[] {
  if (!Array.isArray(list)) return [list];
  if (types.isProxy(list)) return [];
  const indices = Array.from({ length: Math.min(list.length, MAX_VALUES) }, (_, index) => index);
  return indices.map((index) => Object.getOwnPropertyDescriptor(list, index)?.value);
}
