import fc from 'fast-check';
import type { Client } from '../hosts.js';
import { canonical } from './canonical.js';
import { Fates, OPEN } from './profiles.js';

/**
 * Programs against a server that refuses: users lose the right to a command or a key while their connection lives,
 * memory is full, the master is down, keys change their type, requests or replies are lost. Each value names its
 * database and key.
 */
export interface RefusingProgram {
  readonly protocol: 2 | 3;
  /** Whether the server has answered an MGET and an HMGET before. */
  readonly isProven: boolean;
  readonly checksReady: boolean;
  readonly keyPrefix: string;
  readonly turns: readonly Turn[];
}

export interface Turn {
  /** What the administrator does before it, as commands. */
  readonly before: readonly (readonly string[])[];
  readonly loses: 'nothing' | 'requests' | 'replies';
  readonly calls: readonly TurnCall[];
}

export interface TurnCall {
  readonly call: readonly [name: string, ...args: unknown[]];
  readonly how: 'method' | 'callback' | 'call';
  readonly gap: 'nothing' | 'microtask' | 'nextTick';
}

export const KEYS = ['a', 'b', 'a:é', 'ключ', 'x'.repeat(40), '7'] as const;
const FIELDS = ['f', 'g', 'é'] as const;
export const HASHES = ['h', 'i'] as const;
const key = fc.constantFrom<unknown>(...KEYS, ...KEYS, 'none', 'h', Buffer.from('a'), Buffer.from('ключ'), 7);
const text = fc.constantFrom<string>(...KEYS);
const hash = fc.constantFrom<unknown>(...HASHES, ...HASHES, 'h', 'a', 'none');
const field = fc.constantFrom<string>(...FIELDS, 'none');

const read: fc.Arbitrary<TurnCall['call']> = fc.oneof(
  { weight: 8, arbitrary: key.map((k) => ['get', k] as const) },
  { weight: 2, arbitrary: key.map((k) => ['getBuffer', k] as const) },
  { weight: 5, arbitrary: fc.tuple(hash, field).map(([h, f]) => ['hget', h, f] as const) },
  { weight: 1, arbitrary: fc.tuple(hash, field).map(([h, f]) => ['hgetBuffer', h, f] as const) },
  { weight: 1, arbitrary: fc.tuple(key, key).map((keys) => ['mget', ...keys] as const) },
  { weight: 1, arbitrary: fc.tuple(key, key).map((keys) => ['pipeline', ...keys] as const) },
  { weight: 1, arbitrary: fc.constant(['echo', 'text'] as const) },
);

/** The value is made by the runner, from database and key. */
const other: fc.Arbitrary<TurnCall['call']> = fc.oneof(
  { weight: 4, arbitrary: text.map((k) => ['set', k] as const) },
  { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...HASHES), field).map(([h, f]) => ['hset', h, f] as const) },
  { weight: 1, arbitrary: key.map((k) => ['del', k] as const) },
  { weight: 1, arbitrary: text.map((k) => ['pexpireat', k, 1] as const) },
  { weight: 2, arbitrary: fc.constantFrom(0, 1).map((db) => ['select', db] as const) },
  { weight: 1, arbitrary: fc.constantFrom(0, 1).map((db) => ['SELECT', db] as const) },
  { weight: 1, arbitrary: fc.constantFrom('user', 'other').map((user) => ['auth', user, 'any'] as const) },
  { weight: 1, arbitrary: text.map((k) => ['watch', k] as const) },
  { weight: 1, arbitrary: fc.constantFrom(['unwatch'], ['discard'], ['exec']) as fc.Arbitrary<TurnCall['call']> },
  { weight: 2, arbitrary: fc.constantFrom(['multi'], ['exec']) as fc.Arbitrary<TurnCall['call']> },
  { weight: 1, arbitrary: fc.tuple(key, key).map((keys) => ['transaction', ...keys] as const) },
  { weight: 1, arbitrary: fc.constant(['client', 'REPLY', 'ON'] as const) },
  { weight: 1, arbitrary: fc.constant(['client', 'CACHING', 'YES'] as const) },
);

const how = fc.constantFrom<TurnCall['how']>('method', 'method', 'method', 'method', 'callback', 'call');
const gap = fc.constantFrom<TurnCall['gap']>(...Array<'nothing'>(10).fill('nothing'), 'microtask', 'nextTick');

const calls = (of: fc.Arbitrary<TurnCall['call']>) =>
  fc.oneof(
    {
      weight: 12,
      arbitrary: fc.array(fc.record({ call: of, how, gap }), { minLength: 1, maxLength: 16, size: 'max' }),
    },
    // More than a part, and more than a group.
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.array(read, { minLength: 2, maxLength: 5 }), fc.constantFrom(33, 65, 140))
        .map(([runs, count]): TurnCall[] =>
          Array.from({ length: count }, (_, index) => ({
            call: runs[(index >> 3) % runs.length] as TurnCall['call'],
            how: 'method',
            gap: 'nothing',
          })),
        ),
    },
  );

const rule = fc.constantFrom(
  '-mget',
  '-hmget',
  '+mget',
  '+hmget',
  '-get',
  '+get',
  '-hget',
  '+hget',
  '-@string',
  '+@all',
);
const keysOf = fc.constantFrom(
  ['allkeys'],
  ['resetkeys', '~a*', '~h'],
  ['resetkeys', '~ключ', '~b', '~i'],
  ['resetkeys'],
);
const before = fc.oneof(
  { weight: 4, arbitrary: rule.map((one) => ['ACL', 'SETUSER', 'user', one]) },
  { weight: 2, arbitrary: keysOf.map((rules) => ['ACL', 'SETUSER', 'user', ...rules]) },
  { weight: 1, arbitrary: fc.constantFrom('0', '1').map((bytes) => ['CONFIG', 'SET', 'maxmemory', bytes]) },
  { weight: 1, arbitrary: fc.constant(['REPLICAOF', '127.0.0.1', '1']) },
  { weight: 2, arbitrary: fc.constant(['REPLICAOF', 'NO', 'ONE']) },
  { weight: 1, arbitrary: text.map((k) => ['DEL', k]) },
);

const turn: fc.Arbitrary<Turn> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      before: fc.oneof(
        { weight: 2, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.array(before, { maxLength: 2 }) },
      ),
      loses: fc.constant('nothing' as const),
      calls: calls(fc.oneof({ weight: 6, arbitrary: read }, { weight: 1, arbitrary: other })),
    }),
  },
  // What the server has executed when the replies are lost is a matter of luck, but for reads.
  {
    weight: 2,
    arbitrary: fc.record({
      before: fc.oneof(
        { weight: 2, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.array(before, { maxLength: 1 }) },
      ),
      loses: fc.constantFrom('requests' as const, 'replies' as const),
      calls: calls(read),
    }),
  },
);

export const refusingPrograms: fc.Arbitrary<RefusingProgram> = fc.record({
  protocol: fc.constantFrom(2 as const, 3 as const),
  isProven: fc.constantFrom(true, true, false),
  checksReady: fc.boolean(),
  keyPrefix: fc.constantFrom('', 'é:'),
  turns: fc.array(turn, { minLength: 1, maxLength: 8, size: 'max' }),
});

/** What became of a call. */
export interface Fate {
  readonly turn: number;
  readonly call: string;
  /** The database that is selected where it stands. */
  readonly db: number;
  /** The one that the host selects when it connects again: it does not notice `SELECT` in upper case. */
  readonly again: number;
  /** Whether commands other than reads follow it in its turn. */
  overtaken: boolean;
  /** Whether it settles with its own reply, as a promise. */
  readonly ordered: boolean;
  outcome: string;
}

const isRead = ([name]: TurnCall['call']) => /get|echo/.test(name);

/** Values name database, key and field: who gets that of another one shows it. */
export const namedValue = (db: number, ...names: unknown[]) => `${db}/${names.join('/')}`;

export interface TurnsOf {
  administer(command: readonly string[]): Promise<unknown>;
  lose(what: 'requests' | 'replies', sent: string): Promise<void>;
}

/** Runs a program. */
export async function runRefusing(
  client: Client,
  { isProven, keyPrefix, turns }: RefusingProgram,
  world: TurnsOf,
  patience: number,
): Promise<Fates<Fate>> {
  const fates = new Fates<Fate>(canonical);
  // Reads are fused once the server has answered an MGET, and an HMGET.
  if (isProven) await Promise.all([client.get('none'), client.hget('none', 'f')]);
  let db = 0;
  let again = 0;
  for (const [turn, { before, loses, calls }] of turns.entries()) {
    // A client that checks whether the server is ready waits for its master.
    const healed = loses === 'nothing' ? [] : [['REPLICAOF', 'NO', 'ONE']];
    for (const [name, ...args] of [...before, ...healed]) {
      const onWire = args.map((arg) => (name === 'DEL' ? keyPrefix + arg : arg.replace(/^~/, `~${keyPrefix}`)));
      await world.administer([name as string, ...onWire]).catch(() => {});
    }
    fates.nextTurn();
    const last = `last ${turn}`;
    const losing = loses === 'nothing' ? undefined : world.lose(loses, last);
    const issue = ({ call, how: way }: Omit<TurnCall, 'gap'>) => {
      if (/^select$/i.test(call[0])) db = call[1] as number;
      if (call[0] === 'select') again = db;
      if (!isRead(call)) for (const one of fates.all) one.overtaken ||= one.turn === turn;
      const ordered = way === 'method' && !/^(pipeline|transaction|exec)$/.test(call[0]);
      const fate: Fate = { turn, call: canonical(call), db, again, overtaken: false, ordered, outcome: OPEN };
      fates.issue(fate, () => made(client, call, way, db));
    };
    for (const one of calls) {
      issue(one);
      if (one.gap === 'microtask') await Promise.resolve();
      if (one.gap === 'nextTick') await new Promise<void>((go) => process.nextTick(go));
    }
    issue({ call: ['echo', last], how: 'method' });
    await losing;
    if (losing !== undefined) db = again;
    if (!(await fates.within(patience))) break;
  }
  return fates;
}

function made(client: Client, [name, ...args]: TurnCall['call'], way: TurnCall['how'], db: number): unknown {
  const methods = client as unknown as Record<string, (...given: unknown[]) => unknown>;
  if (name === 'SELECT') return client.call('SELECT', args[0] as number);
  if (name === 'multi') return client.multi({ pipeline: false });
  if (name === 'pipeline' || name === 'transaction') {
    const begun = name === 'pipeline' ? client.pipeline() : client.multi();
    for (const each of args) begun.get(each as string);
    return begun.exec();
  }
  const given = name === 'set' || name === 'hset' ? [...args, namedValue(db, ...args)] : args;
  if (way === 'call' && !name.endsWith('Buffer')) return client.call(name, ...(given as string[]));
  if (way === 'callback') {
    return new Promise((resolve, reject) => {
      methods[name]?.(...given, (error: unknown, value: unknown) => (error ? reject(error) : resolve(value)));
    });
  }
  return methods[name]?.(...given);
}
