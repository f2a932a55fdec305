import { describe, expect, it } from 'vitest';
import { changes } from '../../bench/suite/compare.js';
import { signedRankTest } from '../../bench/suite/stats.js';
import type { Sample } from '../../bench/variants/protocol.js';

describe('signedRankTest', () => {
  it.each([
    ['nothing to rank', [], 1],
    ['no differences', [0, 0, 0], 1],
    ['five of one sign: 2 of the 32 ways to give them signs', [1, 2, 3, 4, 5], 2 / 32],
    ['the same the other way round', [-1, -2, -3, -4, -5], 2 / 32],
    ['as many up as down', [1, -1, 2, -2], 1],
    // Wilcoxon's table: n = 10, W = 8 is the limit of two-sided 0.05.
    ['ten, the three smallest and another against', [-1, -2, -5, 3, 4, 6, 7, 8, 9, 10], 0.048828125],
  ])('%s', (_, differences, expected) => {
    expect(signedRankTest(differences)).toBeCloseTo(expected, 10);
  });

  it('is practically certain after a hundred differences of the same sign', () => {
    const differences = Array.from({ length: 100 }, (_, index) => index + 1);
    expect(signedRankTest(differences)).toBeCloseTo(2 / 2 ** 100, 40);
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
    expect(change?.verdict).toBe('no change beyond the noise');
  });

  it('does not call a difference of a percent a change, however sure it is', () => {
    const [change] = changes(
      'bursts',
      samples(noise),
      samples((round) => noise(round) * 1.01),
    );
    expect(change?.chance).toBeLessThan(0.001);
    expect(change?.verdict).toBe('no change beyond the noise');
  });
});
