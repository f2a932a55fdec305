import type { Coalescer } from '../handle.js';
import type { ResolvedOptions } from '../options.js';
import { type CoalescerStats, Stats } from '../stats.js';

/**
 * The handle of a client that stays plain: code that uses the handle still works, and sees that nothing was coalesced.
 */
class IdleCoalescer implements Coalescer {
  readonly enabled = false;
  readonly cache = undefined;

  constructor(readonly options: ResolvedOptions) {}

  stats(): CoalescerStats {
    return new Stats().snapshot(0, 0);
  }

  flush(): void {}

  detach(): void {}
}

/** Gives a client that stays plain its handle, as an own property. A frozen client gets none. */
export function addIdleHandle(client: object, options: ResolvedOptions): void {
  const { coalescer } = client as { coalescer?: Coalescer };
  if (coalescer !== undefined) return;
  Reflect.defineProperty(client, 'coalescer', { value: new IdleCoalescer(options), configurable: true });
}

/** Removes the idle handle of a client that is about to be coalesced. */
export function removeIdleHandle(client: object): void {
  const own = Object.getOwnPropertyDescriptor(client, 'coalescer')?.value as Partial<Coalescer> | undefined;
  if (own?.enabled === false) Reflect.deleteProperty(client, 'coalescer');
}
