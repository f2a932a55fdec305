import { setTimeout as sleep } from 'node:timers/promises';
import { exactly, type Figure, medianAt, published, ratio, say } from '../report/figure.js';
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
const CONSUMERS = ['consumer, LPOP and BLPOP', 'reliable consumer, LMOVE and LREM'];
const ALONE = 'one message at a time';

const openProducer = (harness: Harness, batch: number) =>
  harness.open('coalesced', { options: { coalesce: { maxBatchSize: batch, maxFlushDelay: WAIT_MS } } });

async function batches(harness: Harness): Promise<Figure[]> {
  const { seconds } = harness;
  const plain = await harness.open('plain');
  const byBatch = await harness.openEach(BATCHES, (batch) => openProducer(harness, Number(batch)));
  const readings = await harness.measure({
    x: ['messages per batch', harness.some(BATCHES)],
    series: [PLAIN, ...PRODUCERS, ...CONSUMERS],
    run: (series, x) => {
      const batch = Number(x);
      const variant = series === PLAIN ? plain : byBatch.get(x)!;
      const bytes = series.includes('3-byte') ? 3 : 250;
      if (!CONSUMERS.includes(series)) {
        return () => variant.task('produce', { connections: 1, sources: batch, bytes, seconds });
      }
      const name = series === CONSUMERS[1] ? 'consumeReliably' : 'consume';
      const messages = harness.count(batch === 1 ? 4000 : 40_000, 400);
      return () => variant.task(name, { messages, bytes, batch });
    },
  });
  const consumer = await harness.open('coalesced');
  const idle = await harness.measure(
    {
      x: ['the batch', ['N − 1 LPOPs and a BLPOP', 'N LPOPs']],
      series: ['N = 100'],
      run: (_, x) => () =>
        consumer.task('idleConsumer', { batch: 100, seconds, wait: x === 'N LPOPs' ? 'LPOP' : 'BLPOP' }),
    },
    { warmUp: false },
  );
  await harness.closeVariants();
  return [
    readings.figure('batches', 'Messages per second by batch size, one connection', 'perSecond', 'messages/s', {
      chart: 'line',
    }),
    idle.figure('idle', 'Commands per second of a consumer whose queue is empty', 'perSecond', 'commands/s'),
  ];
}

async function connections(harness: Harness): Promise<Figure[]> {
  const variants = {
    plain: await harness.open('plain'),
    coalesced: await openProducer(harness, BATCH_OF_CONNECTIONS),
  };
  const variantOf = (series: string) => variants[series as keyof typeof variants];
  const series = Object.keys(variants);
  const { seconds } = harness;
  const options = { sources: BATCH_OF_CONNECTIONS, bytes: 250, seconds };
  const readings = await harness.measure({
    x: ['connections', harness.some(CONNECTIONS)],
    series,
    run: (name, x) => () => variantOf(name).task('produce', { ...options, connections: Number(x) }),
  });
  // One await at a time, far apart: what the time threshold must not make slow.
  const trickle = await harness.measure({
    x: ['load', [ALONE]],
    series,
    run: (name) => () => variantOf(name).task('bystander', { seconds }),
  });
  await harness.closeVariants();
  return [
    readings.figure(
      'connections',
      'Messages per second by connections of one process, batches of 100, 250 bytes',
      'perSecond',
      'messages/s',
    ),
    trickle.figure('trickle', 'Median time of a command when one falls due each millisecond', 'p50Ms', 'ms'),
  ];
}

/** Kills a consumer in the middle of a batch, lets a second one finish, and counts. */
async function crash(harness: Harness, consumer: 'simple' | 'reliable'): Promise<number> {
  const { admin, prefix } = harness.server;
  const messages = Array.from({ length: harness.count(2000, 500) }, (_, index) => `message ${index}`);
  await admin.rpush(`${prefix}queue`, ...messages);
  const options = { consumer, batch: CRASH_BATCH };

  const victim = await harness.open('coalesced');
  harness.forget(victim);
  // Slow enough to be caught in mid-batch, and not at its end.
  const died = victim.task('work', { ...options, handlingMs: 1 }).catch(() => 'killed');
  // Half of a batch after some whole ones.
  while ((await admin.scard(`${prefix}done`)) < CRASH_BATCH * 1.5) await sleep(1);
  victim.kill();
  if ((await died) !== 'killed') throw new Error('expected the consumer to be killed at work, it had finished');

  const second = await harness.open('coalesced');
  await second.task('work', { ...options, handlingMs: 0 });
  const done = await admin.scard(`${prefix}done`);
  const left = await admin.llen(`${prefix}processing`);
  await admin.unlink(`${prefix}queue`, `${prefix}done`, `${prefix}processing`);
  await harness.closeVariants();
  if (left > 0) throw new Error(`expected the processing list to be empty at the end, it holds ${left} messages`);
  return messages.length - done;
}

async function crashes(harness: Harness): Promise<Figure> {
  const rounds = harness.count(3, 1);
  const lost = { simple: 0, reliable: 0 };
  for (let round = 0; round < rounds; round += 1) {
    for (const consumer of ['simple', 'reliable'] as const) lost[consumer] += await crash(harness, consumer);
  }
  if (lost.reliable > 0) throw new Error(`expected the reliable consumer to lose nothing, it lost ${lost.reliable}`);
  return {
    id: 'crash',
    title: `Messages lost when the consumer is killed in mid-batch, ${rounds} times`,
    x: { title: 'consumer', values: CONSUMERS },
    y: { title: 'messages lost' },
    series: [{ name: 'lost', values: [exactly(lost.simple), exactly(lost.reliable)] }],
  };
}

export const queue: Experiment = {
  id: 'experiment-queue',
  title: 'Pipelining a list as a queue',
  steps: 160,
  published:
    'Go, 250-byte messages, one connection: batch 1 → 11k/s, 10 → 51k, 50 → 130k, 100 → 220k, 200 → 220k; batch 100 ' +
    'with 2, 4, 8, 16 connections → 275k, 340k, 410k, 480k. The producer flushes at a count or after a time; the ' +
    'consumer sends N − 1 LPOPs and a final BLPOP. The warning that comes with it: messages popped in bulk are lost if ' +
    'the consumer dies.',
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
  findings(figures) {
    const at = (series: string, batch: string) => medianAt(figures, 'batches', series, batch);
    const [coalesced, plain] = [PRODUCERS[0]!, PLAIN];
    const byConnections = (series: string, count: string) => say(medianAt(figures, 'connections', series, count));
    const lost = (consumer: string) => say(medianAt(figures, 'crash', 'lost', consumer));
    const trickle = (series: string) => say(medianAt(figures, 'trickle', series, ALONE));
    return [
      'Different from the published experiment: the messages of a batch come from as many sources that each await ' +
        'their own RPUSH, not from one loop that fills a pipeline; Node on one thread, not Go; another machine, whose ' +
        'two cores client and server share. Compare the shape, not the height.',
      `Batch 1 is one source, and nothing can be merged: ${say(at(coalesced, '1'))} messages per second, plain ioredis ` +
        `${say(at(plain, '1'))}. At 100 it is ${say(at(coalesced, '100'))} against ${say(at(plain, '100'))} ` +
        `(${ratio(at(coalesced, '100'), at(plain, '100'))}).`,
      `More connections from one process: with plain ioredis ${byConnections('plain', '1')} on one and ` +
        `${byConnections('plain', '16')} on 16; coalesced ${byConnections('coalesced', '1')} and ` +
        `${byConnections('coalesced', '16')}. Node has one thread for all of them: once commands are merged, more ` +
        'connections split the batches.',
      `A lone message does not wait for the time threshold (${WAIT_MS} ms): the median is ${trickle('coalesced')} ms, ` +
        `plain ${trickle('plain')} ms.`,
      `The consumer that moves messages to a list of its own and removes them once they are handled takes ` +
        `${say(at(CONSUMERS[1]!, '100'))} messages per second at batches of 100, the simple one ` +
        `${say(at(CONSUMERS[0]!, '100'))}: an LREM each is its price. Killed in mid-batch it lost ${lost(CONSUMERS[1]!)}, ` +
        `the simple one ${lost(CONSUMERS[0]!)}. What was half done is handled again: at least once, not exactly once.`,
    ];
  },
};
