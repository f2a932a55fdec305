/** Short random programs, each the first on its connection. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Admin } from '../helpers/fidelity/fixture.js';
import { firstPrograms } from '../helpers/fidelity/program.js';
import { runProgram } from '../helpers/fidelity/program-runner.js';
import { connect, describeVariant, type Variant } from '../helpers/fidelity/variants.js';
import { type RedisServer, startServer } from '../helpers/redis.js';

const SEED = Number(process.env.FIDELITY_SEED ?? Date.now() % 2 ** 31);
const DBS: readonly [number, number] = [1, 2];

const BASE: Variant = { host: 'ioredis6', protocol: 3, replyMapping: 'legacy', stringNumbers: false, keyPrefix: '' };
const VARIANTS: readonly Variant[] = [
  { ...BASE, coalesce: {} },
  { ...BASE, coalesce: { shareReads: true } },
  { ...BASE, coalesce: { shareReads: true, maxInFlight: 1 } },
  { ...BASE, host: 'ioredis5', coalesce: { shareReads: true } },
  { ...BASE, host: 'iovalkey', coalesce: { shareReads: true, schedule: 'tick' } },
];

let server: RedisServer;
let admin: Admin;
beforeAll(async () => {
  console.log(`first programs: seed ${SEED} (FIDELITY_SEED=${SEED} repeats this run)`);
  server = await startServer();
  admin = new Admin(server);
});
afterAll(async () => {
  await admin?.close();
  await server?.stop();
});

it.each(VARIANTS.map((variant) => [describeVariant(variant), variant] as const))(
  '%s: gives the same values as a plain client',
  async (_, variant) => {
    await fc.assert(
      fc.asyncProperty(firstPrograms, async (program) => {
        const run = async (kind: 'plain' | 'coalesced') => {
          await admin.reset(DBS, '');
          const client = await connect(variant, { ...server, db: DBS[0] }, kind);
          const outcomes = await runProgram(client, program, DBS);
          client.disconnect();
          return outcomes;
        };
        const plain = await run('plain');
        expect((await run('coalesced')).mismatches(plain).join('\n')).toBe('');
      }),
      { numRuns: 50, seed: SEED },
    );
  },
);
