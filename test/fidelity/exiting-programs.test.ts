/** Random programs that a process issues in its last turn and in a listener of `exit`. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bundled } from '../helpers/bundled.js';
import { Admin } from '../helpers/fidelity/fixture.js';
import { byteCount, programs } from '../helpers/fidelity/program.js';
import { SCRIPTS } from '../helpers/fidelity/program-runner.js';
import { describeVariant, type Variant } from '../helpers/fidelity/variants.js';
import { sleep } from '../helpers/hosts.js';
import { type RedisServer, startServer } from '../helpers/redis.js';
import type { Orders } from './programs/exiting-program.js';

const SEED = Number(process.env.FIDELITY_SEED ?? Date.now() % 2 ** 31);
/** `npm run test:soak` runs more of them. */
const RUNS = process.env.SOAK_COMMANDS ? 10 : 1;
const DBS: readonly [number, number] = [1, 2];
/** What the server reads at once: its first reply meets a connection that is closed. */
const READ_AT_ONCE = 10_000;

const BASE: Variant = { host: 'ioredis6', protocol: 3, replyMapping: 'legacy', stringNumbers: false, keyPrefix: '' };
const VARIANTS: readonly Variant[] = [
  { ...BASE, coalesce: {} },
  { ...BASE, coalesce: { maxInFlight: 3, shareReads: true } },
  { ...BASE, host: 'iovalkey', coalesce: { maxInFlight: 5, maxBatchSize: 2 } },
];

let program: string;
let server: RedisServer;
let admin: Admin;
beforeAll(async () => {
  console.log(`exiting programs: seed ${SEED} (FIDELITY_SEED=${SEED} repeats this run)`);
  program = await bundled(fileURLToPath(new URL('programs/exiting-program.ts', import.meta.url)));
  server = await startServer();
  admin = new Admin(server);
});
afterAll(async () => {
  await admin?.close();
  await server?.stop();
});

async function dataAfter(orders: Omit<Orders, 'server' | 'dbs'>, expected?: readonly string[]): Promise<string[]> {
  await admin.reset(
    DBS,
    '',
    Object.values(SCRIPTS).map(({ lua }) => lua),
  );
  const { host, port, pid } = server;
  const argument = JSON.stringify({ ...orders, server: { host, port, pid }, dbs: DBS });
  const error = await new Promise((resolve) => void execFile(process.execPath, [program, argument], resolve));
  process.kill(pid, 'SIGCONT');
  expect(error).toBeNull();
  await sleep(50);
  let data = await admin.dump(DBS);
  for (let attempt = 0; expected && attempt < 20 && data.join() !== expected.join(); attempt += 1) {
    await sleep(20);
    data = await admin.dump(DBS);
  }
  return data;
}

/** Of the programs of a seed, the longest that is read at once. */
function longestOf(seed: number): Pick<Orders, 'seed' | 'path'> {
  const lengths = fc
    .sample(programs, { numRuns: 200, seed })
    .map((each) => (byteCount(each) < READ_AT_ONCE ? each.steps.length : 0));
  return { seed, path: String(lengths.indexOf(Math.max(...lengths))) };
}
const PROGRAMS = Array.from({ length: RUNS }, (_, run) => longestOf(SEED + run));

it.each(VARIANTS.map((variant) => [describeVariant(variant), variant] as const))(
  '%s: a program that exits leaves the same data as with a plain client',
  async (_, variant) => {
    for (const chosen of PROGRAMS) {
      const plain = await dataAfter({ variant, kind: 'plain', ...chosen });
      expect(await dataAfter({ variant, kind: 'coalesced', ...chosen }, plain), `seed ${chosen.seed}`).toEqual(plain);
    }
  },
);
