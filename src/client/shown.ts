import { inspect } from 'node:util';
import type { ResolvedOptions } from '../options.js';
import type { CoalescerStats } from '../stats.js';

/**
 * An attachment as it is shown: without its client or Cluster, whose options may hold a password and whose queues hold
 * arguments.
 */
export abstract class Shown {
  abstract readonly options: ResolvedOptions;
  abstract stats(): CoalescerStats;

  toJSON(): object {
    return { options: this.options, stats: this.stats() };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}
