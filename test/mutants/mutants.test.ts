/** A release of the hosts that nobody here has read: clients answer as plain ones do, or the program tells. */
import { expect, it } from 'vitest';
import { HOSTS, MUTANTS } from './mutants.js';
import { changedFiles, runMutants } from './run.js';

/** Some of most kinds; `npm run test:mutants` runs all, every night. */
const HANDFUL = [
  'commandQueue has another name',
  'a command is noted when it is moved',
  'commands are written in a microtask',
  'the decoder answers in an immediate',
  'the stream is read by for await',
];

it.each(HOSTS)('the mutants of %s change the text of its present version', (host) => {
  const mutants = MUTANTS.filter(({ hosts }) => hosts.includes(host));
  expect(mutants.length).toBeGreaterThan(130);
  expect(new Set(mutants.map(({ title }) => title)).size).toBe(mutants.length);
  for (const mutant of mutants) expect(changedFiles(host, mutant)).toBeGreaterThan(0);
});

it('coalesced clients of a handful of mutants agree with plain ones in all steps', async () => {
  const chosen = MUTANTS.filter(({ title }) => HANDFUL.includes(title));
  expect(chosen).toHaveLength(HANDFUL.length);
  const results = await runMutants(chosen, { hosts: ['ioredis'] });
  expect(results.filter(({ verdict }) => verdict.verdict !== 'right' || verdict.way !== 'cork')).toEqual([]);
  expect(results.every(({ verdict }) => verdict.steps > 300)).toBe(true);
}, 300_000);
