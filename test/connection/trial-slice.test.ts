import { describe, expect, it } from 'vitest';
import { TrialSlice } from '../../src/connection/trial-slice.js';

/** Adds turns until the slice ends; returns their number. */
function fill(slice: TrialSlice, turn: (index: number) => [ms: number, work: number]): number {
  for (let index = 0; ; index += 1) {
    if (slice.add(...turn(index))) return index + 1;
  }
}

function begun(): TrialSlice {
  const slice = new TrialSlice();
  slice.begin();
  return slice;
}

describe('TrialSlice', () => {
  it.each([
    { length: 'a sixteenth of a millisecond', ms: 1 / 16, turns: 6 + 48 },
    { length: 'half a millisecond', ms: 0.5, turns: 6 + 20 },
    { length: 'a millisecond', ms: 1, turns: 6 + 15 },
    { length: 'five milliseconds', ms: 5, turns: 2 + 4 },
    { length: 'twenty milliseconds', ms: 20, turns: 1 + 4 },
  ])('measures 3 ms and 20 turns, or 15 ms and 4 turns, after six turns or 10 ms: $turns turns of $length', (row) => {
    expect(fill(begun(), () => [row.ms, 1])).toBe(row.turns);
  });

  it('has the rate of the turns after the first six', () => {
    const slice = begun();
    fill(slice, (index) => [0.25, index < 6 ? 1_000 : 2]);
    expect(slice.rate).toBe(8);
  });

  it.each([0, 7, 13, 19])('leaves out three interrupted turns with their work: from measured turn %i', (from) => {
    const slice = begun();
    fill(slice, (index) => {
      const turn = index - 6;
      return turn >= from && turn < from + 3 ? [3 + turn, 50 * turn] : [0.25, 2];
    });
    expect(slice.rate).toBe(8);
  });

  it.each([
    { order: 'falling', lengths: [6, 5, 4, 3, 2, 1] },
    { order: 'rising', lengths: [1, 2, 3, 4, 5, 6] },
    { order: 'mixed', lengths: [3, 6, 1, 5, 2, 4] },
  ])('leaves out the longest three of $order turns', ({ lengths }) => {
    const slice = begun();
    const turns = fill(slice, (index) => [(lengths[index - 6] ?? 0.5) / 2, 1]) - 6;
    // 0.5, 1 and 1.5 ms are left.
    expect(slice.rate).toBeCloseTo((turns - 3) / (3 + 0.25 * (turns - 6)), 10);
  });

  it('leaves out a pause among a few long turns, but no more than a quarter of them', () => {
    const slice = begun();
    expect(fill(slice, (index) => [[5, 5, 5, 5, 1_000, 6][index] as number, 10])).toBe(6);
    expect(slice.rate).toBe(30 / 16);
  });

  it('begins anew', () => {
    const slice = begun();
    fill(slice, () => [9, 1]);
    slice.begin();
    expect(fill(slice, () => [0.5, 3])).toBe(26);
    expect(slice.rate).toBe(6);
  });

  it('has a rate although the clock stands still but for the longest turns', () => {
    const slice = begun();
    fill(slice, (index) => [index % 10 === 9 ? 2 : 0, 1]);
    expect(slice.rate).toBeGreaterThan(0);
    expect(slice.rate).toBeLessThan(Number.POSITIVE_INFINITY);
  });
});
