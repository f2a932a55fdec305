import { setTimeout as sleep } from 'node:timers/promises';
import { exactly, medianAt, type Panel, published } from '../panel.js';
import type { Experiment } from './experiment.js';
import { cellsOf, type Grid, panelOf, ratio, say } from './grid.js';
import type { Lab } from './lab.js';

const BATCHES = ['1', '10', '50', '100', '200'];
const CONNECTIONS = ['1', '2', '4', '8', '16'];
const MESSAGE_SIZES = { '250-byte messages': 250, '3-byte messages': 3 };
const BATCH_OF_CONNECTIONS = 100;
/** The time threshold of the producer. */
const WAIT_MS = 2;
const CRASH_BATCH = 100;

const PRODUCERS = Object.keys(MESSAGE_SIZES).map((size) => `producer, ${size}`);
const CONSUMERS = ['consumer, LPOP and BLPOP', 'reliable consumer, LMOVE and LREM'];

const producerPanel = {
  x: { title: 'messages a batch', values: BATCHES },
  y: { title: 'messages a second' },
  chart: 'line' as const,
};

async function batches(lab: Lab): Promise<Panel[]> {
  const plain = await lab.arm('plain');
  const byBatch = new Map(
    await Promise.all(
      BATCHES.map(async (batch) => {
        const coalesce = { maxBatchSize: Number(batch), maxFlushDelay: WAIT_MS };
        return [batch, await lab.arm('coalesced', { coalesce })] as const;
      }),
    ),
  );
  const grid: Grid = {
    xs: lab.some(BATCHES),
    series: ['plain producer, 250-byte messages', ...PRODUCERS, ...CONSUMERS],
    run: (series, x) => {
      const batch = Number(x);
      const arm = series.startsWith('plain') ? plain : byBatch.get(x)!;
      const { seconds } = lab;
      const bytes = series.includes('3-byte') ? 3 : 250;
      if (series.includes('producer')) {
        return () => arm.task('produce', { connections: 1, sources: batch, bytes, seconds });
      }
      const name = series.startsWith('reliable') ? 'consumeReliably' : 'consume';
      const messages = lab.count(batch === 1 ? 4000 : 40_000, 400);
      return () => arm.task(name, { messages, bytes, batch });
    },
  };
  const readings = await lab.measure(cellsOf(grid));
  const idle = await idleConsumers(lab);
  await lab.closeArms();
  return [
    panelOf(grid, readings, 'perSecond', {
      id: 'batches',
      title: 'Messages a second by batch size, one connection',
      x: 'messages a batch',
      y: { title: 'messages a second' },
      chart: 'line',
    }),
    idle,
  ];
}

async function idleConsumers(lab: Lab): Promise<Panel> {
  const arm = await lab.arm('coalesced');
  const grid: Grid = {
    xs: ['N − 1 LPOPs and a BLPOP', 'N LPOPs'],
    series: ['N = 100'],
    run: (_, x) => () =>
      arm.task('idleConsumer', { batch: 100, seconds: lab.seconds, wait: x === 'N LPOPs' ? 'LPOP' : 'BLPOP' }),
  };
  const readings = await lab.measure(cellsOf(grid), { warmUp: false });
  return panelOf(grid, readings, 'perSecond', {
    id: 'idle',
    title: 'Commands a second of a consumer whose queue is empty',
    x: 'the batch',
    y: { title: 'commands a second' },
    chart: 'none',
  });
}

async function connections(lab: Lab): Promise<Panel> {
  const coalesce = { maxBatchSize: BATCH_OF_CONNECTIONS, maxFlushDelay: WAIT_MS };
  const [plain, coalesced] = [await lab.arm('plain'), await lab.arm('coalesced', { coalesce })];
  const grid: Grid = {
    xs: lab.some(CONNECTIONS),
    series: ['plain', 'coalesced'],
    run: (series, x) => () =>
      (series === 'plain' ? plain : coalesced).task('produce', {
        connections: Number(x),
        sources: BATCH_OF_CONNECTIONS,
        bytes: 250,
        seconds: lab.seconds,
      }),
  };
  const readings = await lab.measure(cellsOf(grid));
  await lab.closeArms();
  return panelOf(grid, readings, 'perSecond', {
    id: 'connections',
    title: 'Messages a second by connections of one process, batches of 100, 250 bytes',
    x: 'connections',
    y: { title: 'messages a second' },
    chart: 'line',
  });
}

/** One await at a time, far apart: what the time threshold must not make slow. */
async function trickle(lab: Lab): Promise<Panel> {
  const coalesce = { maxBatchSize: BATCH_OF_CONNECTIONS, maxFlushDelay: WAIT_MS };
  const arms = { plain: await lab.arm('plain'), coalesced: await lab.arm('coalesced', { coalesce }) };
  const grid: Grid = {
    xs: ['one message at a time'],
    series: ['plain', 'coalesced'],
    run: (series) => () => arms[series as keyof typeof arms].task('bystander', { seconds: lab.seconds }),
  };
  const readings = await lab.measure(cellsOf(grid));
  await lab.closeArms();
  return panelOf(grid, readings, 'p50Ms', {
    id: 'trickle',
    title: 'A trickle: median time of a command when one falls due each millisecond',
    x: 'load',
    y: { title: 'milliseconds' },
    chart: 'none',
  });
}

/** Kills a consumer in the middle of a batch, lets a second one finish, and counts. */
async function crash(lab: Lab, variant: 'simple' | 'reliable'): Promise<number> {
  const { admin, prefix } = lab.server;
  const messages = Array.from({ length: lab.count(2000, 500) }, (_, index) => `message ${index}`);
  await admin.rpush(`${prefix}queue`, ...messages);
  const options = { variant, batch: CRASH_BATCH };
  // Slow enough to be caught in mid-batch, and not at its end.

  const victim = await lab.arm('coalesced');
  lab.forget(victim);
  const died = victim.task('work', { ...options, handlingMs: 1 }).catch(() => 'killed');
  // Half of a batch after some whole ones.
  while ((await admin.scard(`${prefix}done`)) < CRASH_BATCH * 1.5) await sleep(1);
  victim.kill();
  if ((await died) !== 'killed') throw new Error('expected the consumer to be killed at work, it had finished');

  const second = await lab.arm('coalesced');
  await second.task('work', { ...options, handlingMs: 0 });
  const done = await admin.scard(`${prefix}done`);
  const left = await admin.llen(`${prefix}processing`);
  await admin.unlink(`${prefix}queue`, `${prefix}done`, `${prefix}processing`);
  await lab.closeArms();
  if (left > 0) throw new Error(`expected the processing list to be empty at the end, it holds ${left} messages`);
  return messages.length - done;
}

async function crashes(lab: Lab): Promise<Panel> {
  const rounds = lab.count(3, 1);
  const lost: Record<'simple' | 'reliable', number> = { simple: 0, reliable: 0 };
  for (let round = 0; round < rounds; round += 1) {
    for (const variant of ['simple', 'reliable'] as const) lost[variant] += await crash(lab, variant);
  }
  if (lost.reliable > 0)
    throw new Error(`expected the reliable consumer to lose nothing, it lost ${lost.reliable} messages`);
  return {
    id: 'crash',
    title: `Messages lost when the consumer is killed in mid-batch, ${rounds} times`,
    chart: 'none',
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
  publishedPanels: [
    published({
      ...producerPanel,
      id: 'published-batches',
      title: 'Published: by batch size, one connection',
      series: [{ name: 'Go, 250-byte messages', values: [11_000, 51_000, 130_000, 220_000, 220_000] }],
    }),
    published({
      id: 'published-connections',
      title: 'Published: by connections, batches of 100',
      chart: 'line',
      x: { title: 'connections', values: CONNECTIONS },
      y: { title: 'messages a second' },
      series: [{ name: 'Go, 250-byte messages', values: [220_000, 275_000, 340_000, 410_000, 480_000] }],
    }),
  ],
  async run(lab) {
    return [...(await batches(lab)), await connections(lab), await trickle(lab), await crashes(lab)];
  },
  findings(panels) {
    const coalesced = (batch: string) => medianAt(panels, 'batches', PRODUCERS[0]!, batch);
    const plain = (batch: string) => medianAt(panels, 'batches', 'plain producer, 250-byte messages', batch);
    const lost = (consumer: string) => say(medianAt(panels, 'crash', 'lost', consumer));
    const reliable = medianAt(panels, 'batches', CONSUMERS[1]!, '100');
    const simple = medianAt(panels, 'batches', CONSUMERS[0]!, '100');
    return [
      'Different from the published experiment: the messages of a batch come from as many sources that each await ' +
        'their own RPUSH, not from one loop that fills a pipeline; Node on one thread, not Go; another machine, whose ' +
        'two cores client and server share. Compare the shape, not the height.',
      `Batch 1 is one source, and nothing can be merged: ${say(coalesced('1'))} messages a second, plain ioredis ` +
        `${say(plain('1'))}. At 100 it is ${say(coalesced('100'))} against ${say(plain('100'))} ` +
        `(${ratio(coalesced('100'), plain('100'))}).`,
      `More connections from one process: with plain ioredis ${say(medianAt(panels, 'connections', 'plain', '1'))} on ` +
        `one and ${say(medianAt(panels, 'connections', 'plain', '16'))} on 16; coalesced ` +
        `${say(medianAt(panels, 'connections', 'coalesced', '1'))} and ` +
        `${say(medianAt(panels, 'connections', 'coalesced', '16'))}. Node has one thread for all of them: once ` +
        'commands are merged, more connections split the batches.',
      `A lone message does not wait for the time threshold (${WAIT_MS} ms): the median is ` +
        `${say(medianAt(panels, 'trickle', 'coalesced', 'one message at a time'))} ms, plain ` +
        `${say(medianAt(panels, 'trickle', 'plain', 'one message at a time'))} ms.`,
      `The consumer that moves messages to a list of its own and removes them when they are done with takes ` +
        `${say(reliable)} messages a second at batches of 100, the simple one ${say(simple)}: an LREM each is its ` +
        `price. Killed in mid-batch it lost ${lost(CONSUMERS[1]!)}, the simple one ${lost(CONSUMERS[0]!)}. What was half ` +
        'done is handled again: at least once, not exactly once.',
    ];
  },
};
