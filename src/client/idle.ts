import type { Coalescer } from '../handle.js';
import { type CallOptions, DEFAULT_OPTIONS, type ResolvedOptions } from '../options.js';
import { type CoalescerStats, Stats } from '../stats.js';
import { viewOf } from './view.js';

/**
 * The handle of a client that stays plain: code that uses the handle still works, and sees that nothing was coalesced.
 */
class IdleCoalescer implements Coalescer {
  readonly enabled = false;
  readonly cache = undefined;

  constructor(
    readonly client: object,
    readonly options: ResolvedOptions,
  ) {}

  stats(): CoalescerStats {
    return new Stats().snapshot(0, 0);
  }

  withOptions(options: CallOptions): object {
    return viewOf(this.client, options);
  }

  flush(): void {}

  detach(): void {}
}

/** Gives a client that stays plain its handle, unless it has one. */
export function addIdleHandle(client: object, options: ResolvedOptions): void {
  const { coalescer } = client as { coalescer?: Coalescer };
  if (coalescer === undefined) keepHandle(client, new IdleCoalescer(client, options));
}

/** Keeps a handle of a plain client as its own property. A frozen client keeps none. */
export function keepHandle(client: object, handle: Coalescer): void {
  Reflect.defineProperty(client, 'coalescer', { value: handle, configurable: true });
}

/** Removes the handle of a plain client that is about to be coalesced. */
export function removeIdleHandle(client: object): void {
  if (idleHandleOf(client) !== undefined) Reflect.deleteProperty(client, 'coalescer');
}

/** The options that a client had before `detach()`; the defaults if it was not coalesced. */
export function lastOptions(client: object): ResolvedOptions {
  return idleHandleOf(client)?.options ?? DEFAULT_OPTIONS;
}

/** The handle of a plain client, whichever copy of this package made it. */
function idleHandleOf(client: object): Coalescer | undefined {
  const own = Object.getOwnPropertyDescriptor(client, 'coalescer')?.value as Coalescer | undefined;
  return own?.enabled === false ? own : undefined;
}
