import { HOT_COMMANDS, type HotCommand } from './hot-commands.js';

/**
 * The effect of a command on the answers kept in memory. Of the hot path's commands, those that touch no data are listed
 * here; the keys of the others are known.
 *
 * - `none`: no effect;
 * - `anything`: it may change any key, and Redis pushes the changed keys: scripts, and all commands not listed here;
 * - `clear`: later reads may see other values, and no push announces that: another database, another user;
 * - `end`: invalidations no longer come as this connection has asked for them; `no replies`: nor do replies; `reset`: and
 *   an open transaction ends;
 * - the others begin and end a transaction.
 *
 * A hot command has no effect of these; the keys that it may change are known.
 */
export type Effect =
  | HotCommand
  | 'none'
  | 'anything'
  | 'clear'
  | 'end'
  | 'no replies'
  | 'reset'
  | 'multi'
  | 'exec'
  | 'discard'
  | 'watch'
  | 'unwatch';

const EFFECTS: Partial<Record<Exclude<Effect, HotCommand>, string>> = {
  none: `
    ping echo time publish spublish subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe
    info config command acl latency slowlog memory role lolwut object wait waitaof asking readonly readwrite quit
    script function`,
  // SWAPDB and CLUSTER change the values of keys without a push.
  clear: 'select swapdb auth flushdb flushall debug cluster replicaof slaveof failover',
  end: 'monitor sync psync',
  reset: 'reset',
  multi: 'multi',
  exec: 'exec',
  discard: 'discard',
  watch: 'watch',
  unwatch: 'unwatch',
};

const effects = new Map<string, Effect>([
  ...HOT_COMMANDS.map((command) => [command.name, command] as const),
  ...Object.entries(EFFECTS).flatMap(([effect, names]) =>
    names
      .split(/\s+/)
      .filter((name) => name !== '')
      .map((name) => [name, effect as Effect] as const),
  ),
]);

/**
 * @param args - the command's name, then its arguments; read only as far as needed.
 * @returns its effect, or the hot path's command of that name.
 */
export function effectOf(args: { readonly count: number; text(index: number): string }): Effect {
  const name = args.text(0).toLowerCase();
  // HELLO alone only asks.
  if (name === 'hello') return args.count > 1 ? 'end' : 'none';
  if (name === 'client') return effectOfClient(args.text(1).toLowerCase(), args.text(2).toLowerCase());
  return effects.get(name) ?? 'anything';
}

function effectOfClient(subcommand: string, argument: string): Effect {
  if (subcommand === 'tracking') return 'end';
  if (subcommand !== 'reply') return 'none';
  return argument === 'off' || argument === 'skip' ? 'no replies' : 'end';
}
