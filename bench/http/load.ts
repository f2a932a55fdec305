/** The process that makes the load, asked over IPC, one run at a time; it lives through a whole run, so that it warms up once. */
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import autocannon from 'autocannon';
import { answerParent } from '../suite/child.js';
import { LatencyRecorder } from '../variants/timing.js';
import type { LoadOrder, LoadResult } from './load-process.js';

const END_CHECK_MS = 20;
// A machine may sleep for a while: that is a long answer, not an error.
const TIMEOUT_S = 60;
const LONG_ENOUGH_S = 1;

/** Rejects unless every response was a 2xx. */
function run(order: LoadOrder): Promise<LoadResult> {
  return order.rate === undefined ? runAtOnce(order) : runAtRate(order, order.rate);
}

/**
 * Each request is due at its time, whatever became of the ones before, and its latency counts from then on. Autocannon's
 * rate would send a second's requests at its beginning.
 */
async function runAtRate({ origin, requests, connections, limit }: LoadOrder, rate: number): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const latency = new LatencyRecorder();
  const total = 'seconds' in limit ? Math.max(1, Math.round(limit.seconds * rate)) : limit.requests;
  const answers: Promise<void>[] = [];
  const start = performance.now();
  while (answers.length < total) {
    const due = Math.min(total, 1 + Math.floor(((performance.now() - start) * rate) / 1000));
    while (answers.length < due) {
      const dueAt = start + (answers.length * 1000) / rate;
      const { path, headers = {} } = requests[answers.length % requests.length]!;
      answers.push(answered(`${origin}${path}`, { agent, headers }).then(() => latency.add(performance.now() - dueAt)));
    }
    await sleep(1);
  }
  await Promise.all(answers);
  const seconds = (performance.now() - start) / 1000;
  agent.destroy();
  return { requests: total, seconds, latencyUs: latency.summary() };
}

function answered(url: string, options: { agent: Agent; headers: Readonly<Record<string, string>> }): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, options, (response) => {
      const { statusCode = 0 } = response;
      response.resume();
      response.on('error', reject);
      response.on('end', () => {
        if (statusCode >= 200 && statusCode < 300) resolve();
        else reject(new Error(`${url}: expected only 2xx answers, got ${statusCode}`));
      });
    }).on('error', reject);
  });
}

function runAtOnce(order: LoadOrder): Promise<LoadResult> {
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
          resolve({ requests: count, seconds: (last - start) / 1000, latencyUs: latency.summary() });
        }
      },
    );
    instance.on('response', (_client, _status, _bytes, milliseconds) => {
      last = performance.now();
      latency.add(milliseconds);
    });
  });
}

answerParent(run);
