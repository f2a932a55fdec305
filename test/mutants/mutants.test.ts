/** A release of the hosts that nobody here has read: clients answer as plain ones do, or the program tells. */
import { expect, it } from 'vitest';
import { share } from '../helpers/share.js';
import { Open, Stage, Stopped } from './arms.js';
import { HOSTS, MUTANTS, PLAIN_BY_NATURE } from './mutants.js';
import { changedFiles, runMutants, tableOf } from './run.js';

/** Some of most kinds, by shares; `npm run test:mutants` runs all, every night. */
const HANDFUL = share(
  [
    'commandQueue has another name',
    'a command is noted when it is moved',
    'commands are written in a microtask',
    'the decoder answers in an immediate',
    'the stream is read by for await',
  ],
  4,
);
const PLAIN = share([...PLAIN_BY_NATURE], 4);

it.each(HOSTS)('the mutants of %s change the text of its present version', (host) => {
  const mutants = MUTANTS.filter(({ hosts }) => hosts.includes(host));
  expect(mutants.length).toBeGreaterThan(130);
  expect(new Set(mutants.map(({ title }) => title)).size).toBe(mutants.length);
  for (const mutant of mutants) expect(changedFiles(host, mutant)).toBeGreaterThan(0);
});

/** What a scene of the steps a, b and c says on the clients under test, beside plain ones on which some stay open. */
function beside(openOnPlain: string, openHere: string): unknown {
  const play = (stage: Stage, open: string) => {
    try {
      for (const step of ['a', 'b', 'c']) stage.record(step, step === open ? 'open' : 'done');
    } catch (error) {
      return (error as Error).constructor;
    }
    return undefined;
  };
  const plain = new Stage(undefined);
  expect(play(plain, openOnPlain)).toBe(openOnPlain === '' ? undefined : Open);
  return play(new Stage(plain.transcript), openHere);
}

it.each([
  ['none on both', '', '', undefined],
  ['the same on both', 'b', 'b', Open],
  ['one on plain only', 'b', '', Stopped],
  ['one here only', '', 'b', Stopped],
  ['others on both', 'c', 'b', Stopped],
])('of steps that stay open, %s is told', (_, onPlain, here, expected) => {
  expect(beside(onPlain, here)).toBe(expected);
});

it('coalesced clients of a handful of mutants agree with plain ones in all steps', async () => {
  const chosen = MUTANTS.filter(({ title }) => HANDFUL.includes(title) || PLAIN.includes(title));
  expect(chosen).toHaveLength(HANDFUL.length + PLAIN.length);
  const results = await runMutants(chosen, { hosts: ['ioredis'] });
  expect(results.filter(({ verdict }) => verdict.verdict !== 'right')).toEqual([]);
  expect(results.every(({ verdict }) => verdict.steps > 300)).toBe(true);
  const ways = results.map(({ title, verdict }) => [title, verdict.way]).sort();
  expect(ways).toEqual(chosen.map(({ title }) => [title, PLAIN_BY_NATURE.has(title) ? 'plain' : 'cork']).sort());
  const sums = tableOf(results)
    .split('\n')
    .find((row) => row.startsWith('| ioredis in all'));
  expect(sums).toBe(`| ioredis in all | ${chosen.length} | 0 | ${HANDFUL.length} | ${PLAIN.length} | 0 | 0 | 0 |`);
}, 300_000);
