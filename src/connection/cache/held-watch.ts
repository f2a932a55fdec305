import { CODES, warnOnce } from '../../errors.js';
import { now } from '../../util/clock.js';

const MINUTE_MS = 60_000;
/** Answers held back in a minute: fewer are no load. */
const LOAD = 10_000;

/** Warns once per process if a minute of a cache beside scripts has held back more answers than were given: nothing else tells. */
export class HeldWatch {
  #since = { atMs: Number.NaN, cacheHeld: 0, cacheHits: 0 };

  /** A script that may change anything was sent. */
  scriptSent({ cacheHeld, cacheHits }: { cacheHeld: number; cacheHits: number }, atMs = now()): void {
    const since = this.#since;
    if (atMs - since.atMs < MINUTE_MS) return;
    this.#since = { atMs, cacheHeld, cacheHits };
    const held = cacheHeld - since.cacheHeld;
    if (Number.isNaN(since.atMs) || held < LOAD || held < cacheHits - since.cacheHits) return;
    const cure = "`cache: { scripts: 'keys' }` cures it, or a client of their own";
    warnOnce(
      CODES.CACHE_HELD,
      `ioredis-coalesce: for a minute, scripts have held back most answers of a cache; ${cure}`,
    );
  }
}
