import { exactly, type Figure, type FigureValue, medianAt, published, ratio, say } from '../report/figure.js';
import type { VariantProcess } from '../suite/variant-process.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';
import type { Grid, Readings } from './readings.js';
import { hasStrace, straced } from './strace.js';

const CALLERS = 200;
const VARIANTS = ['plain', 'auto', 'coalesced'] as const;
const CONNECTIONS = ['1', '2', '4'];
/** The callers that are shown. */
const SHOWN = Array.from({ length: 21 }, (_, index) => Math.min(index * 10, CALLERS - 1));
const REQUESTS_PER_SECOND = 800;
const COMMANDS_PER_REQUEST = 20;
const BURST = `${CALLERS} GETs at once`;

type Variants = ReadonlyMap<string, VariantProcess>;

async function cascades(harness: Harness): Promise<Figure[]> {
  await harness.server.seed({ kind: 'burst', operation: 'get', size: 1, data: { keys: 1000, valueBytes: 100 } });
  const places = harness.some(CONNECTIONS);
  const names = VARIANTS.flatMap((variant) => places.map((connections) => `${variant} ${connections}`));
  const variants = await harness.openEach(names, (name) => harness.open(name.split(' ')[0] as 'plain'));
  const grid = (way: string): Grid => ({
    x: ['connections', places],
    series: VARIANTS,
    run: (variant, connections) => () => {
      const repetitions = harness.count(way === 'timed' ? 200 : 20, 3);
      const options = { callers: CALLERS, connections: Number(connections), repetitions, way };
      return variants.get(`${variant} ${connections}`)!.task('cascade', options);
    },
  });
  const timed = await harness.measure(grid('timed'));
  const calls = await systemCalls(harness, variants, places);
  const counted = await harness.measure(grid('counted'), { rounds: 1, warmUp: false });
  await harness.closeVariants();
  return [
    callers(timed),
    timed.figure('first', `${BURST}: when the first caller has its reply`, 'first', 'ms'),
    timed.figure('first-p99', `${BURST}: the same, p99`, 'firstP99', 'ms'),
    timed.figure('last', `${BURST}: when the last caller has its reply`, 'last', 'ms'),
    timed.figure('last-p99', `${BURST}: the same, p99`, 'lastP99', 'ms'),
    timed.figure('loop-delay', 'Event-loop delay meanwhile, p99', 'loopDelayMs', 'ms'),
    counted.figure('writes', `Socket writes for ${CALLERS} GETs`, 'writes', 'writes'),
    counted.figure('reads', `\`data\` events for ${CALLERS} GETs`, 'reads', 'events'),
    ...(calls === undefined ? [] : [calls]),
  ];
}

/** Response time by the caller's place in the burst, over one connection. */
function callers(timed: Readings): Figure {
  return {
    id: 'callers',
    title: `${BURST} on one connection: response time of each caller, first to last`,
    chart: 'line',
    x: { title: 'caller', values: SHOWN.map((index) => `${index + 1}`) },
    y: { title: 'ms' },
    series: VARIANTS.map((variant) => {
      const medians = timed.listAt(variant, '1', 'medians');
      return { name: variant, values: SHOWN.map((index) => medians[index] ?? null) };
    }),
  };
}

/** System calls of the client's process for each burst, as strace counts them. */
async function systemCalls(
  harness: Harness,
  variants: Variants,
  connections: readonly string[],
): Promise<Figure | undefined> {
  if (!(await hasStrace())) {
    harness.notes.add('strace is not on PATH: system calls were not counted.');
    return undefined;
  }
  const repetitions = harness.count(100, 5);
  const series: { name: string; values: FigureValue[] }[] = [];
  for (const name of VARIANTS) {
    const values: FigureValue[] = [];
    for (const count of connections) {
      const variant = variants.get(`${name} ${count}`)!;
      const options = { callers: CALLERS, connections: Number(count), repetitions, way: 'timed' };
      const calls = await straced(variant.pid, () => variant.task('cascade', options));
      if (calls === undefined) {
        harness.notes.add('strace may not look at another process here: system calls were not counted.');
        return undefined;
      }
      values.push(exactly(calls / repetitions));
    }
    series.push({ name, values });
  }
  const title = `System calls for ${CALLERS} GETs, of all kinds and threads`;
  return { id: 'system-calls', title, x: { title: 'connections', values: connections }, y: { title: 'calls' }, series };
}

async function service(harness: Harness): Promise<Figure> {
  const variants = await harness.openEach<string>(VARIANTS, (variant) => harness.open(variant as 'plain'));
  const load = {
    perSecond: REQUESTS_PER_SECOND,
    commands: COMMANDS_PER_REQUEST,
    seconds: harness.count(2, 0.05),
  };
  const readings = await harness.measure(
    { x: ['', ['a service']], series: VARIANTS, run: (series) => () => variants.get(series)!.task('requests', load) },
    { warmUp: false },
  );
  await harness.closeVariants();
  return {
    id: 'service',
    title: `A service at ${REQUESTS_PER_SECOND} requests per second, ${COMMANDS_PER_REQUEST} concurrent GETs each`,
    x: { title: 'response time', values: ['average', 'p50', 'p99'] },
    y: { title: 'ms' },
    series: VARIANTS.map((name) => ({
      name,
      values: ['averageMs', 'p50Ms', 'p99Ms'].map((measurement) => readings.at(name, 'a service', measurement)),
    })),
  };
}

export const cascade: Experiment = {
  id: 'experiment-cascade',
  title: 'The latency cascade in Node',
  steps: 70,
  published:
    '200 concurrent GETs on one ioredis connection: response times that climb to 257 ms from the first caller to the ' +
    'last, `data` events up to 35 ms apart; cured by batching the writes with `writev`. A service at 800 requests/s ' +
    'whose average went to 60 ms.',
  publishedFigures: [
    published('cascade', '200 GETs at once', ['measure', ['last caller', 'between `data` events, up to']], 'ms', [
      'ioredis',
      [257, 35],
    ]),
  ],
  async run(harness) {
    return [...(await cascades(harness)), await service(harness)];
  },
  findings(figures) {
    const last = (variant: string, connections = '1') => medianAt(figures, 'last', variant, connections);
    const first = (variant: string) => say(medianAt(figures, 'first', variant, '1'));
    const writes = (variant: string) => say(medianAt(figures, 'writes', variant, '1'));
    const lastBy = (variant: string) => ['1', '2', '4'].map((connections) => say(last(variant, connections)));
    const [plain, coalesced] = [lastBy('plain'), lastBy('coalesced')];
    return [
      'Different from the published experiment: a server on the same machine with nothing else to do, and a process ' +
        'with nothing else to do either.',
      `Here the whole burst waits, not its tail alone: the first caller has its reply after ${first('plain')} ms with ` +
        `plain ioredis (coalesced ${first('coalesced')} ms), because the process makes all its writes before it reads ` +
        'the first reply. Time from first to last caller grows where reading and writing take turns: under load.',
      `The last of ${CALLERS} callers waits ${say(last('plain'))} ms with plain ioredis, ${say(last('auto'))} ms with ` +
        `auto-pipelining and ${say(last('coalesced'))} ms coalesced (${ratio(last('plain'), last('coalesced'))} sooner ` +
        `than plain), for ${writes('plain')}, ${writes('auto')} and ${writes('coalesced')} socket writes.`,
      `More connections, as the source recommends: plain ioredis needs ${plain[0]} ms on one, ${plain[1]} ms on two and ` +
        `${plain[2]} ms on four; coalesced ${coalesced[0]}, ${coalesced[1]} and ${coalesced[2]} ms.`,
    ];
  },
};
