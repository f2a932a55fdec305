/**
 * The process that makes the load, asked over IPC, one run at a time; it lives through a whole run, so that it warms up
 * once.
 */
import { answerParent } from '../suite/child.js';
import { LatencyRecorder } from '../variants/timing.js';
import { Arrivals } from './arrivals.js';
import type { ArrivalsOrder, LoadOrder, LoadResult } from './load-process.js';

const END_CHECK_MS = 20;
// A machine may sleep for a while: that is a long answer, not an error.
const TIMEOUT_S = 60;
const LONG_ENOUGH_S = 1;

/** Rejects unless every response was a 2xx. */
async function run(order: LoadOrder): Promise<LoadResult> {
  const { default: autocannon } = await import('autocannon');
  const { origin, requests, connections, limit } = order;
  // Autocannon's own histogram rounds to whole milliseconds.
  const latency = new LatencyRecorder();
  return new Promise((resolve, reject) => {
    const start = performance.now();
    let last = start;
    const instance = autocannon(
      {
        url: origin,
        connections,
        requests: requests.map(({ path, headers = {} }) => ({ path, headers })),
        sampleInt: END_CHECK_MS,
        timeout: TIMEOUT_S,
        ...('seconds' in limit ? { duration: limit.seconds } : { amount: limit.requests }),
      },
      (failure: unknown, { errors, non2xx }) => {
        const { count } = latency;
        if (failure) {
          reject(failure);
        } else if (count + errors + non2xx === 0 && 'seconds' in limit && limit.seconds < LONG_ENOUGH_S) {
          // On a busy machine, a short run may end before the first answer.
          resolve(run({ ...order, limit: { seconds: LONG_ENOUGH_S } }));
        } else if (count === 0 || errors + non2xx > 0) {
          const got = `${count} answers, ${non2xx} of them others, ${errors} errors`;
          reject(new Error(`${origin}${requests[0]?.path}: expected only 2xx answers, got ${got}`));
        } else {
          resolve({ requests: count, seconds: (last - start) / 1000, ...latency.summary() });
        }
      },
    );
    instance.on('response', (_client, _status, _bytes, milliseconds) => {
      last = performance.now();
      latency.add(milliseconds);
    });
  });
}

let arrivals: Promise<Arrivals> | undefined;

/** All orders of a process are for one service. */
async function runArrivals({ port, connections, paths, seconds, rate }: ArrivalsOrder): Promise<LoadResult> {
  arrivals ??= Arrivals.open(port, connections, paths);
  return (await arrivals).run(seconds, rate);
}

answerParent((order: LoadOrder | ArrivalsOrder) => ('port' in order ? runArrivals(order) : run(order)));
