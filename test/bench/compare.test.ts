import { expect, it } from 'vitest';
import { BENCHMARKS } from '../../bench/benchmarks/index.js';
import { jobsOf } from '../../bench/suite/compare.js';

const worksOf = (id: string) => jobsOf(BENCHMARKS.find((one) => one.id === id)!).map(({ work }) => work);

it('compares the coalesced variants of services and clients in each of their cases on loopback', () => {
  const service = 'Fastify, 8 HGETs per request, 30 connections';
  const [cork, ...others] = ['cork', 'coalesced-cache', 'coalesced-pipeline'].map((one) => `${service}, ${one}`);
  expect(worksOf('fastify-parallel')).toEqual([cork, service, ...others]);
  expect(worksOf('fast-path')).toContain('Other commands, 200 × SET … EX');
  expect(worksOf('schedule')).toContain('When turns are sent, loopback: bursts of 5, coalesced-no-poll');
  expect(worksOf('schedule').join()).not.toContain('0.2 ms');
  expect(worksOf('production')).toEqual([]);
});
