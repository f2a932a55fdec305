import { HOT_COMMANDS, type HotCommand } from './hot-commands.js';

/**
 * The effect of a command on the answers kept in memory. Of the hot path's commands, those that touch no data are listed
 * here; the keys of the others are known.
 *
 * - `none`: no effect;
 * - `anything`: it may change any key, and Redis pushes the changed keys: scripts, and all commands not listed here;
 * - `clear`: later reads may see other values, and no push announces that: another database, another user;
 * - `end`: invalidations no longer come as this connection has asked for them;
 * - the others begin and end a transaction.
 */
type Effect = 'none' | 'anything' | 'clear' | 'end' | 'multi' | 'exec' | 'discard' | 'watch' | 'unwatch';

const EFFECTS: Partial<Record<Effect, string>> = {
  none: `
    ping echo time publish spublish subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe
    info config command acl latency slowlog memory role lolwut object wait waitaof asking readonly readwrite quit
    script function`,
  // SWAPDB and CLUSTER change the values of keys without a push.
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

/** CLIENT subcommands after which pushes, or replies, no longer come as before. */
const ENDING_SUBCOMMANDS = ['tracking', 'reply'];

/**
 * @param args - the command's name, then its arguments; read only as far as needed.
 * @returns its effect, or the hot path's command of that name, whose keys are known.
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
