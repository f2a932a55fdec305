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

  it.each<[string, (readonly [turns: number, issue: number, reply: number, long: boolean])[]]>([
    [
      'follows a server that comes nearer',
      [
        [40, 0.01, 0.3, true],
        [40, 0.01, 0.06, false],
      ],
    ],
    [
      'follows a server that goes away',
      [
        [40, 0.01, 0.06, false],
        [40, 0.01, 0.3, true],
      ],
    ],
    [
      'forgets a blocking command of a minute',
      [
        [1, 0.01, 60_000, true],
        [40, 0.01, 0.06, false],
      ],
    ],
    [
      'forgets a turn of a minute',
      [
        [1, 60_000, 0.3, false],
        [60, 0.01, 0.3, true],
      ],
    ],
    [
      'is not misled by one late reply',
      [
        [40, 0.01, 0.06, false],
        [1, 0.01, 0.5, false],
      ],
    ],
  ])('%s', (_, phases) => {
    const roundTrip = new RoundTrip();
    for (const [turns, issue, reply, long] of phases) {
      see(roundTrip, turns, issue, reply);
      expect(roundTrip.isLong).toBe(long);
    }
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
