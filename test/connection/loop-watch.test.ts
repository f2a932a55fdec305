import { describe, expect, it } from 'vitest';
import { LoopWatch } from '../../src/connection/loop-watch.js';

/** A loop of turns of 1 ms, of which `busy` is spent running. */
function loopOf(busy: number) {
  const times = { idle: 0, active: 0 };
  const watch = new LoopWatch(() => ({ ...times }));
  const state = { now: 0, busy };
  const turn = () => {
    times.active += state.busy;
    times.idle += 1 - state.busy;
    state.now += 1;
    watch.turnEnded(state.now);
  };
  return {
    watch,
    state,
    run: (turns: number) =>
      Array.from({ length: turns }, () => {
        turn();
        return watch.waits;
      }),
  };
}

describe('LoopWatch', () => {
  it('finds that a loop waits which is idle for half of its time, measuring some milliseconds in a hundred', () => {
    const { run } = loopOf(0.5);
    const waits = run(1_000);
    const looking = waits.filter((each) => !each).length;
    expect(waits.at(-1)).toBe(true);
    expect(looking).toBeGreaterThan(20);
    expect(looking).toBeLessThan(100);
  });

  it('stays with gathering while the loop is saturated', () => {
    const { run } = loopOf(0.99);
    const waits = run(500);
    expect(waits.slice(10).every((each) => !each)).toBe(true);
  });

  it('goes back to overlap within some turns when the load falls, and to gathering when it rises', () => {
    const { run, state } = loopOf(0.99);
    run(100);
    state.busy = 0.3;
    expect(run(10).at(-1)).toBe(true);
    state.busy = 0.99;
    expect(run(120).at(-1)).toBe(false);
  });

  it('measures only while commands gather: the load while parts are sent decides nothing', () => {
    const { run, state, watch } = loopOf(0.3);
    run(10);
    expect(watch.waits).toBe(true);
    state.busy = 1;
    expect(run(50).every((each) => each)).toBe(true);
  });
});
