import { type ClientKind, CONNECTIONS, type RouteId } from '../http/example.js';
import { Load } from '../http/load-process.js';
import { startService } from '../http/service.js';
import { type Figure, published } from '../report/figure.js';
import type { ClientOptions } from '../variants/protocol.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';

const FIXED_RATE = 3000;
const DATA = { keys: 1000, valueBytes: 100 };
const PLAIN = { variant: 'plain' } as const;

/** How the 8 hashes are read. */
const WAYS: Readonly<Record<string, readonly [RouteId, 'plain' | 'coalesced']>> = {
  'sequential, plain': ['sequential', 'plain'],
  'sequential, coalesced': ['sequential', 'coalesced'],
  'Promise.all, plain': ['parallel', 'plain'],
  'Promise.all, coalesced': ['parallel', 'coalesced'],
  'pipeline by hand, plain': ['pipeline', 'plain'],
};

const BURSTS = ['10', '100', '1000', '10000', '100000'];
const LIMITS: Readonly<Record<string, NonNullable<ClientOptions['coalesce']>>> = {
  'batch 100': { maxBatchSize: 100 },
  'batch 1,000, in flight 1,000': { maxInFlight: 1000 },
  'the defaults: batch 1,000, in flight 10,000': {},
  'no limits to speak of': { maxBatchSize: 1_000_000, maxBatchBytes: 64 * 1024 * 1024, maxInFlight: 1_000_000 },
};

async function routes(harness: Harness): Promise<Figure[]> {
  const start = async (client: ClientKind) => {
    const service = await startService(harness, client);
    await harness.keep(() => service.child.stop());
    return service;
  };
  const services = { plain: await start('plain'), coalesced: await start('coalesced') };
  const load = new Load(harness.bundle.files.load);
  await harness.keep(() => load.stop());
  const axes = { x: ['read', Object.keys(WAYS)], series: ['8 hashes'] } as const;
  const drive = async (way: string, rate: { rate?: number } = {}) => {
    const [route, client] = WAYS[way]!;
    const order = { connections: CONNECTIONS, limit: { seconds: harness.count(1, 0.2) }, ...rate };
    const { cpuUs, latencyUs, requests, seconds, serverCpuUs } = await services[client].drive(load, route, order);
    return {
      perSecond: requests / seconds,
      p50Ms: latencyUs.p50 / 1000,
      p99Ms: latencyUs.p99 / 1000,
      serviceShare: cpuUs / seconds / 1e4,
      serverShare: serverCpuUs / seconds / 1e4,
    };
  };
  const saturated = await harness.measure({ ...axes, run: (_, way) => drive(way) });
  const fixed = await harness.measure({ ...axes, warmUp: false, run: (_, way) => drive(way, { rate: FIXED_RATE }) });
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
  await harness.server.seed({ kind: 'burst', operation: 'get', size: 1, data: DATA });
  const bystander = await harness.open({ variant: 'plain' });
  const seconds = harness.count(0.6, 0.05);
  const readings = await harness.measureClients({
    x: ['commands per burst', harness.some(BURSTS)],
    series: ['plain ioredis', ...Object.keys(LIMITS)],
    rounds: 2,
    warmUp: false,
    client: (name) => (name in LIMITS ? { variant: 'coalesced', options: { coalesce: LIMITS[name]! } } : PLAIN),
    run: async (client, _, x) => {
      const size = harness.count(Number(x), 100);
      const [{ p99Ms }, { perSecond }] = await Promise.all([
        bystander.task('fixedRate', { perSecond: 1000, commands: 1, data: DATA, seconds }),
        client.task('floods', { size, data: DATA, seconds, pauseMs: 5 }),
      ]);
      return { p99Ms: p99Ms!, perSecond: perSecond! };
    },
  });
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
  publishedFigures: [
    published('service', 'requests per second', ['read', ['one by one', 'pipeline']], 'requests/s', [
      'Go and gin',
      [4682, 14_514],
    ]),
  ],
  async run(harness) {
    return [...(await routes(harness)), ...(await bystanders(harness))];
  },
};
