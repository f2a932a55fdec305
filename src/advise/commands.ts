/** What the advisor reads in the commands of a round trip, and in its reply. */
import { types } from 'node:util';
import { effectOfName } from '../commands/effects.js';
import { FAST_COMMANDS } from '../commands/fast-commands.js';

const MOST_VALUES = 64;
const LONGEST_VALUE = 200;
const LONGEST_TEXT = 800;
const LONGEST_JSON = 16_384;

const CACHEABLE = new Set(FAST_COMMANDS.filter(({ cacheable }) => cacheable).map(({ name }) => name));
/** What separates the parts of keys. */
const PARTS = /[:{}]/;

/** Commands without keys that change nothing, and that only write. */
const HARMLESS = new Set(['ping', 'echo', 'time']);
const MESSAGES = new Set(['publish', 'spublish']);
/** Asked in order to decide on what is done with the key. */
const CHECKS = new Set(['exists', 'type', 'ttl', 'pttl', 'expiretime', 'pexpiretime', 'hexists']);
/** Around the commands of a transaction. */
const FRAME = new Set(['multi', 'exec']);

interface Command {
  readonly name: string;
  readonly args: readonly unknown[];
}

/** The commands of one round trip. */
export class Commands {
  readonly args: readonly string[];
  /** All arguments: values of replies are looked for in it. */
  readonly text: string;
  readonly words: readonly string[];
  /** The words by their places among the arguments, the one of digits at the end of a word, too. */
  readonly slots: ReadonlyMap<string, string>;
  /** Whether one writes, or may. */
  readonly write: boolean;
  /** Whether one is made to decide, as a lock is, or may do anything, as a script. */
  readonly decide: boolean;
  /** The key that SETNX, SET NX or SET XX take. */
  readonly lock: string | undefined;
  /** The key of a single read that a cache may keep. */
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

  /** Whether these delete a key. */
  remove(key: string): boolean {
    return this.args.includes(key) && this.#names.some((name) => name === 'del' || name === 'unlink');
  }

  /** Whether these are EXISTS, TYPE or TTL of a key of the others; one of the two may have its `keyPrefix` already. */
  check({ args }: Commands): boolean {
    const isShared = (arg: string) => args.some((other) => other.endsWith(arg) || arg.endsWith(other));
    return this.#names.some((name) => CHECKS.has(name)) && this.args.some(isShared);
  }

  /** Whether an argument holds a value; a short one only as a word. */
  hold(value: string): boolean {
    return isShort(value) ? this.words.includes(value) : this.text.includes(value);
  }

  /**
   * What `cache.prefetch` could learn to ask for these by, together with the ones before: an identity in both keys, or
   * an element of a list.
   */
  foreseenBy({ read }: Commands, listed: ReadonlySet<string>): string | undefined {
    const identities = read?.split(PARTS).filter((part) => /\d/.test(part)) ?? [];
    return this.read?.split(PARTS).findLast((part) => listed.has(part) || identities.includes(part));
  }

  /** Values of the reply that are not among the arguments, but for short numbers: they count, or name a range. */
  valuesIn(reply: unknown): string[] {
    const own = new Set(slotsOf(this.args.filter((arg, index) => index === 0 || !/^-?\d{1,3}$/.test(arg))).values());
    return valuesIn(reply).filter((value) => !(isShort(value) ? own.has(value) : this.text.includes(value)));
  }

  /** What the replies of a pipeline are, or that of a single command. */
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

/** A reply that says yes or no, as far as anybody can see; undefined for any other one. */
export function flagIn(reply: unknown): string | undefined {
  if (typeof reply === 'object' && !(reply instanceof Buffer)) return undefined;
  const text = String(reply).toLowerCase();
  return /^(?:[01]|true|false|yes|no|on|off|[yn]|(?:en|dis)abled)$/.test(text) ? text : undefined;
}

/** What a reply says, as far as conditions ask: `nothing` is null, zero or empty. */
export type Answer = 'OK' | 'nothing' | 'other';

function answerOf(reply: unknown): Answer {
  if (reply === null || reply === undefined) return 'nothing';
  if (typeof reply === 'object' && !(reply instanceof Buffer)) {
    const [answer = 'nothing', ...others] = new Set(Object.values(reply).slice(0, MOST_VALUES).map(answerOf));
    return others.length === 0 ? answer : 'other';
  }
  const text = String(reply);
  return text === '' || text === '0' ? 'nothing' : text === 'OK' ? 'OK' : 'other';
}

/** Short values are often held by chance. */
export const isShort = (value: string): boolean => value.length <= 3;

/** Where each word stands: `1.0` is the first one of the second argument. */
function slotsOf(args: readonly string[]): Map<string, string> {
  const slots = new Map<string, string>();
  for (const [index, arg] of args.entries()) {
    for (const [at, word] of (arg.match(/[\p{L}\p{N}]+/gu) ?? []).entries()) {
      slots.set(`${index}.${at}`, word);
      // Those of a random token are no identity.
      const digits = /^\D+(\d+)$/.exec(word)?.[1];
      if (digits !== undefined) slots.set(`${index}.${at}.digits`, digits);
    }
  }
  return slots;
}

/** Values of a reply, also in JSON, and the parts of a list in one text. */
function valuesIn(reply: unknown): string[] {
  if (reply === null || reply === undefined) return [];
  if (typeof reply === 'object' && !(reply instanceof Buffer)) {
    // Names of fields are identities where there is a number in them.
    const names = Array.isArray(reply) ? [] : Object.keys(reply).filter((name) => /\d/.test(name));
    return [...names, ...Object.values(reply)].slice(0, MOST_VALUES).flatMap(valuesIn).slice(0, MOST_VALUES);
  }
  const text = String(reply).toLowerCase();
  if (/^\s*[{[]/.test(text) && text.length <= LONGEST_JSON) {
    try {
      return valuesIn(JSON.parse(text));
    } catch {}
  }
  if (text.length > LONGEST_VALUE) return [];
  const parts = /^\S+$/.test(text) ? text.split(/[,;|/:]/) : [];
  return [text, ...(parts.length > 1 ? parts : [])].filter((part) => part !== '' && part !== 'ok');
}

/** The arguments as text, without those that only code of users could make text: it runs once per call. */
function textsOf(args: readonly unknown[]): string[] {
  const values = args.slice(0, MOST_VALUES).flatMap(elementsOf).flatMap(elementsOf).slice(0, MOST_VALUES);
  return values
    .map((value) => (value instanceof Buffer ? Buffer.prototype.toString.call(value, 'utf8', 0, LONGEST_TEXT) : value))
    .filter((text) => typeof text === 'string' || typeof text === 'number')
    .map((text) => String(text).slice(0, LONGEST_TEXT).toLowerCase());
}

/** The elements of an array that are plain values; anything else is its only element. */
function elementsOf(list: unknown): unknown[] {
  if (!Array.isArray(list)) return [list];
  if (types.isProxy(list)) return [];
  const indices = Array.from({ length: Math.min(list.length, MOST_VALUES) }, (_, index) => index);
  return indices.map((index) => Object.getOwnPropertyDescriptor(list, index)?.value);
}
