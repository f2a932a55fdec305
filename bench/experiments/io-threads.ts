import { type Figure, medianAt, published, ratio, say } from '../report/figure.js';
import type { Workload } from '../variants/protocol.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';

const THREADS: Readonly<Record<string, readonly string[]>> = {
  '1 thread': [],
  '2 threads': ['--io-threads', '2'],
  '4 threads': ['--io-threads', '4'],
  '4 threads, reads too': ['--io-threads', '4', '--io-threads-do-reads', 'yes'],
};
const PAYLOADS = { '20 B': 20, '100 B': 100, '512 B': 512, '1 KiB': 1024, '4 KiB': 4096 };
const KEYS = 200;
const CLIENTS = 50;
const DEPTH = 50;
const HOT_LOOPS = 200;
const HOT = 'one key';

function readsOf(valueBytes: number): Workload {
  return { kind: 'burst', operation: 'get', size: 1, data: { keys: KEYS, valueBytes } };
}

async function loads(harness: Harness): Promise<Figure[]> {
  const kinds = harness.some(Object.keys(THREADS));
  const variants = await harness.openEach(kinds, async (kind) => {
    const server = await harness.startServer(THREADS[kind]);
    for (const bytes of Object.values(PAYLOADS)) await server.seed(readsOf(bytes));
    return harness.open('coalesced', { server });
  });
  const measure = (x: string, places: readonly string[], load: (place: string) => Record<string, number>) =>
    harness.measure(
      {
        x: [x, harness.some(places)],
        series: kinds,
        run: (kind, place) => () => {
          const usual = { clients: CLIENTS, depth: DEPTH, bytes: 100, keys: KEYS, seconds: harness.seconds };
          return variants.get(kind)!.task('manyClients', { ...usual, ...load(place) });
        },
      },
      { rounds: 2, warmUp: false },
    );
  const payloads = await measure('payload', Object.keys(PAYLOADS), (x) => ({ bytes: PAYLOADS[x as '20 B'] }));
  const depths = await measure('commands per batch', ['10', '50', '100'], (x) => ({ depth: Number(x) }));
  const clients = await measure('clients', ['1', '20', '50'], (x) => ({ clients: Number(x) }));
  await harness.closeVariants();
  const title = 'GETs per second';
  return [
    payloads.figure(
      'payloads',
      `${title} by payload: ${CLIENTS} clients, ${DEPTH} commands each`,
      'perSecond',
      'GETs/s',
      { chart: 'bar' },
    ),
    depths.figure('depths', `${title} by batch size: ${CLIENTS} clients, 100 B`, 'perSecond', 'GETs/s'),
    clients.figure('clients', `${title} by clients: ${DEPTH} commands each, 100 B`, 'perSecond', 'GETs/s'),
  ];
}

async function hotKey(harness: Harness): Promise<Figure[]> {
  const server = await harness.startServer();
  const variants = {
    plain: await harness.open('plain', { server }),
    coalesced: await harness.open('coalesced', { server }),
    shareReads: await harness.open('coalesced', { server, options: { coalesce: { shareReads: true } } }),
    ...(await harness.openIfSupported('coalesced-cache', { server })),
  };
  const readings = await harness.measure({
    x: ['key', [HOT]],
    series: Object.keys(variants),
    run: (series) => async () => {
      const before = await server.info('stats', 'total_commands_processed');
      const variant = variants[series as keyof typeof variants]!;
      const load = () => variant.task('hotKey', { loops: HOT_LOOPS, seconds: harness.seconds });
      const measured = await harness.withServerCpu(load, server);
      const commands = (await server.info('stats', 'total_commands_processed')) - before;
      return { ...measured, commandsPerGet: commands / (measured.commands as number) };
    },
  });
  await harness.closeVariants();
  const unit = 'commands';
  return [
    readings.figure('hot', `A hot key: ${HOT_LOOPS} loops`, 'perSecond', 'GETs/s'),
    readings.figure('hot-commands', 'A hot key: commands that the server got per GET', 'commandsPerGet', unit),
    readings.figure('hot-cpu', 'A hot key: CPU of the server per GET', 'serverCpuPerCommand', 'µs'),
  ];
}

export const ioThreads: Experiment = {
  id: 'experiment-io-threads',
  title: 'I/O threads of the server',
  steps: 110,
  published:
    '1 to 8 threads; GET, 50 clients, pipeline 50, payloads of 20 B to 4 KiB: 1.23M/s at 20 B to 0.22M/s at 4 KiB with ' +
    'one thread, about +25% with four; also pipelines of 10, 50, 100 and 1, 20, 50 clients. It started with a hot key.',
  publishedFigures: [
    published('payloads', '50 clients, pipeline 50', ['payload', ['20 B', '4 KiB']], 'GETs/s', [
      '1 thread',
      [1_230_000, 220_000],
    ]),
  ],
  async run(harness) {
    return [...(await loads(harness)), ...(await hotKey(harness))];
  },
  findings(figures) {
    const at = (threads: string, x: string) => medianAt(figures, 'payloads', threads, x);
    const hot = (figure: string, series: string) => say(medianAt(figures, figure, series, HOT));
    return [
      'Different from the published experiment: the load is one Node process of coalesced clients, which on two cores ' +
        'takes one of them. The server has the other, so threads beyond one have no core to run on: this machine can ' +
        'show what they cost, not what they bring.',
      `At 20 B, ${say(at('1 thread', '20 B'))} GETs per second with one thread and ${say(at('4 threads', '20 B'))} with ` +
        `four (${ratio(at('4 threads', '20 B'), at('1 thread', '20 B'))}); at 4 KiB ${say(at('1 thread', '4 KiB'))} and ` +
        `${say(at('4 threads', '4 KiB'))}. I/O threads spread the cost of many small writes; coalescing removes it ` +
        'at the source.',
      `The hot key: with \`shareReads\` the server got ${hot('hot-commands', 'shareReads')} commands per GET, and spent ` +
        `${hot('hot-cpu', 'shareReads')} µs on it, against ${hot('hot-cpu', 'coalesced')} µs without and ` +
        `${hot('hot-cpu', 'plain')} µs for plain ioredis.`,
    ];
  },
};
