import { type Figure, published } from '../report/figure.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';

const PINGS = 10_000;
const ROUND_TRIPS = ['0', '0.2', '1', '5', '250'];
const SMOKE_ROUND_TRIPS = ['0', '1'];
const IN_FLIGHT = ['100', '1000', '10000', '100000'];
const MEMORY_DATA = { keys: 100, valueBytes: 1024 };
const SCRIPT_CALLS = 1000;
const VARIANTS = ['plain', 'auto', 'coalesced'] as const;
type Compared = (typeof VARIANTS)[number];
const PLAIN = 'plain ioredis';

async function tenThousand(harness: Harness): Promise<Figure> {
  const count = harness.count(PINGS, 500);
  const readings = await harness.measureClients({
    x: ['issued', ['in sequence', 'at once']],
    series: VARIANTS,
    run: (client, _, way) => client.task('pings', { way, count, seconds: 60 }),
  });
  const title = `${count.toLocaleString('en-US')} PINGs, each awaited on its own`;
  return readings.figure('pings', title, 'seconds', 'seconds');
}

async function byRoundTrip(harness: Harness): Promise<Figure> {
  // A connection over 250 ms takes seconds to open.
  const places = harness.smoke ? SMOKE_ROUND_TRIPS : ROUND_TRIPS;
  const urls = await harness.delayed(places);
  // Far away, a second is enough to see how long one takes.
  const load = { count: harness.count(PINGS, 500), seconds: harness.smoke ? 0.01 : 1 };
  const readings = await harness.measureClients({
    x: ['round trip, ms', places],
    series: ['in sequence, coalesced', ...VARIANTS.map((variant) => `at once, ${variant}`)],
    rounds: 2,
    warmUp: false,
    client: (series, place) => ({ variant: series.split(', ')[1] as Compared, url: urls.get(place)! }),
    run: (client, series) => client.task('pings', { way: series.split(', ')[0]!, ...load }),
  });
  const title = 'PINGs per second by round-trip time';
  return readings.figure('round-trips', title, 'perSecond', 'PINGs/s', { chart: 'line', log: true });
}

async function serverMemory(harness: Harness): Promise<Figure> {
  const size = harness.count(100_000, 1000);
  const readings = await harness.measure({
    x: ['maxInFlight', [...harness.some(IN_FLIGHT), PLAIN]],
    series: ['peak of the server'],
    rounds: 2,
    warmUp: false,
    run: async (_, x) => {
      // A server of its own: a peak is for the life of a server.
      const server = await harness.startServer();
      await server.seed({ kind: 'burst', operation: 'get', size: 1, data: MEMORY_DATA });
      const coalesced = { variant: 'coalesced', options: { coalesce: { maxInFlight: Number(x) } } } as const;
      const client = await harness.open({ ...(x === PLAIN ? { variant: 'plain' } : coalesced), server });
      const before = await server.info('memory', 'used_memory');
      await client.task('floods', { size, data: MEMORY_DATA, seconds: 0, pauseMs: 0 });
      const peak = await server.info('memory', 'used_memory_peak');
      await harness.closeVariants();
      await server.close();
      return { mebibytes: (peak - before) / 2 ** 20 };
    },
  });
  const title = `Memory of the server at its peak, above idle: ${size.toLocaleString('en-US')} GETs of 1 KiB at once`;
  return readings.figure('memory', title, 'mebibytes', 'MiB');
}

async function loadedScripts(harness: Harness): Promise<Figure> {
  const server = await harness.startServer();
  const count = harness.count(SCRIPT_CALLS, 100);
  const readings = await harness.measureClients({
    x: ['the script is', ['loaded', 'not loaded']],
    series: ['plain', 'coalesced'],
    client: (variant) => ({ variant: variant as Compared, server }),
    run: (client, _, script) => client.task('scripts', { script, count }),
  });
  const title = `${count.toLocaleString('en-US')} calls of a script at once (EVALSHA)`;
  return readings.figure('scripts', title, 'perSecond', 'calls/s');
}

export const roundTrips: Experiment = {
  id: 'experiment-round-trips',
  title: 'Pipelining and round trips',
  steps: 80,
  publishedFigures: [
    published('pings', '10,000 PINGs', ['issued', ['without pipelining', 'with pipelining']], 'seconds', [
      'Ruby',
      [1.185, 0.251],
    ]),
  ],
  async run(harness) {
    return [
      await tenThousand(harness),
      await byRoundTrip(harness),
      await serverMemory(harness),
      await loadedScripts(harness),
    ];
  },
};
