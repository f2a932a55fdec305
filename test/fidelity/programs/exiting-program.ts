// Run by exiting-programs.test.ts, in a process of its own: issues a random program while the process ends.
import fc from 'fast-check';
import { CallCounts } from '../../helpers/fidelity/call-counts.js';
import { Outcomes } from '../../helpers/fidelity/outcomes.js';
import { byteCount, programs } from '../../helpers/fidelity/program.js';
import { defineScripts, issue } from '../../helpers/fidelity/program-runner.js';
import { connect, type Variant } from '../../helpers/fidelity/variants.js';

export interface Orders {
  readonly variant: Variant;
  readonly kind: 'plain' | 'coalesced';
  readonly server: { readonly host: string; readonly port: number; readonly pid: number };
  readonly dbs: readonly [number, number];
  readonly seed: number;
}

/** What the server reads at once: its first reply meets a connection that is closed. */
const READ_AT_ONCE = 10_000;

const { variant, kind, server, dbs, seed } = JSON.parse(process.argv[2] ?? '') as Orders;
const fitting = fc.sample(programs, { numRuns: 200, seed }).filter((each) => byteCount(each) < READ_AT_ONCE);
const longest = fitting.reduce((one, other) => (other.steps.length > one.steps.length ? other : one));

const client = defineScripts(await connect(variant, { ...server, db: dbs[0] }, kind));
const outcomes = new Outcomes();
const counts = new CallCounts();
process.on('unhandledRejection', () => {});
// Nothing is read before all is written, whichever client is faster.
process.kill(server.pid, 'SIGSTOP');
const half = longest.steps.length >> 1;
for (const step of longest.steps.slice(0, half)) void issue(client, step, dbs, outcomes, counts);
process.on('exit', () => {
  for (const step of longest.steps.slice(half)) void issue(client, step, dbs, outcomes, counts);
});
process.exit(0);
