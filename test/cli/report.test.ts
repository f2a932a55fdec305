import { expect, it } from 'vitest';
import { parseBenchArguments } from '../../cli/arguments.js';
import { type Rounds, renderReport, reportOf } from '../../cli/bench.js';

const settings = parseBenchArguments([], {});
const environment = { package: '1.0.0', node: '20.0.0', client: 'ioredis 6.0.0', server: 'Redis 7.0.0' };

function roundsOf(...perSecond: [plain: number, coalesced: number][]): Rounds {
  const sample = (commands: number) => ({
    perSecond: commands,
    p50Ms: 1,
    p99Ms: 2,
    cpuUsPerCommand: 1_000_000 / commands,
    redisCpuUsPerCommand: Number.NaN,
  });
  return perSecond.map(([plain, coalesced]) => ({
    plain: sample(plain),
    auto: sample(plain),
    cork: sample(plain),
    coalesced: sample(coalesced),
  }));
}

it('the ratios are those of the figures that the table shows', () => {
  if (settings === 'help') throw new Error('expected settings');
  // The medians 100,000 and 500,000 are not of one round, as on a machine where something else runs now and then.
  const rounds = roundsOf([100_000, 400_000], [50_000, 500_000], [120_000, 900_000]);
  const report = reportOf(settings, environment, rounds);
  expect(report.results.coalesced).toMatchObject({ perSecond: 500_000 });
  expect(report.results.plain).toMatchObject({ perSecond: 100_000 });
  const text = renderReport(report);
  expect(text).toMatch(/^coalesced +500,000 +400,000–900,000 +5× +1 +2 +2 +\?$/m);
  expect(text).toContain("Coalesced: 5× the commands per second of plain, at 0.2× the client's CPU per command");
});

it('where the rounds of two clients overlap, there is no clear difference', () => {
  if (settings === 'help') throw new Error('expected settings');
  const secure = { ...settings, target: { ...settings.target, tls: true } };
  const rounds = roundsOf([100_000, 90_000], [120_000, 130_000], [110_000, 140_000]);
  const text = renderReport(reportOf(secure, environment, rounds));
  expect(text).toContain('Coalesced: 1.18× the commands per second of plain (no clear difference), at 0.846× ');
  expect(text).toMatch(/^127\.0\.0\.1:6379 over TLS: /);
});
