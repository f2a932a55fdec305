import type { LoadResult } from '../http/load.js';
import { type ClientKind, CONNECTIONS, loadOf, type RouteId, startLoad } from '../http/routes.js';
import { Service } from '../http/service.js';
import { type Figure, medianAt, published, ratio, say } from '../report/figure.js';
import type { ClientOptions } from '../variants/protocol.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';
import type { Grid } from './readings.js';

const FIXED_RATE = 3000;
const HASHES = '8 hashes';

/** How the 8 hashes are read. */
const WAYS: Readonly<Record<string, readonly [RouteId, 'plain' | 'coalesced']>> = {
  'sequential, plain': ['sequential', 'plain'],
  'sequential, coalesced': ['sequential', 'coalesced'],
  'Promise.all, plain': ['parallel', 'plain'],
  'Promise.all, coalesced': ['parallel', 'coalesced'],
  'pipeline by hand, plain': ['pipeline', 'plain'],
};

const BURSTS = ['10', '100', '1000', '10000', '100000'];
export const DEFAULTS = 'the defaults: batch 1,000, in flight 10,000';
export const BOUNDED = 'batch 1,000, in flight 1,000';
const UNLIMITED = 'no limits to speak of';
const LIMITS: Readonly<Record<string, ClientOptions['coalesce']>> = {
  'batch 100': { maxBatchSize: 100 },
  [BOUNDED]: { maxInFlight: 1000 },
  [DEFAULTS]: {},
  [UNLIMITED]: { maxBatchSize: 1_000_000, maxBatchBytes: 64 * 1024 * 1024, maxInFlight: 1_000_000 },
};
const PLAIN = 'plain ioredis';

async function routes(harness: Harness): Promise<Figure[]> {
  const { bundle, server } = harness;
  const start = async (client: ClientKind) => {
    const service = await Service.start(bundle, { client, server, countWrites: false });
    harness.keep(() => service.stop());
    return service;
  };
  const services = { plain: await start('plain'), coalesced: await start('coalesced') };
  const load = startLoad(bundle);
  harness.keep(() => load.stop());
  const seconds = harness.count(1, 0.2);
  const grid = (rate?: number): Grid => ({
    x: ['read', Object.keys(WAYS)],
    series: [HASHES],
    run: (_, way) => async () => {
      const [route, client] = WAYS[way]!;
      const service = services[client];
      const before = (await service.usage()).cpuUs;
      const measured = await harness.withServerCpu(async () => {
        const result = await load.ask<LoadResult>(loadOf(service.origin, route, { seconds }, rate));
        return { ...result, commands: result.requests, perSecond: result.requests / result.seconds };
      });
      const share = (cpuUs: number) => (100 * cpuUs) / ((measured.seconds as number) * 1e6);
      return {
        ...measured,
        serviceShare: share((await service.usage()).cpuUs - before),
        serverShare: share(measured.serverCpuUs as number),
      };
    },
  });
  const saturated = await harness.measure(grid());
  const fixed = await harness.measure(grid(FIXED_RATE), { warmUp: false });
  const at = `At ${FIXED_RATE.toLocaleString('en-US')} requests/s`;
  const title = `Requests per second, ${CONNECTIONS} connections`;
  return [
    saturated.figure('saturated', title, 'perSecond', 'requests/s', { chart: 'bar' }),
    saturated.figure('saturated-p50', 'The same: median latency', 'p50Ms', 'ms'),
    fixed.figure('fixed-server', `${at}: CPU of Redis`, 'serverShare', '% of a core'),
    fixed.figure('fixed-service', `${at}: CPU of Node`, 'serviceShare', '% of a core'),
    fixed.figure('fixed-p50', `${at}: median latency`, 'p50Ms', 'ms'),
    fixed.figure('fixed-p99', `${at}: p99 latency`, 'p99Ms', 'ms'),
  ];
}

/** What another client of the same server notices of bursts, by their size and the limits on them. */
async function bystanders(harness: Harness): Promise<Figure[]> {
  const data = { keys: 1000, valueBytes: 100 };
  await harness.server.seed({ kind: 'burst', operation: 'get', size: 1, data });
  const bystander = await harness.open('plain');
  const series = [PLAIN, ...Object.keys(LIMITS)];
  const flooders = await harness.openEach(series, (name) => {
    const coalesce = LIMITS[name];
    return coalesce === undefined ? harness.open('plain') : harness.open('coalesced', { options: { coalesce } });
  });
  const seconds = harness.count(0.6, 0.05);
  const readings = await harness.measure(
    {
      x: ['commands per burst', harness.some(BURSTS)],
      series,
      run: (name, x) => async () => {
        const size = harness.count(Number(x), 100);
        const options = { size, keys: data.keys, bytes: data.valueBytes, seconds, pauseMs: 5 };
        const flood = flooders.get(name)!.task('floods', options);
        const [noticed, { perSecond }] = await Promise.all([bystander.task('bystander', { seconds }), flood]);
        return { ...noticed, perSecond: perSecond as number };
      },
    },
    { rounds: 2, warmUp: false },
  );
  await harness.closeVariants();
  const title = "p99 of another, uncoalesced client's GETs while bursts are sent";
  return [
    readings.figure('bystander', title, 'p99Ms', 'ms', { chart: 'line', log: true }),
    readings.figure('bursts', 'Commands per second of the bursts meanwhile', 'perSecond', 'commands/s'),
  ];
}

export const webService: Experiment = {
  id: 'experiment-web-service',
  title: 'A web service reading 8 hashes',
  steps: 100,
  published:
    'Go and gin, wrk with 30 connections: 4,682 requests/s one by one, 14,514 with a pipeline; latency 6.41 → 2.07 ms. ' +
    "At an equal rate of about 3,000 requests/s the server's CPU halves. The warning that comes with it: one large " +
    'pipeline delays everybody else on the server.',
  publishedFigures: [
    published('service', 'requests per second', ['read', ['one by one', 'pipeline']], 'requests/s', [
      'Go and gin',
      [4682, 14_514],
    ]),
  ],
  async run(harness) {
    return [...(await routes(harness)), ...(await bystanders(harness))];
  },
  findings(figures) {
    const at = (figure: string, way: string) => say(medianAt(figures, figure, HASHES, way));
    const p99 = (series: string) => say(medianAt(figures, 'bystander', series, '100000'));
    return [
      'Different from the published experiment: Fastify on Node instead of gin on Go, HGETs instead of HGETALLs; the ' +
        'load is made on the same cores as the service and Redis run on.',
      `One by one, coalescing merges what different requests ask for: ${at('saturated', 'sequential, plain')} → ` +
        `${at('saturated', 'sequential, coalesced')} requests/s. With \`Promise.all\` it is ` +
        `${at('saturated', 'Promise.all, plain')} → ${at('saturated', 'Promise.all, coalesced')}; a pipeline written by ` +
        `hand reaches ${at('saturated', 'pipeline by hand, plain')}. The published factor of the hand-written one is ` +
        `${ratio(14_514, 4682)}.`,
      `At ${FIXED_RATE.toLocaleString('en-US')} requests/s, Redis uses ${at('fixed-server', 'Promise.all, plain')} % of a ` +
        `core for plain and ${at('fixed-server', 'Promise.all, coalesced')} % for coalesced \`Promise.all\`; Node ` +
        `${at('fixed-service', 'Promise.all, plain')} % and ${at('fixed-service', 'Promise.all, coalesced')} %.`,
      `All other clients: while bursts of 100,000 commands are sent, the p99 of another client is ${p99(DEFAULTS)} ms ` +
        `under the defaults, ${p99(UNLIMITED)} ms with no limits, ${p99('batch 100')} ms with batches of 100, ` +
        `${p99(BOUNDED)} ms with 1,000 in flight, and ${p99(PLAIN)} ms beside plain ioredis.`,
    ];
  },
};
