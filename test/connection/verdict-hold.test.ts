import { describe, expect, it } from 'vitest';
import { VerdictHold } from '../../src/connection/verdict-hold.js';

/** A loop that ends a turn each millisecond. */
function loop() {
  const state = { busy: 0.5, work: 100, now: 0, idle: 0, active: 0 };
  const hold = new VerdictHold(() => ({ idle: state.idle, active: state.active }));
  const turn = () => {
    state.now += 1;
    state.active += state.busy;
    state.idle += 1 - state.busy;
    return hold.isOver(state.now, state.work);
  };
  /** Milliseconds until the hold is over, or `most`. */
  const lasts = (most = 10_000) => {
    const from = state.now;
    while (state.now - from < most && !turn());
    return state.now - from;
  };
  return {
    state,
    hold,
    turn,
    lasts,
    begin: (took: number, confirmed = false) => hold.begin(state.now, took, confirmed),
  };
}

/** The loop is looked at every 20 ms. */
const LOOK = 20;

describe('VerdictHold', () => {
  it('lasts for half a second, and twice as long each time the verdict is confirmed, up to 4 s', () => {
    const { begin, lasts } = loop();
    begin(10);
    const lengths = [lasts()];
    for (let trial = 0; trial < 5; trial += 1) {
      begin(10, true);
      lengths.push(lasts());
    }
    for (const [index, expected] of [500, 1000, 2000, 4000, 4000, 4000].entries()) {
      expect(Math.abs(lengths[index]! - expected)).toBeLessThanOrEqual(LOOK);
    }
  });

  it('lasts for half a second again after another verdict', () => {
    const { begin, lasts } = loop();
    begin(10, true);
    lasts();
    begin(10);
    expect(lasts()).toBeLessThanOrEqual(500 + LOOK);
  });

  it('lasts for four times as long as a long trial took', () => {
    const { begin, lasts } = loop();
    begin(1000);
    expect(Math.abs(lasts() - 4000)).toBeLessThanOrEqual(LOOK);
  });

  it.each([0.1, 0.9])('ends within 100 ms once the loop is busy for %d of its time instead of 0.5', (busy) => {
    const { begin, lasts, state } = loop();
    for (let trial = 0; trial < 4; trial += 1) begin(10, true);
    expect(lasts(1000)).toBe(1000);
    state.busy = busy;
    expect(lasts()).toBeLessThanOrEqual(5 * LOOK);
  });

  it.each([150, 66])('ends within 100 ms once a turn has %d units of work instead of 100', (work) => {
    const { begin, lasts, state } = loop();
    for (let trial = 0; trial < 4; trial += 1) begin(10, true);
    expect(lasts(1000)).toBe(1000);
    state.work = work;
    expect(lasts()).toBeLessThanOrEqual(5 * LOOK);
  });

  it.each([130, 77])('goes on if a turn has %d units of work instead of 100', (work) => {
    const { begin, lasts, state } = loop();
    for (let trial = 0; trial < 4; trial += 1) begin(10, true);
    lasts(1000);
    state.work = work;
    expect(lasts(2000)).toBe(2000);
  });

  it('ends early after four times the length of its trial at the soonest, and an eighth of its own', () => {
    const { begin, lasts, state } = loop();
    const changesAt = (took: number, confirmed: boolean) => {
      begin(took, confirmed);
      state.busy = 0.5;
      const before = lasts(2 * LOOK);
      state.busy = 0.9;
      return before + lasts();
    };
    expect(changesAt(40, false)).toBeGreaterThanOrEqual(160);
    for (let trial = 0; trial < 4; trial += 1) begin(10, true);
    expect(changesAt(10, true)).toBeGreaterThanOrEqual(500);
  });

  it('ends early less and less soon while that is for nothing, and soon again after another verdict', () => {
    const { begin, lasts, state } = loop();
    /** A hold of 4 s in which the loop changes after 100 ms. */
    const changing = (confirmed: boolean) => {
      begin(10, confirmed);
      state.busy = 0.5;
      const before = lasts(100);
      state.busy = 0.9;
      return before + lasts();
    };
    for (let trial = 0; trial < 4; trial += 1) begin(10, true);
    const lengths = Array.from({ length: 5 }, () => changing(true));
    for (const [index, expected] of [500, 1000, 2000, 4000, 4000].entries()) {
      expect(Math.abs(lengths[index]! - expected)).toBeLessThanOrEqual(LOOK);
    }
    expect(changing(false)).toBeLessThanOrEqual(200);
  });

  it('goes on if the loop is busy for another share of its time only briefly, or the share differs little', () => {
    const { begin, lasts, state } = loop();
    for (let trial = 0; trial < 4; trial += 1) begin(10, true);
    let held = 0;
    for (let round = 0; round < 20; round += 1) {
      state.busy = 0.9;
      held += lasts(2 * LOOK);
      state.busy = 0.6;
      held += lasts(2 * LOOK);
    }
    expect(held).toBe(20 * 4 * LOOK);
  });

  it('does not count the time in which nothing is sent', () => {
    const { begin, lasts, state } = loop();
    begin(10);
    let held = 0;
    for (let round = 0; round < 4; round += 1) {
      held += lasts(100);
      state.now += 5000;
      state.idle += 5000;
    }
    held += lasts();
    expect(held).toBeGreaterThan(400);
    expect(held).toBeLessThanOrEqual(500 + 5 * LOOK);
  });

  it('lasts for half a second more at the most after a pause, and no less than four times the length of its trial', () => {
    const { begin, lasts, state } = loop();
    const afterPause = (took: number) => {
      for (let trial = 0; trial < 4; trial += 1) begin(took, true);
      lasts(100);
      state.now += 5000;
      state.idle += 5000;
      return lasts();
    };
    expect(Math.abs(afterPause(10) - 500)).toBeLessThanOrEqual(2 * LOOK);
    expect(Math.abs(afterPause(300) - 1100)).toBeLessThanOrEqual(2 * LOOK);
  });
});
