/**
 * Random programs on a connection that stalls: `commandTimeout` with batches that stay open, shared reads among them.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Admin } from '../helpers/fidelity/fixture.js';
import { runStalled, stalledPrograms, TOO_SLOW } from '../helpers/fidelity/stalled-program.js';
import { type Client, connect, describeVariant, type Variant } from '../helpers/fidelity/variants.js';
import { type RedisServer, startServer } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';

// Where the blocking command is given more than a second.
expectWarnings('COALESCE_WARN_BLOCKING');

/** Side by side: each takes half a second, most of it waiting. */
const PROGRAMS = 24;
const SEED = Number(process.env.FIDELITY_SEED ?? Date.now() % 2 ** 31);
const DB = 1;

const late = (ms: number) => (flush: () => void) => void setTimeout(flush, ms);
const BASE: Variant = { host: 'ioredis6', protocol: 3, replyMapping: 'legacy', stringNumbers: false, keyPrefix: '' };
const VARIANTS: readonly Variant[] = [
  { ...BASE, coalesce: {} },
  { ...BASE, coalesce: { shareReads: true, schedule: late(300) } },
  { ...BASE, coalesce: { shareReads: true, schedule: late(60) } },
  { ...BASE, coalesce: { shareReads: true, maxInFlight: 2 } },
  { ...BASE, host: 'ioredis5', coalesce: { shareReads: true, schedule: late(60), maxInFlight: 3 } },
  { ...BASE, host: 'iovalkey', coalesce: { shareReads: true, schedule: late(300) } },
];

let server: RedisServer;
beforeAll(async () => {
  console.log(`stalled programs: seed ${SEED} (FIDELITY_SEED=${SEED} repeats this run)`);
  server = await startServer({ args: ['--hz', '500'] });
  const admin = new Admin(server);
  await admin.reset([DB], '');
  await admin.close();
});
afterAll(() => server?.stop());

it.each(VARIANTS.map((variant) => [describeVariant(variant), variant] as const))(
  '%s: each command times out after its own time, as on a plain client',
  async (_, variant) => {
    const programs = fc.sample(stalledPrograms, { numRuns: PROGRAMS, seed: SEED });
    const run = async (kind: 'plain' | 'coalesced', patience: number) => {
      const clients = await Promise.all(programs.map(() => connect(variant, { ...server, db: DB }, kind)));
      const fates = await Promise.all(
        programs.map((program, index) => runStalled(clients[index] as Client, program, patience)),
      );
      for (const client of clients) client.disconnect();
      return fates;
    };
    let plain: string[][] = [];
    let coalesced: string[][] = [];
    let compared: typeof programs = [];
    // A busy machine gets more time.
    for (const patience of [1, 4, 16]) {
      plain = await run('plain', patience);
      coalesced = await run('coalesced', patience);
      compared = programs.filter((__, index) => plain[index]?.[0] !== TOO_SLOW && coalesced[index]?.[0] !== TOO_SLOW);
      if (compared.length > PROGRAMS / 4) break;
    }
    expect(compared.length).toBeGreaterThan(PROGRAMS / 4);
    for (const program of compared) {
      const index = programs.indexOf(program);
      expect(coalesced[index], JSON.stringify(program)).toEqual(plain[index]);
    }
  },
);
