import { CODES, warnOnce } from '../errors.js';
import { setTimeout } from '../util/clock.js';

/** Commands that keep their connection waiting. */
const ALWAYS = 'blpop brpop brpoplpush blmove blmpop bzpopmin bzpopmax bzmpop wait waitaof'.split(' ');
/** Commands that do so with the argument `BLOCK`. */
const WITH_BLOCK = ['xread', 'xreadgroup'];

export const BLOCKING_COMMANDS: readonly string[] = [...ALWAYS, ...WITH_BLOCK];

/** A blocking command may take this long before anyone is said to wait for it, in milliseconds. */
const PATIENCE = 1_000;

/** Who can say how many commands wait behind the one of this name that is being answered. */
export interface BlockedQueue {
  waitingBehind(name: string): number;
}

const watched = new WeakSet<BlockedQueue>();

/** Warns, once for each name, if commands of others wait behind a blocking one a while after it was issued. */
export function watchBlocking(client: BlockedQueue, name: string, args: readonly unknown[]): void {
  if (watched.has(client)) return;
  if (WITH_BLOCK.includes(name) && !args.flat().some((arg) => typeof arg === 'string' && /^block$/i.test(arg))) return;
  watched.add(client);
  setTimeout(() => {
    watched.delete(client);
    const waiting = client.waitingBehind(name);
    if (waiting === 0) return;
    warnOnce(
      CODES.BLOCKING,
      `ioredis-coalesce: commands wait behind "${name}" on a connection that they share with it; give blocking ` +
        'commands a connection of their own, such as client.duplicate()',
    );
  }, PATIENCE).unref();
}
