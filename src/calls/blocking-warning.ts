/** The warning that other commands wait behind a blocking one. */
import { methodsNamed } from '../commands/fast-commands.js';
import type { CallTarget } from '../core/call-target.js';
import { CODES, warnOnce } from '../errors.js';
import type { HostCommand } from '../host/types.js';
import { setTimeout } from '../util/clock.js';
import type { MethodSpec } from './method.js';

/**
 * Commands that block their connection until other clients act, or until its own writes take effect (`wait`,
 * `waitaof`); those that read streams block only with the argument `BLOCK`.
 */
const BLOCKING_COMMANDS: readonly string[] =
  'blpop brpop brpoplpush blmove blmovem blmpop bzpopmin bzpopmax bzmpop xread xreadgroup wait waitaof'.split(' ');

/**
 * Whether a command blocks its connection. A stream may be called `BLOCK`, so only arguments before STREAMS count.
 */
export function isBlocking({ name, args }: Pick<HostCommand, 'name' | 'args'>): boolean {
  const lowerCase = name.toLowerCase();
  if (!lowerCase.startsWith('xread')) return BLOCKING_COMMANDS.includes(lowerCase);
  const words = args.map((arg) => String(arg).toLowerCase());
  // GROUP is followed by the names of the group and the consumer.
  const first = words[0] === 'group' ? 3 : 0;
  return words.slice(first, words.indexOf('streams', first)).includes('block');
}

export function blockingMethods(parent: MethodSpec['parent']): MethodSpec[] {
  return BLOCKING_COMMANDS.flatMap((name) =>
    methodsNamed(name).map(([methodName]) => ({
      methodName,
      parent,
      onFallback: (target) => warnIfBlocking(target, name),
    })),
  );
}

const GRACE_MS = 1_000;
/** Attachments in their grace period. */
const waiting = new WeakSet<CallTarget>();

/**
 * Warns once per name if other commands still wait behind a blocking one after the grace period.
 *
 * @param name - the name of the command about to be sent, in lower case.
 */
export function warnIfBlocking(target: CallTarget, name: string): void {
  if (!BLOCKING_COMMANDS.includes(name) || waiting.has(target)) return;
  waiting.add(target);
  setTimeout(() => {
    waiting.delete(target);
    const waitedFor = target.blockedBy;
    if (waitedFor === undefined) return;
    warnOnce(
      CODES.BLOCKING,
      `ioredis-coalesce: commands wait behind "${waitedFor}" on a connection that they share with it; give blocking ` +
        'commands a client of their own: client.duplicate()',
    );
  }, GRACE_MS).unref();
}
