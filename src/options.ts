import type { Schedule } from './connection/scheduler.js';
import { CODES, describe, describeType, withCode } from './errors.js';

/** What `coalesce()` and the drop-in class take; every key is optional. */
export interface CoalesceOptions {
  /**
   * When a batch is flushed, counted from its first command: at the end of this turn of the event loop
   * (`'immediate'`), at the end of the running callback (`'tick'`), or when a function of yours calls the `flush` it
   * is given. A later flush makes larger batches and longer latencies.
   * @default 'immediate'
   */
  schedule?: Schedule;
  /**
   * Milliseconds that a batch may be held back for more commands, and only while more commands await their reply than
   * wait to be sent: a lone command never waits. It trades latency for fewer, larger writes. `0` switches it off.
   * Minimum 0.
   * @default 0
   */
  maxFlushDelay?: number;
  /**
   * Commands in one batch; the one that reaches it flushes at once. Smaller values let the server start earlier on a
   * large burst, larger ones save system calls. Minimum 1.
   * @default 1000
   */
  maxBatchSize?: number;
  /**
   * Bytes in one batch; the command that reaches it flushes at once. Minimum 1, maximum 67108864 (64 MiB): Node cannot
   * write much more in one go.
   * @default 262144
   */
  maxBatchBytes?: number;
  /**
   * Unanswered commands on the wire per connection. The bytes of later ones wait in the client, in order, until
   * replies make room, so that a burst of a million commands does not fill the server's reply buffers. A transaction
   * or explicit pipeline is never split; one larger than this goes alone. Minimum 1.
   * @default 10000
   */
  maxInFlight?: number;
  /**
   * Whether simple commands are encoded and decoded by this package (layer 2). `false` leaves the cork (layer 1) alone.
   * @default true
   */
  hotPath?: boolean;
  /**
   * Whether identical reads in one batch, with no other kind of command between them, are sent once; each caller still
   * gets a value of its own.
   * @default false
   */
  shareReads?: boolean;
}

/** How to coalesce: options, `true` for the defaults, or `false` to leave the client plain. */
export type CoalesceSetting = CoalesceOptions | boolean;

/** Every option with its value; frozen. */
export type ResolvedOptions = Readonly<Required<CoalesceOptions>>;

/** A `writev` of strings counts three bytes per character, and fails beyond about 700 MB; so does V8 beyond 2^29 characters. */
const MOST_BATCH_BYTES = 64 * 1024 * 1024;

export const DEFAULT_OPTIONS: ResolvedOptions = Object.freeze({
  schedule: 'immediate',
  maxFlushDelay: 0,
  maxBatchSize: 1_000,
  maxBatchBytes: 256 * 1024,
  maxInFlight: 10_000,
  hotPath: true,
  shareReads: false,
});

/**
 * Fills in defaults and checks every key.
 *
 * @param name - what the caller has them under, for messages: `options`, or `option coalesce` of a class.
 * @returns false if the client is to stay plain.
 * @throws {TypeError} of code `COALESCE_ERR_OPTION` for an unknown key or a wrong type.
 * @throws {RangeError} of code `COALESCE_ERR_OPTION` for a number out of range.
 */
export function resolveSetting(setting: CoalesceSetting | undefined, name: string): ResolvedOptions | false {
  if (setting === false) return false;
  return setting === undefined || setting === true ? DEFAULT_OPTIONS : resolveOptions(setting, name);
}

function resolveOptions(options: CoalesceOptions, name: string): ResolvedOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw coded(TypeError, `${name} must be an object, true or false, got ${describeType(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!Object.hasOwn(DEFAULT_OPTIONS, key)) {
      const known = Object.keys(DEFAULT_OPTIONS).join(', ');
      throw coded(TypeError, `${name}.${key} is not an option; the options are ${known}`);
    }
  }
  const given = new GivenOptions(options, name);
  return Object.freeze({
    schedule: given.schedule(),
    maxFlushDelay: given.delay('maxFlushDelay'),
    maxBatchSize: given.count('maxBatchSize'),
    maxBatchBytes: given.count('maxBatchBytes'),
    maxInFlight: given.count('maxInFlight'),
    hotPath: given.boolean('hotPath'),
    shareReads: given.boolean('shareReads'),
  });
}

/** Options as the caller gave them; each getter checks one, or takes its default. */
class GivenOptions {
  constructor(
    readonly options: CoalesceOptions,
    readonly name: string,
  ) {}

  schedule(): Schedule {
    const value = this.#valueOf('schedule') as Schedule;
    if (value === 'immediate' || value === 'tick' || typeof value === 'function') return value;
    throw this.#wrong(TypeError, 'schedule', "'immediate', 'tick' or a function that takes the flush");
  }

  delay(key: 'maxFlushDelay'): number {
    return this.#number(key, 'a number of milliseconds from 0 to 2147483647', (ms) => ms >= 0 && ms <= 0x7fffffff);
  }

  count(key: 'maxBatchSize' | 'maxBatchBytes' | 'maxInFlight'): number {
    const most = key === 'maxBatchBytes' ? MOST_BATCH_BYTES : Number.MAX_SAFE_INTEGER;
    const expected = key === 'maxBatchBytes' ? `a positive integer of at most ${most}` : 'a positive integer';
    return this.#number(key, expected, (count) => Number.isInteger(count) && count >= 1 && count <= most);
  }

  boolean(key: 'hotPath' | 'shareReads'): boolean {
    const value = this.#valueOf(key);
    if (typeof value === 'boolean') return value;
    throw this.#wrong(TypeError, key, 'a boolean');
  }

  #number(key: keyof CoalesceOptions, expected: string, isInRange: (value: number) => boolean): number {
    const value = this.#valueOf(key);
    if (typeof value !== 'number') throw this.#wrong(TypeError, key, expected);
    if (!isInRange(value)) throw this.#wrong(RangeError, key, expected);
    return value;
  }

  #valueOf(key: keyof CoalesceOptions): unknown {
    const value: unknown = this.options[key];
    return value === undefined ? DEFAULT_OPTIONS[key] : value;
  }

  #wrong(errorClass: ErrorClass, key: keyof CoalesceOptions, expected: string): Error {
    return coded(errorClass, `${this.name}.${key} must be ${expected}, got ${describe(this.options[key])}`);
  }
}

type ErrorClass = new (message: string) => Error;

function coded(errorClass: ErrorClass, message: string): Error {
  return withCode(new errorClass(`ioredis-coalesce: ${message}`), CODES.OPTION);
}
