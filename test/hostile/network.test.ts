import { afterAll, describe, expect, it } from 'vitest';
import { SEED } from '../helpers/hostile/random.js';
import { printTable } from '../helpers/hostile/report.js';
import { type Row, runBoth } from '../helpers/hostile/run-both.js';
import { run, type Stage } from '../helpers/hostile/scenario.js';
import { SCENARIOS } from '../helpers/hostile/scenarios.js';
import { ioredis6 } from '../helpers/hosts.js';
import { expectWarnings } from '../helpers/warnings.js';

// Host: it disconnects, and listens, for each of a reply's errors that `reconnectOnError` accepts.
expectWarnings('MaxListenersExceededWarning');

/** Of each; `npm run test:soak` gives each minutes, on every host. */
const MS = 400;
/** One scenario in so many has a corked client, too; the seed says which. */
const SHARE_CORKED = 4;

it('the test can fail: callers notice when an additional reply gives them the replies of others', {
  timeout: 90_000,
}, async () => {
  const oneTooMany = {
    name: 'one reply too many',
    errors: [],
    reconnects: false,
    async strike({ proxy, replies }: Stage) {
      if (proxy.strikes === 0 && !proxy.faults.garbage) {
        proxy.faults = { garbageAfterReplies: () => 300, garbage: [Buffer.from('+OK\r\n')] };
        proxy.reset();
      }
      await replies(200);
    },
  };
  // Host: the reply that is left over meets an empty queue in the end, and ioredis throws past everyone if it is a
  // null.
  const thrown: Error[] = [];
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => thrown.push(error));
  try {
    const { mismatches } = await run(oneTooMany, { host: ioredis6, kind: 'plain', ms: MS, seed: SEED });
    expect(mismatches.length).toBeGreaterThan(0);
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other);
  }
  for (const error of thrown) expect(error.stack).toContain('DataHandler.shiftCommand');
});

describe('100 callers on one faulty connection', () => {
  const rows: Row[] = [];
  afterAll(() => printTable('hostile network', rows));

  it.for(SCENARIOS.map((scenario, index) => [scenario.name, scenario, index] as const))(
    '%s: as with a plain client',
    { timeout: 90_000 },
    async ([, scenario, index]) => {
      const corked = (SEED + index) % SHARE_CORKED === 0;
      const found = await runBoth(scenario, { host: ioredis6, ms: MS, seed: SEED, corked });
      rows.push(...found.rows);
      expect(found.faults, `HOSTILE_SEED=${SEED} makes the same choices, if not at the same moments`).toEqual([]);
    },
  );
});
