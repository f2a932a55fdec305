import { expect, it } from 'vitest';
import { BENCHMARKS } from '../../bench/benchmarks/index.js';
import { jobsOf } from '../../bench/suite/compare.js';

const worksOf = (id: string) => jobsOf(BENCHMARKS.find((one) => one.id === id)!).map(({ work }) => work);

it('compares what is coalesced, of a service as of a client, in each of its cases', () => {
  const service = 'Fastify, 8 HGETs per request with Promise.all, 30 connections';
  expect(worksOf('fastify-parallel')).toEqual([service, `${service}, coalesced-cache`]);
  expect(worksOf('burst')).toEqual(['Bursts of 200 GETs, 100 B, cork', 'Bursts of 200 GETs, 100 B']);
  expect(worksOf('overlap-two-cores')).toContain('Bursts of GETs: two cores, 50 GETs, coalesced-immediate');
});
