/** Random programs behind `CLIENT REPLY OFF`: all of them reach the server, whatever limits there are. */
import { afterAll, beforeAll, expect } from 'vitest';
import { BEATS, dataOnceEqual, describePrograms, LISTS, ownServer, variants } from '../helpers/fidelity/profiles.js';
import { asCommand, type Program, programs } from '../helpers/fidelity/program.js';
import { defineScripts, LUA, runProgram } from '../helpers/fidelity/program-runner.js';
import { UnhandledRejections } from '../helpers/fidelity/unhandled.js';
import { connect, invoke } from '../helpers/fidelity/variants.js';

const DBS: readonly [number, number] = [1, 2];

const unhandled = new UnhandledRejections();
beforeAll(() => unhandled.start());
afterAll(() => unhandled.stop());

/**
 * Nobody awaits what is never answered; a script that the server does not know would have to be sent again. The first
 * read stays open, whatever follows.
 */
function unawaited(program: Program): Program {
  const steps = program.steps.map((step) => (step.gap === 'await' ? { ...step, gap: 'immediate' as const } : step));
  return { ...program, steps: [asCommand(['get', 'str']), ...steps], scriptsLoaded: true };
}

describePrograms({
  name: 'silenced programs',
  expects: '%s: leaves the same data as a plain client, and the same promises open',
  cases: variants([
    { coalesce: { maxInFlight: 3 } },
    { coalesce: { maxInFlight: 1, shareReads: true } },
    { host: 'ioredis5', coalesce: { maxInFlight: 4, maxBatchSize: 3 } },
    { host: 'iovalkey', coalesce: { maxInFlight: 2, maxBatchBytes: 64 } },
  ]),
  programs: programs.map(unawaited),
  runs: 5,
  ...ownServer([...BEATS, ...LISTS]),
  prepare: async ({ server, admin }, variant) => [
    async (program) => {
      const run = async (kind: 'plain' | 'coalesced', expected?: readonly string[]) => {
        await admin.reset(DBS, variant.keyPrefix, LUA);
        const client = defineScripts(await connect(variant, { ...server, db: DBS[0] }, kind));
        (invoke(client, 'client', ['REPLY', 'OFF']) as Promise<unknown>).catch(() => {});
        const { open } = await runProgram(client, program, DBS, 100);
        const data = await dataOnceEqual(admin, DBS, expected);
        client.disconnect();
        return { open, data };
      };
      const plain = await run('plain');
      expect(plain.open.length).toBeGreaterThan(0);
      expect(await run('coalesced', plain.data)).toEqual(plain);
    },
  ],
});
