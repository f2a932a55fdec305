import { now, setImmediate } from './clock.js';

/**
 * The running turn of the event loop, for answers that need no I/O. Reading the clock costs more than finding such an
 * answer, so it is read once a turn, and again now and then in a long one.
 */
let open = false;
let startedAt = 0;
let time = 0;
let askedFor = 0;

/** So often is the clock read within one turn. */
const ASKED_PER_READING = 16;
/** Milliseconds in which a turn of answers without I/O should have come to its end. */
const LATE_AFTER = 1;

function end(): void {
  open = false;
}

/** Milliseconds of a monotonic clock, read in this turn of the event loop. */
export function turnTime(): number {
  if (!open) {
    open = true;
    setImmediate(end);
    startedAt = now();
    time = startedAt;
    return time;
  }
  askedFor += 1;
  if (askedFor % ASKED_PER_READING === 0) time = now();
  return time;
}

/**
 * Whether the event loop waits for this turn to end. Code that awaits answers which need no I/O, one after the other,
 * never lets it: neither timers nor sockets get their turn.
 */
export function turnIsLate(): boolean {
  return time - startedAt > LATE_AFTER;
}

/** A promise that resolves when the event loop has gone on. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
