import { type Figure, medianAt, published, ratio, say } from '../report/figure.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';

const PINGS = 10_000;
const ROUND_TRIPS = ['0', '0.2', '1', '5', '250'];
const SMOKE_ROUND_TRIPS = ['0', '1'];
const IN_FLIGHT = ['100', '1000', '10000', '100000'];
const MEMORY_BYTES = 1024;
const SCRIPT_CALLS = 1000;
const VARIANTS = ['plain', 'auto', 'coalesced'] as const;
const PLAIN = 'plain ioredis';
const PEAK = 'peak of the server';

async function tenThousand(harness: Harness): Promise<Figure> {
  const count = harness.count(PINGS, 500);
  const variants = await harness.openEach<string>(VARIANTS, (variant) => harness.open(variant as 'plain'));
  const readings = await harness.measure({
    x: ['issued', ['in sequence', 'at once']],
    series: VARIANTS,
    run: (series, way) => () => variants.get(series)!.task('pings', { way, count, seconds: 60 }),
  });
  await harness.closeVariants();
  const title = `${count.toLocaleString('en-US')} PINGs, each awaited on its own`;
  return readings.figure('pings', title, 'seconds', 'seconds');
}

async function byRoundTrip(harness: Harness): Promise<Figure> {
  // A connection over 250 ms takes seconds to open.
  const places = harness.smoke ? SMOKE_ROUND_TRIPS : ROUND_TRIPS;
  const urls = new Map<string, string>();
  for (const place of places) urls.set(place, await harness.delayed(Number(place)));
  const names = places.flatMap((place) => VARIANTS.map((variant) => `${variant} ${place}`));
  const variants = await harness.openEach(names, (name) => {
    const [variant, place = ''] = name.split(' ');
    return harness.open(variant as 'plain', { url: urls.get(place)! });
  });
  const count = harness.count(PINGS, 500);
  const readings = await harness.measure(
    {
      x: ['round trip, ms', places],
      series: ['in sequence, coalesced', ...VARIANTS.map((variant) => `at once, ${variant}`)],
      run: (series, place) => {
        const [way, variant] = series.split(', ') as [string, string];
        // Far away, a second is enough to see how long one takes.
        const options = { way, count, seconds: harness.smoke ? 0.01 : 1 };
        return () => variants.get(`${variant} ${place}`)!.task('pings', options);
      },
    },
    { rounds: 2, warmUp: false },
  );
  await harness.closeVariants();
  return readings.figure('round-trips', 'PINGs per second by round-trip time', 'perSecond', 'PINGs/s', {
    chart: 'line',
    log: true,
  });
}

async function serverMemory(harness: Harness): Promise<Figure> {
  const data = { keys: 100, valueBytes: MEMORY_BYTES };
  const size = harness.count(100_000, 1000);
  const readings = await harness.measure(
    {
      x: ['maxInFlight', [...harness.some(IN_FLIGHT), PLAIN]],
      series: [PEAK],
      run: (_, x) => async () => {
        // A server of its own: a peak is for the life of a server.
        const server = await harness.startServer();
        await server.seed({ kind: 'burst', operation: 'get', size: 1, data });
        const options = { coalesce: { maxInFlight: Number(x) } };
        const variant = await (x === PLAIN
          ? harness.open('plain', { server })
          : harness.open('coalesced', { server, options }));
        const before = await server.info('memory', 'used_memory');
        await variant.task('floods', { size, keys: data.keys, bytes: data.valueBytes, seconds: 0, pauseMs: 0 });
        const peak = await server.info('memory', 'used_memory_peak');
        await harness.closeVariants();
        await server.close();
        return { mebibytes: (peak - before) / 2 ** 20 };
      },
    },
    { rounds: 2, warmUp: false },
  );
  const title = `Memory of the server at its peak, above idle: ${size.toLocaleString('en-US')} GETs of 1 KiB at once`;
  return readings.figure('memory', title, 'mebibytes', 'MiB');
}

async function loadedScripts(harness: Harness): Promise<Figure> {
  const server = await harness.startServer();
  const variants = {
    plain: await harness.open('plain', { server }),
    coalesced: await harness.open('coalesced', { server }),
  };
  const count = harness.count(SCRIPT_CALLS, 100);
  const readings = await harness.measure({
    x: ['the script is', ['loaded', 'not loaded']],
    series: Object.keys(variants),
    run: (series, script) => () => variants[series as keyof typeof variants].task('scripts', { script, count }),
  });
  await harness.closeVariants();
  const title = `${count.toLocaleString('en-US')} calls of a script at once (EVALSHA)`;
  return readings.figure('scripts', title, 'perSecond', 'calls/s');
}

export const roundTrips: Experiment = {
  id: 'experiment-round-trips',
  title: 'Pipelining and round trips',
  steps: 80,
  published:
    '10,000 PINGs take 1.185 s without and 0.251 s with pipelining; the factor grows to 10× with the length of the ' +
    "pipeline; batches of about 10,000 commands bound the server's memory; scripts are sent with EVALSHA in a pipeline, " +
    'after SCRIPT LOAD. At a round trip of 250 ms, four requests per second are possible however fast the server is.',
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
  findings(figures) {
    const seconds = (variant: string, way: string) => medianAt(figures, 'pings', variant, way);
    const far = (series: string) => say(medianAt(figures, 'round-trips', series, '250'));
    const memory = (x: string) => say(medianAt(figures, 'memory', PEAK, x));
    const scripts = (state: string) => say(medianAt(figures, 'scripts', 'coalesced', state));
    return [
      'Different from the published experiment: no pipeline is written; each PING is awaited on its own. Issued one ' +
        'after the other they cannot be merged, by whatever client; issued at once, from as many places as you like, ' +
        'they can.',
      `In sequence ${say(seconds('coalesced', 'in sequence'))} s (plain ${say(seconds('plain', 'in sequence'))} s), at ` +
        `once ${say(seconds('coalesced', 'at once'))} s (plain ${say(seconds('plain', 'at once'))} s, auto-pipelining ` +
        `${say(seconds('auto', 'at once'))} s): a factor of ` +
        `${ratio(seconds('coalesced', 'in sequence'), seconds('coalesced', 'at once'))} against the published ` +
        `${ratio(1.185, 0.251)}.`,
      `At 250 ms a sequence does ${far('in sequence, coalesced')} PINGs per second, and no client can help; at once it ` +
        `is ${far('at once, plain')} for plain ioredis, ${far('at once, auto')} with auto-pipelining and ` +
        `${far('at once, coalesced')} coalesced: what is sent without waiting for replies pays the distance once, ` +
        'whichever client sends it.',
      `100,000 GETs of 1 KiB at once cost the server ${memory('100')} MiB with \`maxInFlight: 100\`, ` +
        `${memory('10000')} MiB with the default of 10,000, ${memory('100000')} MiB with 100,000, and ` +
        `${memory(PLAIN)} MiB from plain ioredis. How much of it piles up depends on how fast the client reads; the ` +
        'limit holds for a client that reads nothing, too.',
      `A script that is not loaded costs every call of the burst a second round trip (EVALSHA, NOSCRIPT, EVAL): ` +
        `${scripts('not loaded')} calls per second instead of ${scripts('loaded')}. SCRIPT LOAD at startup is worth its ` +
        'line.',
    ];
  },
};
