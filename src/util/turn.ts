import { now, setImmediate } from './clock.js';

/**
 * The running turn of the event loop, for answers that need no I/O. Reading the clock costs more than finding such an
 * answer, so it is read once per turn, and again after every few answers.
 */
let open = false;
let startedAt = 0;
let time = 0;
let askedFor = 0;

/** Within one turn the clock is read once per this many answers. */
const ASKED_PER_READING = 16;
/** Milliseconds after which a turn of answers without I/O should end. */
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
 * Whether this turn of the event loop has lasted too long. Code that awaits one answer without I/O after the other
 * never lets the turn end, so neither timers nor sockets get theirs.
 */
export function turnIsLate(): boolean {
  return time - startedAt > LATE_AFTER;
}

/** A promise that resolves in the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
