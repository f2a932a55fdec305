import { nextTick, now, setImmediate } from './clock.js';

/**
 * The running turn of the event loop, for answers that need no I/O: how long it has lasted, and the time. Reading the
 * clock costs more than finding such an answer, so it is read once per callback of the loop, and again after every few
 * answers.
 */
let time = 0;
let inTurn = false;
let turnStartedAt = 0;
/** Callbacks of this turn in which answers were found. */
let callbacks = 0;
/** A callback is running in which an answer was found, or the promises that it has resolved. */
let inCallback = false;
let callbackStartedAt = 0;
let askedFor = 0;
let turnEnd: Promise<void> | undefined;

/** Within one callback the clock is read once per this many answers. */
const ASKED_PER_READING = 16;
/** Milliseconds after which a callback should end that awaits one answer after the other without I/O. */
const LATE_CALLBACK = 1;
/** The same for a turn: its callbacks may be requests of many clients, or one loop that continues by next ticks. */
const LATE_TURN = 10;
/**
 * Callbacks of one turn whose answers come at once. Those of the others come together, when all requests of the turn have
 * been read: a service then handles its answers, and writes its responses, one after the other.
 */
const AT_ONCE = 4;

function endTurn(): void {
  inTurn = false;
  callbacks = 0;
}

function endCallback(): void {
  inCallback = false;
}

/** Milliseconds of a monotonic clock, read in this callback. */
export function turnTime(): number {
  if (inCallback) {
    askedFor += 1;
    if (askedFor % ASKED_PER_READING === 0) time = now();
    return time;
  }
  time = now();
  inCallback = true;
  callbackStartedAt = time;
  callbacks += 1;
  nextTick(endCallback);
  if (!inTurn) {
    inTurn = true;
    turnStartedAt = time;
    setImmediate(endTurn);
  }
  return time;
}

/**
 * Whether answers should wait for the end of the turn. Code that awaits one answer after the other without I/O never
 * lets the turn end, so timers and sockets never run.
 */
export function answersWait(): boolean {
  return time - callbackStartedAt > LATE_CALLBACK || time - turnStartedAt > LATE_TURN || callbacks > AT_ONCE;
}

/** A promise that resolves at the end of this turn of the event loop, one for all who ask in the same turn. */
export function endOfTurn(): Promise<void> {
  turnEnd ??= new Promise((resolve) => {
    setImmediate(() => {
      turnEnd = undefined;
      resolve();
    });
  });
  return turnEnd;
}
