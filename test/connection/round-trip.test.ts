import { describe, expect, it } from 'vitest';
import { RoundTrip } from '../../src/connection/round-trip.js';

/** Turns that take `issue` milliseconds, and whose first reply takes `reply` milliseconds. */
function see(roundTrip: RoundTrip, turns: number, issue: number, reply: number): void {
  for (let turn = 0; turn < turns; turn += 1) {
    roundTrip.sent(1_000);
    roundTrip.issued(issue);
    roundTrip.answered(() => 1_000 + reply);
  }
}

describe('RoundTrip', () => {
  it('is not long before anything is known of it', () => {
    const roundTrip = new RoundTrip();
    expect(roundTrip.isLong).toBe(false);
    roundTrip.answered(() => 5_000);
    expect(roundTrip.isLong).toBe(false);
  });

  it.each([
    ['a server on another machine', 0.01, 0.3, true],
    ['a server on this machine', 0.005, 0.1, false],
    ['a server on another machine, and turns with much other work', 0.05, 0.3, false],
    ['a server in another region, and turns with much other work', 1, 9, true],
  ])('%s: turns of %f ms, replies after %f ms: %j', (_, issue, reply, long) => {
    const roundTrip = new RoundTrip();
    see(roundTrip, 40, issue, reply);
    expect(roundTrip.isLong).toBe(long);
  });

  it('follows a server that comes nearer, and one that goes away', () => {
    const roundTrip = new RoundTrip();
    see(roundTrip, 40, 0.01, 0.3);
    see(roundTrip, 40, 0.01, 0.06);
    expect(roundTrip.isLong).toBe(false);
    see(roundTrip, 40, 0.01, 0.3);
    expect(roundTrip.isLong).toBe(true);
  });

  it('forgets a blocking command of a minute within 40 turns', () => {
    const roundTrip = new RoundTrip();
    see(roundTrip, 40, 0.01, 0.06);
    see(roundTrip, 1, 0.01, 60_000);
    see(roundTrip, 40, 0.01, 0.06);
    expect(roundTrip.isLong).toBe(false);
  });

  it('forgets a turn of a minute within 60 turns', () => {
    const roundTrip = new RoundTrip();
    see(roundTrip, 1, 60_000, 0.3);
    see(roundTrip, 60, 0.01, 0.3);
    expect(roundTrip.isLong).toBe(true);
  });

  it('measures from the last time that bytes were sent alone, to the first reply', () => {
    const roundTrip = new RoundTrip();
    for (let turn = 0; turn < 40; turn += 1) {
      roundTrip.sent(0);
      roundTrip.sent(1_000);
      roundTrip.answered(() => 1_000.06);
      roundTrip.answered(() => 1_005);
    }
    expect(roundTrip.isLong).toBe(false);
  });
});
