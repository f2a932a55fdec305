import { CODES, warnOnce } from '../errors.js';
import { setTimeout } from '../util/clock.js';

/** Commands that keep their connection waiting. */
const ALWAYS = 'blpop brpop brpoplpush blmove blmpop bzpopmin bzpopmax bzmpop wait waitaof'.split(' ');
/** Commands that keep it waiting with the argument `BLOCK`. */
const WITH_BLOCK = ['xread', 'xreadgroup'];

export const BLOCKING_COMMANDS: readonly string[] = [...ALWAYS, ...WITH_BLOCK];

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
        'commands a connection of their own, such as client.duplicate()',
    );
  }, PATIENCE).unref();
}
