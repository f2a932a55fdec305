import { describe, expect, it } from 'vitest';
import { OverlapTrial } from '../../src/connection/overlap-trial.js';

/** What a loop does in a millisecond. */
interface World {
  /** Work with overlap and without. */
  readonly rates: readonly [overlapped: number, gathered: number];
  /** The share of its time that the loop runs code. */
  busy?: number;
  /** By how much each turn's work differs from the rate, at the most: 0.2 is a fifth. */
  noise?: number;
}

/** A loop with turns of a millisecond each, and numbers by chance that are the same in each run. */
function loopOf(world: World) {
  const state = { busy: 0.5, noise: 0, ...world };
  const times = { idle: 0, active: 0 };
  const trial = new OverlapTrial(() => ({ ...times }));
  let now = 0;
  let seed = 1;
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const turn = () => {
    now += 1;
    times.active += state.busy;
    times.idle += 1 - state.busy;
    const rate = state.rates[trial.overlaps ? 0 : 1];
    trial.turnEnded(now, rate * (1 + state.noise * (2 * random() - 1)));
    return trial.overlaps;
  };
  /** The share of milliseconds with overlap. */
  const run = (ms: number) => Array.from({ length: ms }, turn).filter(Boolean).length / ms;
  return { run, state };
}

describe('OverlapTrial', () => {
  it.each<[string, World, boolean]>([
    ['overlap is faster', { rates: [110, 100] }, true],
    ['gathering is faster', { rates: [100, 110] }, false],
    ['overlap is faster, each turn differs by up to a fifth', { rates: [110, 100], noise: 0.2 }, true],
    ['gathering is faster, each turn differs by up to a fifth', { rates: [100, 110], noise: 0.2 }, false],
    ['overlap is faster in a saturated loop', { rates: [110, 100], busy: 0.99, noise: 0.2 }, true],
    ['neither is faster, and the loop waits', { rates: [100, 100] }, true],
    ['neither is faster, and the loop is saturated', { rates: [100, 100], busy: 0.95 }, false],
  ])('%s: that is kept, but for short trials', (_, world, overlaps) => {
    const { run } = loopOf(world);
    run(2_000);
    const share = run(20_000);
    expect(overlaps ? share : 1 - share).toBeGreaterThan(0.94);
  });

  it('begins with overlap', () => {
    const { run } = loopOf({ rates: [110, 100] });
    expect(run(5)).toBe(1);
  });

  it('finds a clear winner within a fifth of a second', () => {
    const { run } = loopOf({ rates: [100, 150], noise: 0.1 });
    run(200);
    expect(run(100)).toBe(0);
  });

  it('finds within seconds that the other side has become faster', () => {
    const { run, state } = loopOf({ rates: [150, 100], noise: 0.1 });
    run(20_000);
    state.rates = [100, 150];
    run(5_000);
    expect(run(5_000)).toBeLessThan(0.05);
  });

  it('is not misled by a rate that rises all the time', () => {
    const { run, state } = loopOf({ rates: [100, 100], noise: 0.02 });
    let shares = 0;
    for (let ms = 0; ms < 4_000; ms += 1) {
      state.rates = [100 + ms, 100 + ms];
      shares += run(1);
    }
    expect(shares).toBeGreaterThan(2_000);
  });

  it('compares at least eight turns per side, however long they take', () => {
    let now = 0;
    const trial = new OverlapTrial(() => ({ idle: now, active: 0 }));
    const seen: boolean[] = [];
    for (let turn = 0; turn < 40; turn += 1) {
      now += 100;
      trial.turnEnded(now, 1);
      seen.push(trial.overlaps);
    }
    const lengths = seen
      .join()
      .match(/(true|false)(,\1)*/g)
      ?.map((side) => side.split(',').length);
    expect(lengths?.slice(0, 3)).toEqual([8, 16, 16]);
  });

  it('holds its verdict while nothing happens', () => {
    let now = 0;
    const trial = new OverlapTrial(() => ({ idle: now, active: 0 }));
    const turns = (count: number, rate: () => number) => {
      for (let turn = 0; turn < count; turn += 1) {
        now += 1;
        trial.turnEnded(now, rate());
      }
    };
    turns(230, () => (trial.overlaps ? 1 : 2));
    expect(trial.overlaps).toBe(false);
    now += 60_000;
    expect(trial.overlaps).toBe(false);
  });
});
