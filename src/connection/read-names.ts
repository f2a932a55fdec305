import { type HotCommand, KEY_POSITIONS } from '../commands/hot-commands.js';
import { isPlainNumber } from '../resp/encoder.js';
import type { ReadArguments } from './cache-store.js';

/** The name under which answers of a key are kept; undefined for a key that is not text, such as a Buffer. */
export function keyName(argument: unknown): string | undefined {
  if (typeof argument === 'string') return argument;
  return typeof argument === 'number' && isPlainNumber(argument) ? String(argument) : undefined;
}

/** A key as the server names it in an invalidation, decoded as UTF-8. */
export function wireName(argument: unknown): string {
  if (argument instanceof Buffer) return argument.utf8Slice(0, argument.length);
  const name = String(argument);
  return name.isWellFormed() ? name : Buffer.from(name).toString();
}

/** The keys among a command's `count` arguments; undefined if the table does not say where they are. */
export function keysOf({ keys }: HotCommand, count: number, argument: (index: number) => string): string[] | undefined {
  const positions = KEY_POSITIONS[keys];
  if (positions === undefined) return undefined;
  const names: string[] = [];
  const end = Math.min(count, positions.count * positions.step);
  for (let index = 0; index < end; index += positions.step) names.push(argument(index));
  return names;
}

/** Whether all arguments are text, so that the answer to a read with them can be kept. */
export function areText(args: readonly unknown[]): boolean {
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index];
    if (typeof argument !== 'string' && keyName(argument) === undefined) return false;
  }
  return args.length > 0;
}

/** The other arguments, on which the answer depends too, without arrays; undefined if one of them is not text. */
export function argumentsOf(args: readonly unknown[]): ReadArguments | undefined {
  if (args.length === 1) return NO_ARGUMENTS;
  if (args.length === 2) {
    const text = keyName(args[1]);
    return text === undefined ? undefined : { count: 2, text };
  }
  let joined = '';
  for (let index = 1; index < args.length; index += 1) {
    const text = keyName(args[index]);
    if (text === undefined) return undefined;
    joined += `${text.length}:${text}`;
  }
  return { count: args.length, text: joined };
}

export const NO_ARGUMENTS: ReadArguments = { count: 1, text: '' };
