// Run by exiting-programs.test.ts, in a process of its own: issues a random program while the process ends.
import fc from 'fast-check';
import { CallCounts } from '../../helpers/fidelity/call-counts.js';
import { Outcomes } from '../../helpers/fidelity/outcomes.js';
import { type Program, programs } from '../../helpers/fidelity/program.js';
import { defineScripts, issue } from '../../helpers/fidelity/program-runner.js';
import { connect, type Variant } from '../../helpers/fidelity/variants.js';

export interface Orders {
  readonly variant: Variant;
  readonly kind: 'plain' | 'coalesced';
  readonly server: { readonly host: string; readonly port: number; readonly pid: number };
  readonly dbs: readonly [number, number];
  /** Which of the programs of a seed. */
  readonly seed: number;
  readonly path: string;
}

const { variant, kind, server, dbs, seed, path } = JSON.parse(process.argv[2] ?? '') as Orders;
const [{ steps }] = fc.sample(programs, { numRuns: 1, seed, path }) as [Program];

const client = defineScripts(await connect(variant, { ...server, db: dbs[0] }, kind));
const outcomes = new Outcomes();
const counts = new CallCounts();
process.on('unhandledRejection', () => {});
// Nothing is read before all is written, whichever client is faster.
process.kill(server.pid, 'SIGSTOP');
const half = steps.length >> 1;
for (const step of steps.slice(0, half)) void issue(client, step, dbs, outcomes, counts);
process.on('exit', () => {
  for (const step of steps.slice(half)) void issue(client, step, dbs, outcomes, counts);
});
process.exit(0);
