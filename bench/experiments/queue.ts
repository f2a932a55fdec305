import { setTimeout as sleep } from 'node:timers/promises';
import { exactly, type Figure, figureOf, published } from '../report/figure.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';

const BATCHES = ['1', '10', '50', '100', '200'];
const CONNECTIONS = ['1', '2', '4', '8', '16'];
const BATCH_OF_CONNECTIONS = 100;
/** The time threshold of the producer. */
const WAIT_MS = 2;
const CRASH_BATCH = 100;

const PLAIN = 'plain producer, 250-byte messages';
const PRODUCERS = ['producer, 250-byte messages', 'producer, 3-byte messages'];
const CONSUMERS = ['consumer, LPOP and BLPOP', 'reliable consumer, LMOVE and LREM'] as const;

const plain = { variant: 'plain' } as const;
const producer = (batch: number) =>
  ({ variant: 'coalesced', options: { coalesce: { maxBatchSize: batch, maxFlushDelay: WAIT_MS } } }) as const;

async function batches(harness: Harness): Promise<Figure[]> {
  const { seconds } = harness;
  const readings = await harness.measureClients({
    x: ['messages per batch', harness.some(BATCHES)],
    series: [PLAIN, ...PRODUCERS, ...CONSUMERS],
    client: (series, batch) => (series === PLAIN ? plain : producer(Number(batch))),
    run: (client, series, x) => {
      const batch = Number(x);
      const bytes = series.includes('3-byte') ? 3 : 250;
      if (series.includes('producer')) {
        return client.task('produce', { connections: 1, sources: batch, bytes, seconds });
      }
      const messages = harness.count(batch === 1 ? 4000 : 40_000, 400);
      return client.task('consume', { messages, bytes, batch, reliable: series === CONSUMERS[1] });
    },
  });
  const idle = await harness.measureClients({
    x: ['the batch', ['N − 1 LPOPs and a BLPOP', 'N LPOPs']],
    series: ['N = 100'],
    warmUp: false,
    client: () => ({ variant: 'coalesced' }),
    run: (client, _, x) => client.task('idleConsumer', { batch: 100, seconds, waits: x !== 'N LPOPs' }),
  });
  const byBatch = 'Messages per second by batch size, one connection';
  return [
    readings.figure('batches', byBatch, 'perSecond', 'messages/s', { chart: 'line' }),
    idle.figure('idle', 'Commands per second of a consumer whose queue is empty', 'perSecond', 'commands/s'),
  ];
}

async function connections(harness: Harness): Promise<Figure[]> {
  const { seconds } = harness;
  const variants = {
    series: ['plain', 'coalesced'],
    client: (series: string) => (series === 'plain' ? plain : producer(BATCH_OF_CONNECTIONS)),
  };
  const load = { sources: BATCH_OF_CONNECTIONS, bytes: 250, seconds };
  const readings = await harness.measureClients({
    x: ['connections', harness.some(CONNECTIONS)],
    ...variants,
    run: (client, _, x) => client.task('produce', { ...load, connections: Number(x) }),
  });
  // One await at a time, far apart: what the time threshold must not make slow.
  const lone = { perSecond: 1000, commands: 1, data: { keys: 1, valueBytes: 100 }, seconds };
  const trickle = await harness.measureClients({
    x: ['load', ['one message at a time']],
    ...variants,
    run: (client) => client.task('fixedRate', lone),
  });
  const byConnections = 'Messages per second by connections of one process, batches of 100, 250 bytes';
  return [
    readings.figure('connections', byConnections, 'perSecond', 'messages/s'),
    trickle.figure('trickle', 'Median time of a command when one falls due each millisecond', 'p50Ms', 'ms'),
  ];
}

/** Kills a consumer in the middle of a batch, lets a second one finish, and counts what was lost. */
async function crash(harness: Harness, reliable: boolean): Promise<number> {
  const { admin, prefix } = harness.server;
  const messages = Array.from({ length: harness.count(2000, 500) }, (_, index) => `message ${index}`);
  await admin.rpush(`${prefix}queue`, ...messages);

  const victim = await harness.openProcess({ variant: 'coalesced' });
  // Slow enough to be caught in mid-batch, and not at its end.
  const died = victim.task('work', { reliable, batch: CRASH_BATCH, handlingMs: 1 }).catch(() => 'killed');
  // Half of a batch after some whole ones.
  while ((await admin.scard(`${prefix}done`)) < CRASH_BATCH * 1.5) await sleep(1);
  victim.kill();
  if ((await died) !== 'killed') throw new Error('expected the consumer to be killed at work, it had finished');

  const second = await harness.open({ variant: 'coalesced' });
  await second.task('work', { reliable, batch: CRASH_BATCH, handlingMs: 0 });
  const done = await admin.scard(`${prefix}done`);
  const left = await admin.llen(`${prefix}processing`);
  await admin.unlink(`${prefix}queue`, `${prefix}done`, `${prefix}processing`);
  await harness.closeVariants();
  if (left > 0) throw new Error(`expected the processing list to be empty at the end, it holds ${left} messages`);
  return messages.length - done;
}

async function crashes(harness: Harness): Promise<Figure> {
  const rounds = harness.count(3, 1);
  let [simple, reliable] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    simple += await crash(harness, false);
    reliable += await crash(harness, true);
  }
  if (reliable > 0) throw new Error(`expected the reliable consumer to lose nothing, it lost ${reliable}`);
  const title = `Messages lost when the consumer is killed in mid-batch, ${rounds} times`;
  const lost = { name: 'lost', values: [exactly(simple), exactly(reliable)] };
  return figureOf('crash', title, ['consumer', CONSUMERS], 'messages lost', [lost]);
}

export const queue: Experiment = {
  id: 'experiment-queue',
  title: 'Pipelining a list as a queue',
  steps: 160,
  publishedFigures: [
    published('batches', 'by batch size, one connection', ['messages per batch', BATCHES], 'messages/s', [
      'Go, 250-byte messages',
      [11_000, 51_000, 130_000, 220_000, 220_000],
    ]),
    published('connections', 'by connections, batches of 100', ['connections', CONNECTIONS], 'messages/s', [
      'Go, 250-byte messages',
      [220_000, 275_000, 340_000, 410_000, 480_000],
    ]),
  ],
  async run(harness) {
    return [...(await batches(harness)), ...(await connections(harness)), await crashes(harness)];
  },
};
