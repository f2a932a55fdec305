/**
 * Node's clocks, captured when this package was loaded: from Node's modules, since test environments and other run
 * times replace or lack the globals. A flush that was scheduled on a fake clock would not run until the test advances
 * it. The exceptions do what the host does with the present globals: `commandTimeout` (`deadlines.ts`), `socketTimeout`
 * (`socket-timeout.ts`), the timeout of a view (`signals.ts`), and errors thrown by callbacks (`promises.ts`).
 */
import { performance } from 'node:perf_hooks';
import * as timers from 'node:timers';

/** The clock that @sinonjs/fake-timers (of Jest, sinon and Vitest) hangs on each of its fakes. */
interface FakeClock {
  /** The functions of `node:timers` that it has replaced. */
  readonly timersModuleMethods?: readonly { readonly methodName: string; readonly original: unknown }[];
  /** Functions that it has replaced elsewhere. */
  readonly [original: `_${string}`]: unknown;
}

/** The real function: fake timers replace those of Node's modules too, and know what they have replaced. */
function real<T extends object>(name: string, present: T): T {
  const { clock } = present as { clock?: FakeClock };
  const inModule = clock?.timersModuleMethods?.find(({ methodName }) => methodName === name);
  return ((inModule?.original ?? clock?.[`_${name}`]) as T | undefined) ?? present;
}

export const setImmediate = real('setImmediate', timers.setImmediate);
export const setTimeout = real('setTimeout', timers.setTimeout);
export const clearTimeout = real('clearTimeout', timers.clearTimeout);
export const nextTick = real('nextTick', process.nextTick);
/** Fake timers put a `now` on the object; the real one is on its prototype, but on Bun, where the object has it. */
const { now: elapsed = performance.now } = Object.getPrototypeOf(performance) as Partial<typeof performance>;
/** Milliseconds of a monotonic clock, with fractions. */
export const now: () => number = elapsed.bind(performance);
