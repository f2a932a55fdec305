/** Random programs behind `CLIENT REPLY OFF`: all of them reach the server, whatever limits there are. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Admin } from '../helpers/fidelity/fixture.js';
import { type Program, programs } from '../helpers/fidelity/program.js';
import { defineScripts, runProgram, SCRIPTS } from '../helpers/fidelity/program-runner.js';
import { UnhandledRejections } from '../helpers/fidelity/unhandled.js';
import { connect, describeVariant, invoke, type Variant } from '../helpers/fidelity/variants.js';
import { sleep } from '../helpers/hosts.js';
import { type RedisServer, startServer } from '../helpers/redis.js';

const PROGRAMS = 5;
const SEED = Number(process.env.FIDELITY_SEED ?? Date.now() % 2 ** 31);
const DBS: readonly [number, number] = [1, 2];

const BASE: Variant = { host: 'ioredis6', protocol: 3, replyMapping: 'legacy', stringNumbers: false, keyPrefix: '' };
const VARIANTS: readonly Variant[] = [
  { ...BASE, coalesce: { maxInFlight: 3 } },
  { ...BASE, coalesce: { maxInFlight: 1, shareReads: true } },
  { ...BASE, host: 'ioredis5', coalesce: { maxInFlight: 4, maxBatchSize: 3 } },
  { ...BASE, host: 'iovalkey', coalesce: { maxInFlight: 2, maxBatchBytes: 64 } },
];

let server: RedisServer;
let admin: Admin;
const unhandled = new UnhandledRejections();
beforeAll(async () => {
  unhandled.start();
  console.log(`silenced programs: seed ${SEED} (FIDELITY_SEED=${SEED} repeats this run)`);
  const lists = ['--hash-max-listpack-entries', '100000', '--hash-max-listpack-value', '100000000'];
  server = await startServer({ args: ['--hz', '500', ...lists] });
  admin = new Admin(server);
});
afterAll(async () => {
  await admin?.close();
  await server?.stop();
  unhandled.stop();
});

/** Nobody awaits what is never answered; a script that the server does not know would have to be sent again. */
function unawaited(program: Program): Program {
  const steps = program.steps.map((step) => (step.gap === 'await' ? { ...step, gap: 'immediate' as const } : step));
  return { ...program, steps, scriptsLoaded: true };
}

it.each(VARIANTS.map((variant) => [describeVariant(variant), variant] as const))(
  '%s: leaves the same data as a plain client, and the same promises open',
  async (_, variant) => {
    for (const program of fc.sample(programs, { numRuns: PROGRAMS, seed: SEED }).map(unawaited)) {
      const run = async (kind: 'plain' | 'coalesced', expected?: readonly string[]) => {
        await admin.reset(
          DBS,
          variant.keyPrefix,
          Object.values(SCRIPTS).map(({ lua }) => lua),
        );
        const client = defineScripts(await connect(variant, { ...server, db: DBS[0] }, kind));
        (invoke(client, 'client', ['REPLY', 'OFF']) as Promise<unknown>).catch(() => {});
        const { open } = await runProgram(client, program, DBS, 100);
        let data = await admin.dump(DBS);
        for (let attempt = 0; expected && attempt < 20 && data.join() !== expected.join(); attempt += 1) {
          await sleep(20);
          data = await admin.dump(DBS);
        }
        client.disconnect();
        return { open, data };
      };
      const plain = await run('plain');
      expect(plain.open.length).toBeGreaterThan(0);
      expect(await run('coalesced', plain.data)).toEqual(plain);
    }
  },
);
