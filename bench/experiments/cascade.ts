import { type Figure, figureOf, published } from '../report/figure.js';
import type { VariantProcess } from '../suite/variant-process.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';
import type { Readings } from './readings.js';
import { straced } from './strace.js';

const CALLERS = 200;
const DATA = { keys: 1000, valueBytes: 100 };
const VARIANTS = ['plain', 'auto', 'coalesced'] as const;
/** The callers that are shown. */
const SHOWN = Array.from({ length: 21 }, (_, index) => Math.min(index * 10, CALLERS - 1));
const REQUESTS_PER_SECOND = 800;
const COMMANDS_PER_REQUEST = 20;
const BURST = `${CALLERS} GETs at once`;

async function cascades(harness: Harness): Promise<Figure[]> {
  await harness.server.seed({ kind: 'burst', operation: 'get', size: 1, data: DATA });
  const axes = { x: ['connections', harness.some(['1', '2', '4'])], series: VARIANTS } as const;
  const untimed = { ...axes, rounds: 1, warmUp: false };
  const burst = (client: VariantProcess, connections: string, repetitions: number, counted = false) =>
    client.task('cascade', { callers: CALLERS, connections: Number(connections), repetitions, counted });
  const timed = await harness.measureClients({
    ...axes,
    run: (client, _, connections) => burst(client, connections, harness.count(200, 3)),
  });
  const repetitions = harness.count(100, 5);
  const traced = await harness.measureClients({
    ...untimed,
    run: async (client, _, connections) => {
      const calls = await straced(client.pid, () => burst(client, connections, repetitions));
      return { calls: calls / repetitions };
    },
  });
  const counted = await harness.measureClients({
    ...untimed,
    run: (client, _, connections) => burst(client, connections, harness.count(20, 3), true),
  });
  return [
    callers(timed),
    timed.figure('first', `${BURST}: when the first caller has its reply`, 'first', 'ms'),
    timed.figure('first-p99', `${BURST}: the same, p99`, 'firstP99', 'ms'),
    timed.figure('last', `${BURST}: when the last caller has its reply`, 'last', 'ms'),
    timed.figure('last-p99', `${BURST}: the same, p99`, 'lastP99', 'ms'),
    timed.figure('loop-delay', 'Event-loop delay meanwhile, p99', 'loopDelayMs', 'ms'),
    counted.figure('writes', `Socket writes for ${CALLERS} GETs`, 'writes', 'writes'),
    counted.figure('reads', `\`data\` events for ${CALLERS} GETs`, 'reads', 'events'),
    ...systemCalls(harness, traced),
  ];
}

/** Response time by the caller's place in the burst, over one connection. */
function callers(timed: Readings): Figure {
  const series = VARIANTS.map((name) => {
    const medians = timed.listAt(name, '1', 'medians');
    return { name, values: SHOWN.map((index) => medians[index] ?? null) };
  });
  const title = `${BURST} on one connection: response time of each caller, first to last`;
  return figureOf('callers', title, ['caller', SHOWN.map((index) => `${index + 1}`)], 'ms', series, { chart: 'line' });
}

/** System calls of the client's process for each burst, as strace counts them; nothing where it could not. */
function systemCalls(harness: Harness, traced: Readings): Figure[] {
  const title = `System calls for ${CALLERS} GETs, of all kinds and threads`;
  const figure = traced.figure('system-calls', title, 'calls', 'calls');
  if (figure.series.some(({ values }) => values.some((value) => value !== null))) return [figure];
  harness.notes.add('strace is not on PATH, or may not look at another process: system calls were not counted.');
  return [];
}

async function service(harness: Harness): Promise<Figure> {
  const load = { perSecond: REQUESTS_PER_SECOND, commands: COMMANDS_PER_REQUEST, seconds: harness.count(2, 0.05) };
  const readings = await harness.measureClients({
    x: ['', ['a service']],
    series: VARIANTS,
    warmUp: false,
    run: (client) => client.task('fixedRate', { ...load, data: DATA }),
  });
  const title = `A service at ${REQUESTS_PER_SECOND} requests per second, ${COMMANDS_PER_REQUEST} concurrent GETs each`;
  const series = VARIANTS.map((name) => ({
    name,
    values: ['averageMs', 'p50Ms', 'p99Ms'].map((measurement) => readings.at(name, 'a service', measurement)),
  }));
  return figureOf('service', title, ['response time', ['average', 'p50', 'p99']], 'ms', series);
}

export const cascade: Experiment = {
  id: 'experiment-cascade',
  title: 'The latency cascade in Node',
  steps: 70,
  publishedFigures: [
    published('cascade', '200 GETs at once', ['measure', ['last caller', 'between `data` events, up to']], 'ms', [
      'ioredis',
      [257, 35],
    ]),
  ],
  async run(harness) {
    return [...(await cascades(harness)), await service(harness)];
  },
};
