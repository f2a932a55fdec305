import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAST_COMMANDS } from '../../src/commands/fast-commands.js';
import { canonical } from '../helpers/fidelity/canonical.js';
import { ENTRIES, NORMALISE } from '../helpers/fidelity/command-table.js';
import { Admin } from '../helpers/fidelity/fixture.js';
import { Outcomes } from '../helpers/fidelity/outcomes.js';
import { type Client, connect, describeVariant, invoke, MATRIX, workOf } from '../helpers/fidelity/variants.js';
import { variations } from '../helpers/fidelity/variations.js';
import { SEED } from '../helpers/hostile/random.js';
import { type RedisServer, startServer } from '../helpers/redis.js';
import { share } from '../helpers/share.js';

// A server of its own: the script cache, KEYS and SCAN see everything on it.
let server: RedisServer;
let admin: Admin;
let subscriber: Client;

/** `stringNumbers` and `keyPrefix` together or not at all: random programs have one without the other too. */
const VARIANTS = MATRIX.filter(({ stringNumbers, keyPrefix }) => stringNumbers === (keyPrefix !== ''));

const PLAIN_DB = 1;
const COALESCED_DB = 2;

const TABLE = ENTRIES.map((entry) => ({ name: entry.name, calls: variations(entry), explicit: entry.calls.length }));
type Row = (typeof TABLE)[number];
type Mode = 'one by one' | 'in one tick';

beforeAll(async () => {
  server = await startServer();
  admin = new Admin(server);
  subscriber = await connect({ host: 'ioredis6', stringNumbers: false, keyPrefix: '' }, { ...server, db: 0 }, 'plain');
  await invoke(subscriber, 'subscribe', ['subscribed', 'p:subscribed']);
});

afterAll(async () => {
  subscriber?.disconnect();
  await admin?.close();
  await server?.stop();
});

const show = (args: readonly unknown[]): string => args.map(canonical).join(', ').slice(0, 100);

async function run(client: Client, row: Row, mode: Mode, suffix: '' | 'Buffer'): Promise<Outcomes> {
  const outcomes = new Outcomes();
  const calls = mode === 'in one tick' ? row.calls : row.calls.slice(0, row.explicit);
  for (const [name, ...args] of calls) {
    const label = () => `${mode}: ${name}${suffix}(${show(args)})`;
    const settled = outcomes.track(label, () => invoke(client, `${name}${suffix}`, args), NORMALISE[name]);
    if (mode === 'one by one') {
      await settled;
    }
  }
  await outcomes.settled();
  return outcomes;
}

it('the table has every command of the fast path', () => {
  const covered = new Set(ENTRIES.flatMap(({ calls }) => calls.map(([name]) => name)));
  expect(FAST_COMMANDS.map(({ name }) => name).filter((name) => !covered.has(name))).toEqual([]);
});

const MODES = VARIANTS.map((_, at) => {
  const modes = [
    ['one by one', ''],
    ['in one tick', ''],
    ['one by one', 'Buffer'],
    ['in one tick', 'Buffer'],
  ] as const;
  // That of the next variant is another one.
  return share(modes, modes.length, SEED + at);
});

describe.each(VARIANTS.map((variant, at) => [describeVariant(variant), variant, at] as const))(
  '%s',
  (_, variant, at) => {
    let plain: Client;
    let coalesced: Client;

    beforeAll(async () => {
      plain = await connect(variant, { ...server, db: PLAIN_DB }, 'plain');
      coalesced = await connect(variant, { ...server, db: COALESCED_DB }, 'coalesced');
    });

    afterAll(() => {
      plain?.disconnect();
      coalesced?.disconnect();
    });

    it.each(MODES[at] as readonly (readonly [Mode, '' | 'Buffer'])[])(
      'gives each everyday command the value or error of a plain client, %s %s',
      async (mode, suffix) => {
        const mismatches: string[] = [];
        for (const row of TABLE) {
          await admin.reset([PLAIN_DB], variant.keyPrefix);
          const expected = await run(plain, row, mode, suffix);
          await admin.reset([COALESCED_DB], variant.keyPrefix);
          const actual = await run(coalesced, row, mode, suffix);
          mismatches.push(...actual.mismatches(expected));
          if (expected.open.length > 0) {
            mismatches.push(`the plain client itself left open ${expected.open.join(', ')}`);
          }
        }
        expect(mismatches.slice(0, 20).join('\n'), `${mismatches.length} mismatches`).toBe('');
        expect(workOf(coalesced).fastShare).toBeGreaterThan(0.5);
      },
    );
  },
);
