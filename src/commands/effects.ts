import { HOT_COMMANDS, type HotCommand } from './hot-commands.js';

/**
 * What a command means for the reads that are kept in memory, beside those of the hot path's list, whose keys are known:
 *
 * - `none`: nothing;
 * - `anything`: it may change any key, and Redis pushes what it has changed: scripts, and all that is not known here;
 * - `clear`: what can be read afterwards is something else, and no push says so: another database, another user;
 * - `end`: what was asked of Redis about invalidations holds no longer;
 * - the others begin and end a transaction.
 */
export type Effect = 'none' | 'anything' | 'clear' | 'end' | 'multi' | 'exec' | 'discard' | 'watch' | 'unwatch';

const EFFECTS: Partial<Record<Effect, string>> = {
  none: `
    ping echo time publish spublish subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe
    info config command acl latency slowlog memory role lolwut object wait waitaof asking readonly readwrite quit
    script function`,
  // SWAPDB and CLUSTER change what keys hold without a push.
  clear: 'select swapdb auth flushdb flushall debug cluster replicaof slaveof failover',
  end: 'reset monitor sync psync',
  multi: 'multi',
  exec: 'exec',
  discard: 'discard',
  watch: 'watch',
  unwatch: 'unwatch',
};

const effects = new Map<string, Effect | HotCommand>([
  ...HOT_COMMANDS.map((command) => [command.name, command] as const),
  ...Object.entries(EFFECTS).flatMap(([effect, names]) =>
    names
      .split(/\s+/)
      .filter((name) => name !== '')
      .map((name) => [name, effect as Effect] as const),
  ),
]);

/** CLIENT subcommands after which pushes, or replies, do not come as they did. */
const ENDING_SUBCOMMANDS = ['tracking', 'reply'];

/**
 * @param args - the command's name and what follows it, as far as it is asked for.
 * @returns its effect, or the hot path's command of that name, which knows its keys.
 */
export function effectOf(args: { readonly count: number; text(index: number): string }): Effect | HotCommand {
  const name = args.text(0).toLowerCase();
  // HELLO alone only asks.
  if (name === 'hello') return args.count > 1 ? 'end' : 'none';
  if (name === 'client') {
    return args.count > 1 && ENDING_SUBCOMMANDS.includes(args.text(1).toLowerCase()) ? 'end' : 'none';
  }
  return effects.get(name) ?? 'anything';
}
