/** Short random programs, each the first on its connection. */
import { expect } from 'vitest';
import { BASE, describePrograms, ownServer, variants } from '../helpers/fidelity/profiles.js';
import { firstPrograms } from '../helpers/fidelity/program.js';
import { runProgram } from '../helpers/fidelity/program-runner.js';
import { connect } from '../helpers/fidelity/variants.js';

const DBS: readonly [number, number] = [1, 2];

describePrograms({
  name: 'first programs',
  expects: '%s: gives the same values as a plain client',
  cases: variants([
    { coalesce: {} },
    { coalesce: { shareReads: true } },
    { coalesce: { shareReads: true, maxInFlight: 1 } },
    { host: 'ioredis5', coalesce: { shareReads: true } },
    { host: 'iovalkey', coalesce: { shareReads: true, schedule: 'tick' } },
  ]),
  programs: firstPrograms,
  runs: 50,
  shrinks: true,
  ...ownServer(),
  prepare: async ({ server, admin }, variant) => [
    async (program) => {
      const run = async (kind: 'plain' | 'coalesced') => {
        await admin.reset(DBS, BASE.keyPrefix);
        const client = await connect(variant, { ...server, db: DBS[0] }, kind);
        const outcomes = await runProgram(client, program, DBS);
        client.disconnect();
        return outcomes;
      };
      const plain = await run('plain');
      expect((await run('coalesced')).mismatches(plain).join('\n')).toBe('');
    },
  ],
});
