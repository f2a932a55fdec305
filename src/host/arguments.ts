import { type FastCommand, KEY_POSITIONS } from '../commands/fast-commands.js';
import { isPlainNumber } from '../resp/encoder.js';
import type { FallbackReason } from '../stats.js';
import { flatOf } from '../util/values.js';
import { type ArgumentTransformer, HOST_ONLY, runTransformer, withTransformation } from './command-class.js';
import type { HostCommandClass } from './types.js';

/** The arguments of a call as far as they were read. User code in them runs once per call, as on a plain client. */
export interface ArgumentsSoFar {
  /** The flattened arguments; set if one was an array, which is read once, since its elements may be getters. */
  readonly flattened?: readonly unknown[] | undefined;
  /** Makes a call in which the command's transformer repeats its earlier outcome; set if it has run. */
  readonly asTransformed?: (call: () => unknown) => unknown;
}

/** A call that the host must answer. */
export class Fallback {
  constructor(
    readonly reason: FallbackReason,
    readonly argumentsSoFar?: ArgumentsSoFar,
  ) {}
}

/** Arguments as they are encoded, if they are plain. */
export interface Prepared {
  readonly sent: readonly unknown[];
  /** The first key. */
  readonly key: unknown;
  /** Needed by the host if the command falls back after all. */
  readonly argumentsSoFar?: ArgumentsSoFar;
}

/**
 * Prepares arguments as the host does before encoding: flattens one level of arrays, then applies the command's
 * transformer and `keyPrefix` (`built/Command.js`, constructor).
 *
 * @param args - without the callback.
 */
export function prepareArguments(
  command: FastCommand,
  commandClass: HostCommandClass,
  keyPrefix: string | Buffer | undefined,
  transformer: ArgumentTransformer | undefined,
  args: readonly unknown[],
): Prepared | Fallback {
  // The callback has been removed already: the host converts a function here to text.
  if (typeof args[args.length - 1] === 'function') return new Fallback('arguments');
  const flattened = holdsArray(args) ? flatOf(args) : undefined;
  let sent = flattened ?? args;
  let read: ArgumentsSoFar = { flattened };
  if (transformer === HOST_ONLY) return new Fallback('transformer', read);
  if (transformer !== undefined) {
    const transformation = runTransformer(transformer, sent.slice());
    const asTransformed = (call: () => unknown) => withTransformation(commandClass, command.name, transformation, call);
    read = { flattened, asTransformed };
    // Host: it sends anything that has a length.
    if (!('args' in transformation && Array.isArray(transformation.args))) return new Fallback('transformer', read);
    // A copy: the transformer may keep its array, and change it before the command is sent.
    sent = transformation.args.slice() as unknown[];
  }
  const prefixed = keyPrefix ? withKeyPrefix(command, keyPrefix, sent) : sent;
  return prefixed === undefined
    ? new Fallback('arguments', read)
    : { sent: prefixed, key: prefixed[0], argumentsSoFar: read };
}

/** Whether `flat()` would change these arguments, and maybe run getters. */
export function holdsArray(args: readonly unknown[]): boolean {
  for (let index = 0; index < args.length; index += 1) if (Array.isArray(args[index])) return true;
  return false;
}

/** The arguments with `keyPrefix` before each key, in a new array; undefined if only the host can find the keys. */
function withKeyPrefix(command: FastCommand, prefix: string | Buffer, args: readonly unknown[]): unknown[] | undefined {
  const positions = KEY_POSITIONS[command.keys];
  if (positions === undefined || typeof prefix !== 'string') return undefined;
  if (Number.isFinite(positions.count) && args.length < positions.count) return undefined;
  const prefixed = args.slice();
  const last = Math.min(args.length, positions.count * positions.step);
  for (let index = 0; index < last; index += positions.step) {
    const key = prefixedKey(prefix, args[index]);
    if (key === undefined) return undefined;
    prefixed[index] = key;
  }
  return prefixed;
}

/** `keyPrefix` and a key; undefined if only the host can join them. */
export function prefixedKey(prefix: unknown, key: unknown): string | undefined {
  if (typeof prefix !== 'string') return undefined;
  return typeof key === 'string' || (typeof key === 'number' && isPlainNumber(key)) ? prefix + key : undefined;
}
