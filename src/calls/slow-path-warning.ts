import { CODES, warnOnce } from '../errors.js';
import type { FallbackReason, Stats } from '../stats.js';
import { now } from '../util/clock.js';

/** Commands of one reason between two looks: fewer are no load. */
const COMMANDS_PER_LOOK = 1024;
const PATIENCE_MS = 60_000;

/** The reasons that one setting cures: what is the matter, and what to do. */
const CURES: Partial<Record<FallbackReason, string>> = {
  traced:
    'a tracer subscribes to the channel ioredis:command, Sentry even with tracesSampleRate: 0, which leaves pipelines and ' +
    'a cache to the client; leave its integration of Redis out',
  patched:
    'a tracer or other code has replaced a command method, or sendCommand, which leaves pipelines and a cache to the ' +
    'client; leave its instrumentation of ioredis out',
  options: 'enableAutoPipelining or showFriendlyErrorStack is set; turn it off',
};

/**
 * Warns once per process if a client under load has had no fast command for a minute, for a reason that one setting would
 * cure: most of what it could gain is lost, and nothing else tells.
 */
export class SlowPathWatch {
  /** Since when a client has had no fast command, and how many before. */
  readonly #spells = new WeakMap<Stats, { readonly fastCommands: number; readonly sinceMs: number }>();
  #warned = false;

  constructor(readonly clock: () => number = now) {}

  /** Counts a command of the client. */
  fellBack(stats: Stats, reason: FallbackReason): void {
    if (stats.fellBack(reason) % COMMANDS_PER_LOOK !== 0 || this.#warned) return;
    const cure = CURES[reason];
    if (cure === undefined) return;
    const { fastCommands } = stats;
    const spell = this.#spells.get(stats);
    if (spell?.fastCommands !== fastCommands) {
      this.#spells.set(stats, { fastCommands, sinceMs: this.clock() });
      return;
    }
    if (this.clock() - spell.sinceMs < PATIENCE_MS) return;
    this.#warned = true;
    warnOnce(
      CODES.NOT_FAST,
      `ioredis-coalesce: for a minute, all commands of a client under load were left to the client, still in batches: ${cure}`,
    );
  }
}

/** One per process. */
export const slowPathWatch = new SlowPathWatch();
