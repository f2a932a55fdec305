import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { afterAll, describe, expect, it } from 'vitest';
import { SEED } from '../helpers/hostile/random.js';
import { printTable } from '../helpers/hostile/report.js';
import { type Row, runBoth } from '../helpers/hostile/run-both.js';
import { SCENARIOS } from '../helpers/hostile/scenarios.js';
import { type Host, ioredis5, ioredis6, iovalkey } from '../helpers/hosts.js';
import { expectWarnings } from '../helpers/warnings.js';
import { soakScale } from './duration.js';

// Host: it disconnects, and listens, for each of a reply's errors that `reconnectOnError` accepts.
expectWarnings('MaxListenersExceededWarning');

/** Of each scenario on each host. */
const MS = Math.ceil(7_000 * soakScale());

const CLIENTS: readonly (readonly [Host, CoalesceOptions])[] = [
  [ioredis6, {}],
  [ioredis5, { maxInFlight: 50, maxBatchSize: 20 }],
  [iovalkey, { shareReads: true, schedule: 'tick' }],
];

const rows: Row[] = [];
afterAll(() => printTable(`hostile network, HOSTILE_SEED=${SEED}`, rows));

describe.each(CLIENTS.map(([host, coalesce]) => ({ name: host.name, host, coalesce })))(
  '$name, 100 callers on one faulty connection',
  ({ host, coalesce }) => {
    it.for(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))('%s', async ([, scenario]) => {
      const found = await runBoth(scenario, { host, coalesce, ms: MS, seed: SEED, corked: true });
      rows.push(...found.rows);
      for (const { client, run } of found.rows) {
        console.log(
          `${scenario.name}, ${client}: ${run.replies} of ${run.commands} answered, ${run.reconnects} reconnects`,
        );
      }
      expect(found.faults, `HOSTILE_SEED=${SEED} makes the same choices, if not at the same moments`).toEqual([]);
    });
  },
);
