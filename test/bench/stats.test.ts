import { describe, expect, it } from 'vitest';
import type { BenchServer } from '../../bench/suite/bench-server.js';
import { changes } from '../../bench/suite/compare.js';
import { measureRounds, type Part } from '../../bench/suite/rounds.js';
import { estimate } from '../../bench/suite/stats.js';
import type { Measured, Sample, Workload } from '../../bench/variants/protocol.js';

describe('estimate', () => {
  it.each([
    ['nothing', [], undefined],
    ['what is not positive', [0], undefined],
    ['one sample, of which nobody knows how near it is', [2], [2, 0, Number.POSITIVE_INFINITY]],
    ['samples that agree', [2, 2, 2, 2, 2, 2], [2, 2, 2]],
    // The mean of logarithms, and Student's t with 3 degrees of freedom, 3.182.
    ['four samples', [1, 2, 4, 8], [2 ** 1.5, 2 ** (1.5 - 2.05), 2 ** (1.5 + 2.05)]],
  ])('%s', (_, samples, expected) => {
    const found = estimate(samples);
    if (found === undefined || expected === undefined) return expect(found).toBe(expected);
    const [value, low, high] = expected as [number, number, number];
    expect(found.value).toBeCloseTo(value, 5);
    expect(found.low / low || 1).toBeCloseTo(1, 1);
    expect(found.high === high || Math.abs(found.high / high - 1) < 0.05).toBe(true);
  });

  it('is not moved by one disturbed round of six', () => {
    const quiet = estimate([0.9, 0.92, 0.88, 0.91, 0.89, 0.9]);
    const disturbed = estimate([0.9, 0.92, 0.88, 0.91, 0.89, 9]);
    expect(disturbed?.value).toBeCloseTo(quiet!.value, 1);
    expect(disturbed?.high).toBeLessThan(1);
  });

  it('holds the true value in nine of ten cases at least, with rounds that are disturbed', () => {
    let state = 1;
    const random = () => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return (state >>> 8) / 2 ** 24;
    };
    const normal = () => Array.from({ length: 12 }, random).reduce((sum, one) => sum + one, -6);
    const holds = Array.from({ length: 1000 }, () => {
      const samples = Array.from({ length: 10 }, () => Math.exp(normal() * (random() < 0.1 ? 0.5 : 0.1)));
      const { low, high } = estimate(samples)!;
      return low < 1 && high > 1;
    });
    expect(holds.filter((one) => one).length).toBeGreaterThan(900);
  });
});

describe('rounds', () => {
  const workload: Workload = { kind: 'loops', loops: 1, data: { keys: 1, valueBytes: 1 } };
  const pace = { least: 6, most: 15, seconds: 0, warmUpSeconds: 0, rewarmSeconds: 0, probeSeconds: 0 };
  const server = { meanwhile: (_: Workload, run: () => Promise<Measured>) => run() } as BenchServer;

  async function run(cpuOf: (round: number) => number) {
    const order: string[] = [];
    const part = (name: string, cpu: (round: number) => number): Part => {
      let round = 0;
      return {
        name,
        open: async () => ({
          prepare: async () => {},
          measure: async () => {
            order.push(name);
            round += 1;
            return { commands: 1, cpu: cpu(round) };
          },
          probe: async () => ({}),
          close: async () => {},
          kill: () => {},
        }),
      };
    };
    const missing: Part = { name: 'missing', open: async () => undefined };
    const parts = [part('plain', () => 1), part('other', cpuOf), missing];
    const samples = await measureRounds(parts, { workload, server, pace, attempts: 1, took: () => {} });
    return { order, rounds: samples.get('other')!.length, names: [...samples.keys()] };
  }

  it('end as soon as the interval is narrow, without what could not be opened, in rotated order', async () => {
    const { order, names, rounds } = await run((round) => 0.5 + (round % 2) / 100);
    expect(names).toEqual(['plain', 'other']);
    expect(rounds).toBe(6);
    expect(order.slice(2, 6)).toEqual(['other', 'plain', 'plain', 'other']);
  });

  it('go on while it is wide, up to the most', async () => {
    expect((await run((round) => 1 + (round % 2))).rounds).toBe(15);
  });
});

describe('changes', () => {
  const samples = (perSecond: (round: number) => number): Sample[] =>
    Array.from({ length: 15 }, (_, round) => ({ throughput: perSecond(round) }));
  /** Rounds of a busy machine: what disturbs one disturbs both sides. */
  const noise = (round: number) => 1 + ((round * 7) % 5) / 4;

  it('detects a loss of five percent through noise that is the same on both sides', () => {
    const [change] = changes(
      'bursts',
      samples((round) => 1000 * noise(round)),
      samples((round) => 950 * noise(round) * (1 + (round % 2) / 100)),
    );
    expect(change).toMatchObject({ measure: 'throughput', verdict: 'worse' });
  });

  it('detects no change if there is only noise', () => {
    const [change] = changes(
      'bursts',
      samples((round) => 1000 * noise(round)),
      samples((round) => 1000 * noise(round + 1)),
    );
    expect(change?.verdict).toBe('no clear difference');
  });

  it('does not call a difference of a percent a change, however sure it is', () => {
    const [change] = changes(
      'bursts',
      samples(noise),
      samples((round) => noise(round) * 1.01),
    );
    expect(change?.ratio.low).toBeGreaterThan(1);
    expect(change?.verdict).toBe('no clear difference');
  });
});
