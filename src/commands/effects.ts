import { FAST_COMMANDS, KEY_POSITIONS, type KeyRule, words } from './fast-commands.js';

/** A command as text: its name, then its arguments. Missing arguments are empty. */
export interface Arguments {
  /** Including the name. */
  readonly count: number;
  text(index: number): string;
}

/** The arguments that are keys: every `step`-th from `start` to before `end`. */
export interface KeyRange {
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

/** The effect of a command with known keys: it changes them, or its reply shows them. */
export interface KeyedEffect {
  readonly changes: boolean;
  range(args: Arguments): KeyRange;
}

/**
 * The effect of a command on the answers to later reads of its client:
 *
 * - known keys, which it changes or shows;
 * - `none`;
 * - `shows`: its reply may show any key, and it changes none;
 * - `script`: like `anything`; the keys that it declares are `scriptKeys`;
 * - `anything`: it may change any key, and Redis pushes the changed keys: all commands not listed here;
 * - `clear`: later reads may see other values, and no push announces that: another database, another user;
 * - `end`: the server no longer sends the invalidations that this connection has requested;
 * - `no replies`: like `end`, and the server omits replies;
 * - `reset`: like `end`, and an open transaction ends;
 * - `next`: it changes the meaning of the next command (ASKING, CLIENT CACHING);
 * - the others begin and end a transaction.
 */
export type Effect = KeyedEffect | NamedEffect;
type NamedEffect =
  | ('none' | 'shows' | 'script' | 'anything' | 'clear' | 'end' | 'no replies' | 'next')
  | (typeof OF_THEIR_NAME)[number];

const NAMED: Partial<Record<NamedEffect, string>> = {
  none: `
    ping echo time publish spublish subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe
    info config command latency slowlog role lolwut wait waitaof readonly readwrite script function`,
  // SORT_RO: BY and GET take key patterns. SORT is not listed, because it may store.
  shows: 'keys scan dbsize randomkey sort_ro ft.search ft.aggregate',
  // The server also lets scripts read keys that they do not declare.
  script: 'eval evalsha fcall eval_ro evalsha_ro fcall_ro',
  // SWAPDB and CLUSTER change the values of keys without a push.
  clear: 'select swapdb auth acl flushdb flushall debug cluster replicaof slaveof failover',
  end: 'monitor sync psync quit',
  next: 'asking',
};
const OF_THEIR_NAME = ['reset', 'multi', 'exec', 'discard', 'watch', 'unwatch'] as const;
/** Commands that are refused with an argument. RESP: EXEC is also refused, but ends the transaction. */
const ALONE = /^(reset|multi|discard|unwatch)$/;

const at = (index: number) => () => ({ start: index, end: index + 1, step: 1 });

/** The keys after the argument at `index`, which is their number. */
const counted = (index: number) => (args: Arguments) => ({
  start: index + 1,
  end: Math.min(args.count, index + 1 + Math.max(0, Number.parseInt(args.text(index), 10) || 0)),
  step: 1,
});

/** The keys that a script declares. */
export const scriptKeys = counted(2);

function rangeOf(rule: KeyRule): KeyedEffect['range'] {
  const { count, step } = KEY_POSITIONS[rule] ?? KEY_POSITIONS.none;
  if (count === Number.POSITIVE_INFINITY) return (args) => ({ start: 1, end: args.count, step });
  const range = { start: 1, end: 1 + count, step };
  return () => range;
}

const allButLast = ({ count }: Arguments) => ({ start: 1, end: count - 1, step: 1 });
const fromSecond = ({ count }: Arguments) => ({ start: 2, end: count, step: 1 });

/** `ZUNIONSTORE destination numkeys key …`. Includes the number as a key, which is harmless. */
const stored = (args: Arguments) => ({ start: 1, end: counted(2)(args).end, step: 1 });

/** `XREAD … STREAMS key … id …`; a group or a consumer of XREADGROUP may have the name `streams`. */
function streams(args: Arguments): KeyRange {
  for (let index = 1; index < args.count; index += 1) {
    const word = args.text(index).toLowerCase();
    if (word === 'group') index += 2;
    if (word === 'streams') return { start: index + 1, end: (index + 1 + args.count) / 2, step: 1 };
  }
  return { start: 0, end: 0, step: 1 };
}

/** Commands that change keys. The ranges include keys that they only read, because their replies show them. */
const CHANGED: readonly [names: string, range: KeyedEffect['range']][] = [
  ['hexpire hpexpire hexpireat hpexpireat hpersist hgetdel hgetex hsetex xsetid', rangeOf('first')],
  ['zunionstore zinterstore zdiffstore', stored],
  ['geosearchstore', rangeOf('two')],
  ['bitop', fromSecond],
  ['xgroup', at(2)],
  ['lmpop zmpop', counted(1)],
  ['blmpop bzmpop', counted(2)],
  ['blpop brpop bzpopmin bzpopmax', allButLast],
  ['blmove brpoplpush', rangeOf('two')],
];

const SHOWN: readonly [names: string, range: KeyedEffect['range']][] = [
  ['httl hpttl hexpiretime hpexpiretime georadius_ro georadiusbymember_ro bitfield_ro', rangeOf('first')],
  ['json.get json.type json.strlen json.arrlen json.objkeys json.objlen json.arrindex json.resp', rangeOf('first')],
  ['json.mget', allButLast],
  ['xinfo object memory', at(2)],
  ['xread xreadgroup', streams],
  ['zunion zinter zdiff sintercard zintercard', counted(1)],
];

const keyed = (changes: boolean, table: typeof CHANGED) =>
  table.flatMap(([names, range]) => words(names).map((name) => [name, { changes, range }] as const));

const effects = new Map<string, Effect>([
  // Commands with their own key rule are listed above, or may change anything.
  ...FAST_COMMANDS.filter(({ keys }) => keys !== 'own').map(({ name, readOnly, keys }) => {
    // Redis flags PFCOUNT as `readonly`, although it caches the count in the key (src/hyperloglog.c, `pfcountCommand`).
    return [name, { changes: !readOnly || name === 'pfcount', range: rangeOf(keys) }] as const;
  }),
  ...keyed(true, CHANGED),
  ...keyed(false, SHOWN),
  ...OF_THEIR_NAME.map((name) => [name, name] as const),
  ...Object.entries(NAMED).flatMap(([effect, names]) =>
    words(names).map((name) => [name, effect as NamedEffect] as const),
  ),
]);

/** The keys of a command with this effect. */
export function keysOf({ range }: KeyedEffect, args: Arguments): string[] {
  const { start, end, step } = range(args);
  const names: string[] = [];
  for (let index = start; index < Math.min(end, args.count); index += step) names.push(args.text(index));
  return names;
}

/** The effect of a command by its name, without its arguments. */
export function effectOfName(name: string): Effect {
  return effects.get(name) ?? effects.get(name.toLowerCase()) ?? 'anything';
}

/** @param args - read only as far as needed. */
export function effectOf(args: Arguments): Effect {
  const name = args.text(0).toLowerCase();
  // HELLO without arguments is only a query.
  if (name === 'hello') return args.count > 1 ? 'end' : 'none';
  if (name === 'client') return effectOfClient(args.text(1).toLowerCase(), args.text(2).toLowerCase());
  return args.count > 1 && ALONE.test(name) ? 'none' : effectOfName(name);
}

function effectOfClient(subcommand: string, argument: string): Effect {
  if (subcommand === 'tracking') return 'end';
  if (subcommand === 'caching') return 'next';
  if (subcommand !== 'reply') return 'none';
  return argument === 'off' || argument === 'skip' ? 'no replies' : 'end';
}
