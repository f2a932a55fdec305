/**
 * Node's clocks, captured when this package was loaded. Users' fake timers replace the globals; a flush that was
 * scheduled on a fake clock would not run until the test advances it. The exceptions do what the host does with the
 * present globals: `commandTimeout` (`deadlines.ts`), and errors thrown by callbacks (`as-callback.ts`).
 */
export const { clearTimeout, setImmediate, setTimeout } = globalThis;
export const { nextTick } = process;
/** Milliseconds of a monotonic clock, with fractions. */
export const now = performance.now.bind(performance);
