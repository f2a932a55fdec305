import { CODES, warnOnce } from '../errors.js';
import { setTimeout } from '../util/clock.js';

/** Commands that keep their connection waiting for what other clients do. */
const ALWAYS = 'blpop brpop brpoplpush blmove blmpop bzpopmin bzpopmax bzmpop'.split(' ');
/** Commands that keep it waiting for the effect of its own writes. */
const OF_OWN_WRITES = ['wait', 'waitaof'];
/** Commands that keep it waiting with the argument `BLOCK`. */
const WITH_BLOCK = ['xread', 'xreadgroup'];

export const BLOCKING_COMMANDS: readonly string[] = [...ALWAYS, ...OF_OWN_WRITES, ...WITH_BLOCK];

/** Whether a command of this name can wait as well on a connection of its own. */
export function mayWaitElsewhere(name: string, args: readonly unknown[]): boolean {
  return ALWAYS.includes(name) || (WITH_BLOCK.includes(name) && holdsBlock(args));
}

/** Whether a command that may wait does: `BLOCK` may be the name of a stream, too. */
export function waits({ name, args }: { readonly name: string; readonly args: readonly unknown[] }): boolean {
  if (!WITH_BLOCK.includes(name.toLowerCase())) return true;
  const words = args.map((arg) => String(arg).toLowerCase());
  // After GROUP come its name and the consumer's.
  let index = words[0] === 'group' ? 3 : 0;
  for (; index < words.length && words[index] !== 'streams'; index += 1) if (words[index] === 'block') return true;
  return false;
}

/** Grace period before the warning, in milliseconds. */
const PATIENCE = 1_000;

/** A client or Cluster whose queue may be blocked. */
export interface BlockedQueue {
  /** The number of commands behind a command of this name that is next to be answered; else 0, as after `detach()`. */
  waitingBehind(name: string): number;
}

const watched = new WeakSet<BlockedQueue>();

/** Host: elements of an array may be getters, which are read once per call. So only data properties are looked at. */
function holdsBlock(args: readonly unknown[]): boolean {
  const flat = args.flatMap((arg) =>
    Array.isArray(arg) ? Object.values(Object.getOwnPropertyDescriptors(arg)).map(({ value }) => value) : [arg],
  );
  return flat.some((arg) => typeof arg === 'string' && /^block$/i.test(arg));
}

/** Warns once per name if other commands still wait behind a blocking one after the grace period. */
export function watchBlocking(client: BlockedQueue, name: string, args: readonly unknown[]): void {
  if (watched.has(client)) return;
  if (WITH_BLOCK.includes(name) && !holdsBlock(args)) return;
  watched.add(client);
  setTimeout(() => {
    watched.delete(client);
    const waiting = client.waitingBehind(name);
    if (waiting === 0) return;
    warnOnce(
      CODES.BLOCKING,
      `ioredis-coalesce: commands wait behind "${name}" on a connection that they share with it; give blocking ` +
        'commands connections of their own, by the option blocking: { connections: 8 } or by client.duplicate()',
    );
  }, PATIENCE).unref();
}
