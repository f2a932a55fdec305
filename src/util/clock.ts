/**
 * Node's clocks, captured when this package is loaded: a flush scheduled on a fake clock would not run until the test
 * advances that. They come from Node's modules, because test environments and other run times replace or lack the
 * globals. The exceptions use the current globals, like the host: `commandTimeout` (`deadlines.ts`), `socketTimeout`
 * (`socket-timeout.ts`), the timeout of a view (`signals.ts`), and errors thrown by callbacks (`promises.ts`).
 */
import { performance } from 'node:perf_hooks';
import * as timers from 'node:timers';

/** The clock that @sinonjs/fake-timers (used by Jest, sinon and Vitest) attaches to each of its fakes. */
interface FakeClock {
  /** The functions of `node:timers` that it has replaced. */
  readonly timersModuleMethods?: readonly { readonly methodName: string; readonly original: unknown }[];
  /** Other functions that it has replaced. */
  readonly [original: `_${string}`]: unknown;
}

/** The real function. Fake timers also replace those of Node's modules, and keep the originals. */
function realTimer<T extends object>(name: string, present: T): T {
  const { clock } = present as { clock?: FakeClock };
  const inModule = clock?.timersModuleMethods?.find(({ methodName }) => methodName === name);
  return ((inModule?.original ?? clock?.[`_${name}`]) as T | undefined) ?? present;
}

export const setImmediate = realTimer('setImmediate', timers.setImmediate);
export const setTimeout = realTimer('setTimeout', timers.setTimeout);
export const clearTimeout = realTimer('clearTimeout', timers.clearTimeout);
export const nextTick = realTimer('nextTick', process.nextTick);
/**
 * Fake timers define `now` on the object. The real one is on its prototype, except in Bun, where it is on the object.
 */
const { now: elapsed = performance.now } = Object.getPrototypeOf(performance) as Partial<typeof performance>;
/** A monotonic clock in milliseconds, with fractions. */
export const now: () => number = elapsed.bind(performance);
