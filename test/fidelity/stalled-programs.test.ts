/** Random programs on a connection that stalls: `commandTimeout` with batches that stay open, and shared reads. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { BEATS, describePrograms, ownServer, variants } from '../helpers/fidelity/profiles.js';
import { runStalled, stalledPrograms, TOO_SLOW } from '../helpers/fidelity/stalled-program.js';
import { type Client, connect } from '../helpers/fidelity/variants.js';
import { expectWarnings } from '../helpers/warnings.js';

// Where the blocking command is given more than a second.
expectWarnings('COALESCE_WARN_BLOCKING');

/** Side by side: each takes half a second, most of it waiting. */
const PROGRAMS = 24;
const DB = 1;

const late = (ms: number) => (flush: () => void) => void setTimeout(flush, ms);

describePrograms({
  name: 'stalled programs',
  expects: '%s: each command times out after its own time, as on a plain client',
  cases: variants([
    { coalesce: {} },
    { coalesce: { shareReads: true, schedule: late(300) } },
    { coalesce: { shareReads: true, schedule: late(60) } },
    { coalesce: { shareReads: true, maxInFlight: 2 } },
    { host: 'ioredis5', coalesce: { shareReads: true, schedule: late(60), maxInFlight: 3 } },
    { host: 'iovalkey', coalesce: { shareReads: true, schedule: late(300) } },
  ]),
  programs: fc.array(stalledPrograms, { minLength: PROGRAMS, maxLength: PROGRAMS }),
  runs: 1,
  ...ownServer(BEATS),
  prepare: async ({ server, admin }, variant) => {
    await admin.reset([DB], '');
    const run = async (programs: Parameters<typeof runStalled>[1][], kind: 'plain' | 'coalesced', patience: number) => {
      const clients = await Promise.all(programs.map(() => connect(variant, { ...server, db: DB }, kind)));
      const fates = await Promise.all(
        programs.map((program, index) => runStalled(clients[index] as Client, program, patience)),
      );
      for (const client of clients) client.disconnect();
      return fates;
    };
    return [
      async (programs) => {
        let both: [string[], string[]][] = [];
        // A busy machine gets more time.
        for (const patience of [1, 4, 16]) {
          const plain = await run(programs, 'plain', patience);
          const coalesced = await run(programs, 'coalesced', patience);
          both = plain.map((fates, index) => [fates, coalesced[index] as string[]]);
          both = both.filter((fates) => fates.every(([first]) => first !== TOO_SLOW));
          if (both.length > PROGRAMS / 4) break;
        }
        expect(both.length).toBeGreaterThan(PROGRAMS / 4);
        for (const [plain, coalesced] of both) expect(coalesced).toEqual(plain);
      },
    ];
  },
});
