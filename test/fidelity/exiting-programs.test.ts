/** Random programs that a process issues in its last turn and in a listener of `exit`. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { expect } from 'vitest';
import { bundled } from '../helpers/bundled.js';
import { dataOnceEqual, describePrograms, ownServer, SEED, variants } from '../helpers/fidelity/profiles.js';
import { byteCount, programs } from '../helpers/fidelity/program.js';
import { LUA } from '../helpers/fidelity/program-runner.js';
import { sleep } from '../helpers/hosts.js';
import type { Orders } from './programs/exiting-program.js';

/** `npm run test:soak` runs more of them. */
const RUNS = process.env.SOAK_COMMANDS ? 10 : 1;
const DBS: readonly [number, number] = [1, 2];
/** What the server reads at once: its first reply meets a connection that is closed. */
const READ_AT_ONCE = 10_000;

/** Of the programs of a seed, the longest that is read at once. */
function longestOf(seed: number): Pick<Orders, 'seed' | 'path'> {
  const lengths = fc
    .sample(programs, { numRuns: 200, seed })
    .map((each) => (byteCount(each) < READ_AT_ONCE ? each.steps.length : 0));
  return { seed, path: String(lengths.indexOf(Math.max(...lengths))) };
}

const { start, stop } = ownServer();

describePrograms({
  name: 'exiting programs',
  expects: '%s: a program that exits leaves the same data as with a plain client',
  cases: variants([
    { coalesce: {} },
    { coalesce: { maxInFlight: 3, shareReads: true } },
    { host: 'iovalkey', coalesce: { maxInFlight: 5, maxBatchSize: 2 } },
  ]),
  programs: fc.constant(Array.from({ length: RUNS }, (_, run) => longestOf(SEED + run))),
  runs: 1,
  start: async () => ({
    ...(await start()),
    file: await bundled(fileURLToPath(new URL('programs/exiting-program.ts', import.meta.url))),
  }),
  stop: (place) => stop(place),
  prepare: async ({ server: { host, port, pid }, admin, file }, variant) => [
    async (all) => {
      const dataAfter = async (chosen: (typeof all)[0], kind: Orders['kind'], expected?: readonly string[]) => {
        await admin.reset(DBS, '', LUA);
        const orders: Orders = { variant, kind, ...chosen, server: { host, port, pid }, dbs: DBS };
        const error = await new Promise((resolve) => {
          execFile(process.execPath, [file, JSON.stringify(orders)], resolve);
        });
        process.kill(pid, 'SIGCONT');
        expect(error).toBeNull();
        await sleep(50);
        return dataOnceEqual(admin, DBS, expected);
      };
      for (const chosen of all) {
        const plain = await dataAfter(chosen, 'plain');
        expect(await dataAfter(chosen, 'coalesced', plain), `seed ${chosen.seed}`).toEqual(plain);
      }
    },
  ],
});
