import { debugFallback } from '../channels.js';
import { isUnpatchedMethod } from '../host/probe.js';
import { isUnpatchedScriptMethod } from '../host/script.js';
import type { AnyFunction } from '../host/types.js';
import type { FallbackReason } from '../stats.js';
import { flatOf } from '../util/flat.js';
import type { FastRoute } from './route.js';
import { slowPathWatch } from './slow-path-warning.js';

/** Whether a method is the host's, and sends one command by `sendCommand`. */
export function isUnpatchedCommand(method: AnyFunction): boolean {
  return isUnpatchedMethod(method) || isUnpatchedScriptMethod(method);
}

/** The arguments of a call as far as they have been read. User code in them runs once per call, as on a plain client. */
export interface ReadArguments {
  /** Without arrays, if there were any among them: elements may be getters. */
  readonly flattened?: readonly unknown[] | undefined;
  /** Makes a call to which the command's transformer gives what it has given before; set if it has run. */
  readonly asTransformed?: (call: () => unknown) => unknown;
}

/** A call that the host must answer. */
export class Fallback {
  constructor(
    readonly reason: FallbackReason,
    readonly read?: ReadArguments,
  ) {}
}

/** A command has fallen back. */
export function countFallback(
  { counters }: Pick<FastRoute, 'counters'>,
  methodName: string,
  reason: FallbackReason,
): void {
  if (counters === undefined) return;
  slowPathWatch.fellBack(counters, reason);
  if (debugFallback.enabled) debugFallback('%s: %s', methodName, reason);
}

/**
 * More arguments than this are not spread again. The caller's own are on the stack by now, and 123,000 of them fill it
 * (Node's default size), so there may be no room for them twice.
 */
const MOST_SPREAD = 1_000;

/**
 * Calls a method of the host's with the arguments that one of ours was called with. A method that a user has put in its
 * place gets them as they are.
 *
 * @param args - all arguments of the call.
 * @param leading - how many of them are in front of the command's, such as the name in `call(name, …)`.
 */
export function callHost(
  method: AnyFunction,
  receiver: unknown,
  args: readonly unknown[],
  leading = 0,
  { flattened, asTransformed }: ReadArguments = {},
): unknown {
  const given = flattened === undefined ? args : inOneArray(args, leading, flattened);
  if (asTransformed !== undefined) return asTransformed(() => callHost(method, receiver, given, leading));
  if (given.length <= MOST_SPREAD || !isUnpatchedCommand(method)) return method.apply(receiver, given as unknown[]);
  const end = endsInCallback(given, leading) ? -1 : given.length;
  return method.apply(receiver, inOneArray(given, leading, flatOf(given.slice(leading, end))));
}

/** Host: one level of arrays is flattened, so one array of all arguments is equivalent to the arguments. */
function inOneArray(args: readonly unknown[], leading: number, flattened: readonly unknown[]): unknown[] {
  const callback = endsInCallback(args, leading) ? args.slice(-1) : [];
  return [...args.slice(0, leading), flattened, ...callback];
}

function endsInCallback(args: readonly unknown[], leading: number): boolean {
  return args.length > leading && typeof args[args.length - 1] === 'function';
}
