import { debugFallback } from '../channels.js';
import type { CallTarget } from '../core/call-target.js';
import { CODES, warnOnce } from '../errors.js';
import type { ArgumentsSoFar } from '../host/arguments.js';
import { isCommandMethod } from '../host/probe.js';
import { isUnpatchedScriptMethod } from '../host/script.js';
import type { AnyFunction } from '../host/types.js';
import type { FallbackReason, Stats } from '../stats.js';
import { now } from '../util/clock.js';
import { flatOf } from '../util/values.js';

/** Whether a method is the host's own, and sends one command by `sendCommand`. */
export function isUnpatchedCommand(method: AnyFunction): boolean {
  return isCommandMethod(method) || isUnpatchedScriptMethod(method);
}

/** Fallbacks for one reason between two checks; below this, traffic is too light to judge. */
const COMMANDS_PER_CHECK = 1024;
const PATIENCE_MS = 60_000;

/** The reasons that one setting can remove, each with its cause and cure. */
const CURES: Partial<Record<FallbackReason, string>> = {
  traced:
    'a tracer subscribes to the channel ioredis:command, Sentry even with tracesSampleRate: 0, which leaves pipelines and ' +
    'a cache to the client; leave its integration of Redis out',
  patched:
    'a tracer or other code has replaced a command method, or sendCommand, which leaves pipelines and a cache to the ' +
    'client; leave its instrumentation of ioredis out',
  options: 'enableAutoPipelining or showFriendlyErrorStack is set; turn it off',
};

/**
 * Warns once per process if a client under load has sent no fast command for a minute, for a reason that one setting
 * can remove.
 */
export class SlowPathWarning {
  /** Since when a client has sent no fast command, and how many it had sent before. */
  readonly #spells = new WeakMap<Stats, { readonly fastCommands: number; readonly sinceMs: number }>();
  #warned = false;

  constructor(readonly clock: () => number = now) {}

  fellBack(stats: Stats, reason: FallbackReason): void {
    if (stats.countFallback(reason) % COMMANDS_PER_CHECK !== 0 || this.#warned) return;
    const cure = CURES[reason];
    if (cure === undefined) return;
    const { fastCommands } = stats;
    const spell = this.#spells.get(stats);
    if (spell?.fastCommands !== fastCommands) {
      this.#spells.set(stats, { fastCommands, sinceMs: this.clock() });
      return;
    }
    if (this.clock() - spell.sinceMs < PATIENCE_MS) return;
    this.#warned = true;
    warnOnce(
      CODES.NOT_FAST,
      `ioredis-coalesce: for a minute, all commands of a client under load were left to the client, still in batches: ${cure}`,
    );
  }
}

const slowPathWarning = new SlowPathWarning();

export function countFallback({ counters }: Pick<CallTarget, 'counters'>, methodName: string, reason: FallbackReason) {
  slowPathWarning.fellBack(counters, reason);
  if (debugFallback.enabled) debugFallback('%s: %s', methodName, reason);
}

/**
 * More arguments than this are not spread again. The stack holds the caller's arguments already, and 123,000 of them
 * fill it (at Node's default size), so it may not hold them twice.
 */
export const MAX_SPREAD = 1_000;

/**
 * Calls a host method with the arguments of a call of ours. A user's replacement for it gets them unchanged.
 *
 * @param args - all arguments of the call.
 * @param leading - the number of arguments before the command's own, such as the name in `call(name, …)`.
 */
export function callHost(
  method: AnyFunction,
  receiver: unknown,
  args: readonly unknown[],
  leading = 0,
  { flattened, asTransformed }: ArgumentsSoFar = {},
): unknown {
  const given = flattened === undefined ? args : inOneArray(args, leading, flattened);
  if (asTransformed !== undefined) return asTransformed(() => callHost(method, receiver, given, leading));
  if (given.length <= MAX_SPREAD || !isUnpatchedCommand(method)) return method.apply(receiver, given as unknown[]);
  const end = endsInCallback(given, leading) ? -1 : given.length;
  return method.apply(receiver, inOneArray(given, leading, flatOf(given.slice(leading, end))));
}

/** Host: it flattens one level of arrays, so that one array of all arguments is equivalent to them. */
function inOneArray(args: readonly unknown[], leading: number, flattened: readonly unknown[]): unknown[] {
  const callback = endsInCallback(args, leading) ? args.slice(-1) : [];
  return [...args.slice(0, leading), flattened, ...callback];
}

function endsInCallback(args: readonly unknown[], leading: number): boolean {
  return args.length > leading && typeof args[args.length - 1] === 'function';
}
