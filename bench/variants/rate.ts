import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { LatencyRecorder } from './latency.js';

const STEP_MS = 1;
/** So that a client that cannot keep up does not make the run endless. */
const MOST_UNANSWERED = 200_000;

/**
 * An open loop: each millisecond its share of commands falls due, whether or not the ones before were answered. A
 * command's time counts from the moment at which it was due, so what a stalled process could not even issue is in the
 * percentiles (no coordinated omission).
 */
export async function atRate(
  send: (index: number) => Promise<unknown>,
  perSecond: number,
  keyCount: number,
  until: number,
  latency: LatencyRecorder | undefined,
): Promise<number> {
  const start = performance.now();
  const perStep = (perSecond * STEP_MS) / 1000;
  let issued = 0;
  let answered = 0;
  let failure: unknown;
  for (let step = 1; ; step += 1) {
    const due = start + step * STEP_MS;
    if (due >= until || issued - answered > MOST_UNANSWERED) break;
    // Steps that are late already are made up for at once.
    if (performance.now() < due) await sleep(due - performance.now());
    // Timers may be a little early.
    while (performance.now() < due) await nextTurn();
    for (const target = Math.round(step * perStep); issued < target; issued += 1) {
      send(issued % keyCount).then(
        () => {
          answered += 1;
          latency?.record(due);
        },
        (error: unknown) => {
          answered += 1;
          failure ??= error;
        },
      );
    }
  }
  while (answered < issued) await sleep(1);
  if (failure !== undefined) throw failure;
  return issued;
}
