import { describe, expect, it } from 'vitest';
import { type Overlap, OverlapTrial, type TurnSize } from '../../src/connection/overlap-trial.js';

/** What a loop does in a millisecond. */
interface World {
  /** Work with overlap and without, and with a leading part; that is the same as with overlap if it is not said. */
  readonly rates: readonly [overlapped: number, gathered: number, led?: number];
  /** How much the turns send; small if it is said what polling gains, and large if not. */
  readonly size?: TurnSize;
  /** By how many times the work is more while the loop polls. */
  polling?: number;
  /** The share of its time that the loop runs code. */
  busy?: number;
  /** By how much each turn's work differs from the rate, at the most: 0.2 is a fifth. */
  noise?: number;
  /** The share of turns that are interrupted for 3 ms. */
  interrupted?: number;
}

const TURNS_PER_MS = 10;
/** Milliseconds. */
const INTERRUPTION = 3;

/** A loop with turns of a tenth of a millisecond, and numbers by chance that are the same in each run. */
function loopOf(world: World, seed = 1) {
  const state = { busy: 0.5, noise: 0, interrupted: 0, ...world };
  const connection = {};
  const times = { idle: 0, active: 0 };
  const trial = new OverlapTrial(() => ({ ...times }));
  let now = 0;
  let number = seed;
  const random = () => {
    number = (number * 48_271) % 2_147_483_647;
    return number / 2_147_483_647;
  };
  const turn = () => {
    now += 1 / TURNS_PER_MS;
    times.active += state.busy / TURNS_PER_MS;
    times.idle += (1 - state.busy) / TURNS_PER_MS;
    const [overlapped, gathered, led = overlapped] = state.rates;
    const kindRate = trial.overlap === 'parts' ? overlapped : trial.overlap === 'led' ? led : gathered;
    const rate = kindRate * (trial.polls ? (state.polling ?? 1) : 1);
    if (random() < state.interrupted) now += INTERRUPTION;
    const size = state.size ?? (state.polling === undefined ? 'large' : 'small');
    trial.turnEnded(now, rate * (1 + state.noise * (2 * random() - 1)), connection, size);
    return trial.overlap;
  };
  /** The share of turns that were sent in parts as asked: with overlap of any kind, if nothing is asked. */
  const run = (ms: number, ...asked: Overlap[]) => {
    const kinds = asked.length > 0 ? asked : ['parts', 'led'];
    return (
      Array.from({ length: ms * TURNS_PER_MS }, turn).filter((seen) => kinds.includes(seen)).length /
      (ms * TURNS_PER_MS)
    );
  };
  /** The share of turns whose replies were polled for. */
  const polled = (ms: number) => {
    let turns = 0;
    for (let left = ms * TURNS_PER_MS; left > 0; left -= 1) {
      turn();
      if (trial.polls) turns += 1;
    }
    return turns / (ms * TURNS_PER_MS);
  };
  return { run, polled, state, trial };
}

/** Where both kinds of overlap are as fast, either may be kept. */
function kinds(overlap: Overlap): Overlap[] {
  return overlap === 'parts' ? ['parts', 'led'] : [overlap];
}

describe('OverlapTrial', () => {
  it.each<[string, World, Overlap]>([
    ['overlap is faster', { rates: [110, 100] }, 'parts'],
    ['gathering is faster', { rates: [100, 110] }, 'none'],
    ['overlap is faster, each turn differs by up to a fifth', { rates: [110, 100], noise: 0.2 }, 'parts'],
    ['gathering is faster, each turn differs by up to a fifth', { rates: [100, 110], noise: 0.2 }, 'none'],
    ['overlap is faster in a saturated loop', { rates: [110, 100], busy: 0.99, noise: 0.2 }, 'parts'],
    ['neither is faster, and the loop waits: small turns', { rates: [100, 100] }, 'small'],
    ['overlap is faster by less than it costs: small turns', { rates: [103, 100] }, 'small'],
    ['the same in a saturated loop: small turns', { rates: [103, 100], busy: 0.95 }, 'small'],
    ['neither is faster, and the loop is saturated', { rates: [100, 100], busy: 0.95 }, 'none'],
  ])('%s: that is kept, but for short trials', (_, world, overlap) => {
    const { run } = loopOf(world);
    run(2_000);
    // A trial without a winner takes longest.
    expect(run(20_000, ...kinds(overlap))).toBeGreaterThan(overlap === 'small' ? 0.88 : 0.94);
  });

  it.each<[string, World, Overlap]>([
    ['a leading part is faster than parts alone', { rates: [110, 100, 125], noise: 0.2 }, 'led'],
    ['it is slower than parts alone, but faster than gathering', { rates: [125, 100, 110], noise: 0.02 }, 'parts'],
    ['it is slower than gathering, parts alone are faster', { rates: [120, 100, 90], noise: 0.2 }, 'parts'],
    ['parts alone are slower than gathering, it is faster', { rates: [90, 100, 120], noise: 0.2 }, 'led'],
    [
      'it is faster by more than a write costs huge turns',
      { rates: [110, 100, 120], size: 'huge', noise: 0.02 },
      'led',
    ],
    ['it is not, although it is faster', { rates: [120, 100, 124], size: 'huge', noise: 0.02 }, 'parts'],
    ['turns that are not huge have no write more', { rates: [120, 100, 124], noise: 0.02 }, 'led'],
  ])('%s: the faster kind of overlap is kept, but for short trials', (_, world, overlap) => {
    const { run } = loopOf(world);
    run(10_000);
    expect(run(40_000, overlap)).toBeGreaterThan(0.94);
  });

  /** Turns of that kind in each trial of `seconds` that had some; half a second and more lies between trials. */
  const turnsInTrials = (run: (ms: number, ...asked: Overlap[]) => number, overlap: Overlap, seconds: number) => {
    const trials: number[] = [];
    for (let ms = 0, last = -1000; ms < seconds * 1000; ms += 1) {
      const turns = Math.round(run(1, overlap) * TURNS_PER_MS);
      if (turns === 0) continue;
      if (ms - last > 200) trials.push(0);
      trials[trials.length - 1]! += turns;
      last = ms;
    }
    return trials;
  };

  it('needs fewer slices to confirm a verdict than to reach it', () => {
    const [first, second] = turnsInTrials(loopOf({ rates: [110, 100] }).run, 'none', 10);
    expect(second).toBeLessThan(0.7 * first!);
  });

  it('needs as few to confirm the kind of overlap', () => {
    const { run } = loopOf({ rates: [125, 100, 110] });
    run(10_000);
    // Three slices of 37 turns; in a trial of two kinds that start even there are five.
    const trials = turnsInTrials(run, 'led', 30);
    expect(trials.length).toBeGreaterThan(1);
    expect(Math.max(...trials)).toBeLessThanOrEqual(3 * 37);
  });

  it('keeps overlap for as long as before if only its kind has changed', () => {
    const { run, state } = loopOf({ rates: [125, 100, 110] });
    run(30_000);
    state.rates = [110, 100, 125];
    const inARow = (ms: number) => Array.from({ length: ms }, () => run(1, 'led')).every((share) => share === 1);
    while (!inARow(200));
    let held = 200;
    while (run(1, 'none') === 0) held += 1;
    expect(held).toBeGreaterThan(3500);
  });

  it('begins with overlap', () => {
    const { run } = loopOf({ rates: [110, 100] });
    expect(run(3)).toBe(1);
  });

  it('finds a clear winner within a fifth of a second', () => {
    const { run } = loopOf({ rates: [100, 150], noise: 0.1 });
    run(200);
    expect(run(100)).toBe(0);
  });

  it.each<[string, World, Overlap]>([
    ['overlap is', { rates: [112, 100], noise: 0.1, interrupted: 0.02 }, 'parts'],
    ['gathering is', { rates: [100, 112], noise: 0.1, interrupted: 0.02 }, 'none'],
  ])(
    'finds that %s an eighth faster, although the loop is interrupted for two fifths of its time',
    (_, world, overlap) => {
      const { run } = loopOf(world);
      run(2_000);
      expect(run(20_000, ...kinds(overlap))).toBeGreaterThan(0.94);
    },
  );

  it('holds its verdict for at least four times as long as the trial took', () => {
    let now = 0;
    const trial = new OverlapTrial(() => ({ idle: now, active: 0 }));
    const turnsUntil = (overlap: Overlap, whileSo: boolean) => {
      const from = now;
      // Neither side wins, so the trial takes longest.
      while ((trial.overlap === overlap) !== whileSo) {
        now += 1;
        trial.turnEnded(now, 1, trial, 'large');
      }
      return now - from;
    };
    const took = turnsUntil('small', true);
    expect(took).toBeGreaterThan(700);
    const held = turnsUntil('small', false);
    expect(held).toBeGreaterThan(3.9 * took);
    expect(held).toBeLessThan(4.1 * took);
  });

  it('does not count a pause within a trial as its time', () => {
    let now = 0;
    const trial = new OverlapTrial(() => ({ idle: now, active: 0 }));
    const turns = (count: number) => {
      const seen: Overlap[] = [];
      for (let turn = 0; turn < count; turn += 1) {
        now += 1;
        trial.turnEnded(now, trial.overlap === 'none' ? 1 : 2, trial, 'large');
        seen.push(trial.overlap);
      }
      return seen;
    };
    turns(100);
    now += 60_000;
    // The verdict of a trial of 60 s would hold for minutes.
    expect(new Set(turns(5000).slice(500)).size).toBeGreaterThan(1);
  });

  it('tries again once the loop has become busy, although its verdict was confirmed many times', () => {
    const { run, state } = loopOf({ rates: [150, 100], busy: 0.4, noise: 0.1 });
    run(30_000);
    Object.assign(state, { rates: [100, 150], busy: 0.98 });
    run(1_000);
    expect(run(500)).toBeLessThan(0.05);
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
    let none = 0;
    for (let ms = 0; ms < 4_000; ms += 1) {
      state.rates = [100 + ms, 100 + ms];
      none += run(1, 'none');
    }
    expect(none).toBeLessThan(2_000);
  });

  it('counts turns of the loop, however many connections end theirs in one', () => {
    const sidesAfter = (connections: readonly object[]) => {
      let now = 0;
      const trial = new OverlapTrial(() => ({ idle: now, active: 0 }));
      return Array.from({ length: 200 }, (_, turn) => {
        now = turn * 0.5;
        for (const connection of connections) {
          trial.turnEnded(now, 1, connection, 'large');
          now += 0.01;
        }
        return trial.overlap;
      });
    };
    expect(sidesAfter([{}, {}, {}])).toEqual(sidesAfter([{}]));
  });

  it('counts the work of all connections', () => {
    let now = 0;
    const trial = new OverlapTrial(() => ({ idle: now, active: 0 }));
    const [first, second, third] = [{}, {}, {}];
    for (let turn = 0; turn < 400; turn += 1) {
      now += 0.5;
      trial.turnEnded(now, 10, first, 'large');
      trial.turnEnded(now, 10, second, 'large');
      trial.turnEnded(now, trial.overlap === 'none' ? 15 : 10, third, 'large');
    }
    expect(trial.overlap).toBe('none');
  });

  it('goes on when the connection falls silent that ended the turn first', () => {
    let now = 0;
    const trial = new OverlapTrial(() => ({ idle: now, active: 0 }));
    const [first, second] = [{}, {}];
    const seen = new Set<Overlap>();
    for (let turn = 0; turn < 100; turn += 1) {
      now += 0.5;
      if (turn < 5) trial.turnEnded(now, 1, first, 'large');
      trial.turnEnded(now, 1, second, 'large');
      seen.add(trial.overlap);
    }
    expect(seen).toContain('none');
  });

  it('holds its verdict while nothing happens', () => {
    let now = 0;
    const trial = new OverlapTrial(() => ({ idle: now, active: 0 }));
    const turns = (count: number, rate: () => number) => {
      for (let turn = 0; turn < count; turn += 1) {
        now += 1;
        trial.turnEnded(now, rate(), trial, 'large');
      }
    };
    turns(300, () => (trial.overlap === 'none' ? 2 : 1));
    expect(trial.overlap).toBe('none');
    now += 60_000;
    expect(trial.overlap).toBe('none');
  });

  describe('where turns are small', () => {
    /** The share of turns whose replies are polled for, once the first trials are over. */
    const settledShare = (world: World) => {
      const { polled } = loopOf(world);
      polled(3_000);
      return polled(40_000);
    };

    it.each<[string, World]>([
      ['by a quarter', { rates: [100, 100], polling: 1.25 }],
      ['twice as fast', { rates: [100, 100], polling: 2, noise: 0.5 }],
      ['by a quarter, each turn differs by up to a fifth', { rates: [110, 100], polling: 1.25, noise: 0.2 }],
      ['by a quarter, in a loop that is busy', { rates: [100, 110], polling: 1.25, noise: 0.2, busy: 0.95 }],
    ])('polls for replies where that is faster, %s', (_, world) => {
      expect(settledShare(world)).toBeGreaterThan(0.94);
    });

    it.each<[string, World]>([
      ['slower', { rates: [100, 100], polling: 0.8, noise: 0.2 }],
      ['faster by less than it costs', { rates: [100, 100], polling: 1.1, noise: 0.2 }],
      ['neither faster nor slower', { rates: [100, 100], polling: 1, noise: 0.5 }],
      ['neither, and turns differ widely', { rates: [110, 100], polling: 1, noise: 1, interrupted: 0.02 }],
    ])('waits for them where polling is %s, but for short trials', (_, world) => {
      expect(settledShare(world)).toBeLessThan(0.12);
    });

    it('waits for them where requests come at a rate of their own: chance seldom decides for polling', () => {
      const shares = Array.from({ length: 30 }, (_, seed) => {
        const { polled } = loopOf({ rates: [100, 100], polling: 1, interrupted: 0.3 }, seed + 1);
        return polled(10_000);
      });
      expect(shares.reduce((sum, share) => sum + share) / shares.length).toBeLessThan(0.15);
    });

    it('tries more and more seldom while its verdict on polling is confirmed', () => {
      const { polled } = loopOf({ rates: [110, 100], polling: 2, noise: 0.1 });
      polled(30_000);
      expect(polled(30_000)).toBeGreaterThan(0.99);
    });

    it('finds out at once whether polling is faster, without holding its first verdict on overlap', () => {
      const { polled } = loopOf({ rates: [150, 100], polling: 2, noise: 0.1 });
      polled(300);
      expect(polled(100)).toBe(1);
    });

    it('does not give up while the kernel moves the server away from the processor of a loop that polls', () => {
      const { polled, state } = loopOf({ rates: [100, 100], polling: 0.85, noise: 0.1 });
      let polledFor = 0;
      let waitedFor = 0;
      // One millisecond: they are apart when the loop has polled for 36, and together when it has waited for 100.
      const tick = () => {
        const share = polled(1);
        polledFor += share;
        waitedFor = share > 0 ? 0 : waitedFor + 1;
        if (waitedFor >= 100) polledFor = 0;
        state.polling = polledFor >= 36 ? 2.4 : 0.85;
        return share;
      };
      const run = (ms: number) => Array.from({ length: ms }, tick).reduce((sum, share) => sum + share) / ms;
      run(400);
      expect(run(20_000)).toBeGreaterThan(0.94);
    });

    it('finds within seconds that polling is not faster any more', () => {
      const { polled, state } = loopOf({ rates: [100, 100], polling: 1.5, noise: 0.1 });
      polled(20_000);
      state.polling = 0.7;
      polled(10_000);
      expect(polled(10_000)).toBeLessThan(0.05);
    });

    it('still finds out whether overlap is faster', () => {
      const { run, state } = loopOf({ rates: [130, 100], polling: 1.5, noise: 0.1 });
      run(10_000);
      expect(run(10_000)).toBeGreaterThan(0.94);
      state.rates = [100, 130];
      run(15_000);
      expect(run(10_000, 'none')).toBeGreaterThan(0.94);
    });

    it('does not compare the kinds of overlap: small turns leave the same way under both', () => {
      const { run } = loopOf({ rates: [110, 100], polling: 2 });
      expect(run(20_000, 'parts')).toBe(0);
    });

    it('does not take a loop that polls for a saturated one', () => {
      const { run, state, polled } = loopOf({ rates: [100, 100], polling: 1.5 });
      polled(2_000);
      state.busy = 1;
      polled(10_000);
      expect(run(10_000, 'small')).toBeGreaterThan(0.85);
    });
  });

  describe('where turns are medium', () => {
    it.each<[string, World, Overlap, boolean]>([
      ['faster with a first command', { rates: [110, 100, 125], polling: 2, noise: 0.1 }, 'led', true],
      ['faster with parts alone', { rates: [125, 100, 110], polling: 2, noise: 0.1 }, 'parts', true],
      ['slower', { rates: [90, 110], polling: 2, noise: 0.1 }, 'none', true],
      ['faster, and polling slower', { rates: [110, 100, 125], polling: 0.8, noise: 0.1 }, 'led', false],
    ])('finds out whether polling is faster, and which overlap: %s', (_, world, overlap, polls) => {
      const { run, polled } = loopOf({ ...world, size: 'medium' });
      run(10_000);
      expect(run(20_000, overlap)).toBeGreaterThan(0.9);
      expect(polled(20_000) > 0.5).toBe(polls);
    });

    it('polls within a second, when both first trials about overlap are over', () => {
      const { polled } = loopOf({ rates: [110, 100, 125], polling: 2, noise: 0.1, size: 'medium' });
      polled(900);
      expect(polled(50)).toBe(1);
    });
  });

  it('never polls after large turns', () => {
    expect(loopOf({ rates: [110, 100] }).polled(20_000)).toBe(0);
  });
});
