import { bundlePrograms } from '../http/bundle.js';
import { Service } from '../http/service.js';
import { PRODUCTS, Shop } from '../http/shop.js';
import { CONNECTIONS, type RouteId, type Variant } from '../http/types.js';
import { exactly, medianAt, type Panel } from '../panel.js';
import type { ClientOptions } from '../workload.js';
import type { Experiment } from './experiment.js';
import { cellsOf, type Grid, panelOf, ratio, say } from './grid.js';
import type { Lab } from './lab.js';

const FIXED_RATE = 3000;
const PATHS = Array.from({ length: 20 }, (_, index) => 1 + index * 23);

/** How the 8 hashes are read. */
const WAYS: Readonly<Record<string, { readonly route: RouteId; readonly variant: Variant }>> = {
  'sequential, plain': { route: 'sequential', variant: 'plain' },
  'sequential, coalesced': { route: 'sequential', variant: 'coalesced' },
  'Promise.all, plain': { route: 'parallel', variant: 'plain' },
  'Promise.all, coalesced': { route: 'parallel', variant: 'coalesced' },
  'pipeline by hand, plain': { route: 'pipeline', variant: 'plain' },
};

const BURSTS = ['10', '100', '1000', '10000', '100000'];
const BOUNDS: Readonly<Record<string, ClientOptions['coalesce']>> = {
  'batch 100': { maxBatchSize: 100 },
  'batch 1,000, in flight 1,000': { maxInFlight: 1000 },
  'the defaults: batch 1,000, in flight 10,000': {},
  'no bounds to speak of': { maxBatchSize: 1_000_000, maxBatchBytes: 64 * 1024 * 1024, maxInFlight: 1_000_000 },
};

async function routes(lab: Lab): Promise<Panel[]> {
  const shop = await Shop.open(lab.server.url);
  lab.keep(() => shop.close());
  await shop.fill();
  const bundle = await bundlePrograms();
  lab.keep(() => bundle.remove());
  const start = async (variant: Variant) => {
    const options = { variant, redisUrl: lab.server.url, prefix: shop.prefix, products: PRODUCTS, countWrites: false };
    const service = await Service.start(bundle, options);
    lab.keep(() => service.stop());
    return service;
  };
  const services: Record<Variant, Service> = { plain: await start('plain'), coalesced: await start('coalesced') };
  // Any process will do to make the load.
  const load = await lab.arm('reference');
  const grid = (rate: number): Grid => ({
    xs: Object.keys(WAYS),
    series: ['8 hashes'],
    run: (_, way) => async () => {
      const { route, variant } = WAYS[way]!;
      const service = services[variant];
      const before = (await service.usage()).cpuUs;
      const figures = await lab.withServerCpu(lab.server, () =>
        load.task('httpLoad', {
          origin: service.origin,
          paths: PATHS.map((id) => `/${route}/${id}`).join(','),
          connections: CONNECTIONS,
          seconds: lab.count(1, 0.2),
          rate,
        }),
      );
      const serviceCpuUs = (await service.usage()).cpuUs - before;
      const seconds = (figures.seconds as number) * 1e6;
      return {
        ...figures,
        serviceShare: (100 * serviceCpuUs) / seconds,
        serverShare: (100 * (figures.serverCpuUs as number)) / seconds,
      };
    },
  });
  const saturated = await lab.measure(cellsOf(grid(0)));
  const fixed = await lab.measure(cellsOf(grid(FIXED_RATE)), { warmUp: false });
  await lab.closeArms();
  const rate = FIXED_RATE.toLocaleString('en-US');
  const panel = (
    readings: typeof saturated,
    figure: string,
    id: string,
    title: string,
    unit: string,
    chart: 'bar' | 'none',
  ) => panelOf(grid(0), readings, figure, { id, title, x: 'read', y: { title: unit }, chart });
  return [
    panel(saturated, 'perSecond', 'saturated', `Requests a second, ${CONNECTIONS} connections`, 'requests/s', 'bar'),
    panel(saturated, 'p50Ms', 'saturated-p50', 'The same: median latency', 'ms', 'none'),
    panel(fixed, 'serverShare', 'fixed-server', `At ${rate} requests/s: CPU of Redis`, '% of a core', 'bar'),
    panel(fixed, 'serviceShare', 'fixed-service', `At ${rate} requests/s: CPU of Node`, '% of a core', 'none'),
    panel(fixed, 'p50Ms', 'fixed-p50', `At ${rate} requests/s: median latency`, 'ms', 'none'),
    panel(fixed, 'p99Ms', 'fixed-p99', `At ${rate} requests/s: p99 latency`, 'ms', 'none'),
  ];
}

/** What somebody else on the same server notices of bursts, by their size and the bounds on them. */
async function bystanders(lab: Lab): Promise<Panel[]> {
  const data = { keys: 1000, valueBytes: 100 };
  await lab.server.seed({ kind: 'burst', operation: 'get', size: 1, data });
  const bystander = await lab.arm('plain');
  const flooders = new Map(
    await Promise.all(
      Object.entries(BOUNDS).map(async ([name, coalesce]) => {
        return [name, await lab.arm('coalesced', coalesce === undefined ? {} : { coalesce })] as const;
      }),
    ),
  );
  const plain = await lab.arm('plain');
  const seconds = lab.smoke ? 0.05 : 0.6;
  const grid: Grid = {
    xs: lab.some(BURSTS),
    series: ['plain ioredis', ...flooders.keys()],
    run: (series, x) => async () => {
      const options = { size: lab.count(Number(x), 100), keys: data.keys, bytes: data.valueBytes, seconds, pauseMs: 5 };
      const flood = (flooders.get(series) ?? plain).task('floods', options);
      const [noticed, { perSecond }] = await Promise.all([bystander.task('bystander', { seconds }), flood]);
      return { ...noticed, perSecond: perSecond as number };
    },
  };
  const readings = await lab.measure(cellsOf(grid), { rounds: 2, warmUp: false });
  await lab.closeArms();
  return [
    panelOf(grid, readings, 'p99Ms', {
      id: 'bystander',
      title: "p99 of another, uncoalesced client's GETs while bursts are sent",
      x: 'commands a burst',
      y: { title: 'ms', log: true },
      chart: 'line',
    }),
    panelOf(grid, readings, 'perSecond', {
      id: 'bursts',
      title: 'Commands a second of the bursts meanwhile',
      x: 'commands a burst',
      y: { title: 'commands a second' },
      chart: 'none',
    }),
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
  publishedPanels: [
    {
      id: 'published-service',
      title: 'Published: requests a second',
      published: true,
      x: { title: 'read', values: ['one by one', 'pipeline'] },
      y: { title: 'requests/s' },
      series: [{ name: 'Go and gin', values: [exactly(4682), exactly(14_514)] }],
      chart: 'bar',
    },
  ],
  async run(lab) {
    return [...(await routes(lab)), ...(await bystanders(lab))];
  },
  findings(panels) {
    const at = (panel: string, way: string) => medianAt(panels, panel, '8 hashes', way);
    const p99 = (series: string, size: string) => medianAt(panels, 'bystander', series, size);
    const defaults = 'the defaults: batch 1,000, in flight 10,000';
    return [
      'Different from the published experiment: Fastify on Node instead of gin on Go, HGETs instead of HGETALLs; the ' +
        'load is made on the same cores as the service and Redis run on.',
      `One by one, coalescing merges what different requests ask for: ${say(at('saturated', 'sequential, plain'))} → ` +
        `${say(at('saturated', 'sequential, coalesced'))} requests/s. With \`Promise.all\` it is ` +
        `${say(at('saturated', 'Promise.all, plain'))} → ${say(at('saturated', 'Promise.all, coalesced'))}; a pipeline ` +
        `written by hand reaches ${say(at('saturated', 'pipeline by hand, plain'))}. The published factor of the ` +
        `hand-written one is ${ratio(14_514, 4682)}.`,
      `At ${FIXED_RATE.toLocaleString('en-US')} requests/s, Redis uses ` +
        `${say(at('fixed-server', 'Promise.all, plain'))} % of a core for plain and ` +
        `${say(at('fixed-server', 'Promise.all, coalesced'))} % for coalesced \`Promise.all\`; Node ` +
        `${say(at('fixed-service', 'Promise.all, plain'))} % and ${say(at('fixed-service', 'Promise.all, coalesced'))} %.`,
      `Everybody else: while bursts of 100,000 commands are sent, the p99 of another client is ` +
        `${say(p99(defaults, '100000'))} ms under the defaults, ${say(p99('no bounds to speak of', '100000'))} ms with ` +
        `no bounds, ${say(p99('batch 100', '100000'))} ms with batches of 100, ` +
        `${say(p99('batch 1,000, in flight 1,000', '100000'))} ms with 1,000 in flight, and ` +
        `${say(p99('plain ioredis', '100000'))} ms beside plain ioredis.`,
    ];
  },
};
