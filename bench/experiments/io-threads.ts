import { type Figure, published } from '../report/figure.js';
import type { BenchServer } from '../suite/bench-server.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';

const THREADS: Readonly<Record<string, readonly string[]>> = {
  '1 thread': [],
  '2 threads': ['--io-threads', '2'],
  '4 threads': ['--io-threads', '4'],
  '4 threads, reads too': ['--io-threads', '4', '--io-threads-do-reads', 'yes'],
};
const PAYLOADS: Readonly<Record<string, number>> = {
  '20 B': 20,
  '100 B': 100,
  '512 B': 512,
  '1 KiB': 1024,
  '4 KiB': 4096,
};
const KEYS = 200;
const CLIENTS = 50;
const DEPTH = 50;
const HOT_LOOPS = 200;
const HOT = { keys: 1, valueBytes: 100 };

async function loads(harness: Harness): Promise<Figure[]> {
  const kinds = harness.some(Object.keys(THREADS));
  const servers = new Map<string, BenchServer>();
  for (const kind of kinds) {
    const server = await harness.startServer(THREADS[kind]);
    for (const valueBytes of Object.values(PAYLOADS)) {
      await server.seed({ kind: 'burst', operation: 'get', size: 1, data: { keys: KEYS, valueBytes } });
    }
    servers.set(kind, server);
  }
  type Load = { clients?: number; depth?: number; valueBytes?: number };
  const measure = (x: string, places: readonly string[], load: (place: string) => Load) =>
    harness.measureClients({
      x: [x, harness.some(places)],
      series: kinds,
      rounds: 2,
      warmUp: false,
      client: (kind) => ({ variant: 'coalesced', server: servers.get(kind)! }),
      run: (client, _, place) => {
        const { valueBytes = 100, clients = CLIENTS, depth = DEPTH } = load(place);
        return client.task('loops', { clients, depth, data: { keys: KEYS, valueBytes }, seconds: harness.seconds });
      },
    });
  const payloads = await measure('payload', Object.keys(PAYLOADS), (x) => ({ valueBytes: PAYLOADS[x]! }));
  const depths = await measure('commands per batch', ['10', '50', '100'], (x) => ({ depth: Number(x) }));
  const clients = await measure('clients', ['1', '20', '50'], (x) => ({ clients: Number(x) }));
  const byPayload = `GETs per second by payload: ${CLIENTS} clients, ${DEPTH} commands each`;
  const bySize = `GETs per second by batch size: ${CLIENTS} clients, 100 B`;
  return [
    payloads.figure('payloads', byPayload, 'perSecond', 'GETs/s', { chart: 'bar' }),
    depths.figure('depths', bySize, 'perSecond', 'GETs/s'),
    clients.figure('clients', `GETs per second by clients: ${DEPTH} commands each, 100 B`, 'perSecond', 'GETs/s'),
  ];
}

async function hotKey(harness: Harness): Promise<Figure[]> {
  const server = await harness.startServer();
  await server.seed({ kind: 'burst', operation: 'get', size: 1, data: HOT });
  const readings = await harness.measureClients({
    x: ['key', ['one key']],
    series: ['plain', 'coalesced', 'shareReads', 'coalesced-cache'],
    client: (series) =>
      series === 'shareReads'
        ? { variant: 'coalesced', server, options: { coalesce: { shareReads: true } } }
        : { variant: series as 'plain', server },
    run: async (client) => {
      const before = await server.info('stats', 'total_commands_processed');
      const load = { clients: 1, depth: HOT_LOOPS, data: HOT, seconds: harness.seconds };
      const measured = await harness.withServerCpu(() => client.task('loops', load), server);
      const commands = (await server.info('stats', 'total_commands_processed')) - before;
      return { ...measured, commandsPerGet: commands / Number(measured.commands) };
    },
  });
  const got = 'A hot key: commands that the server got per GET';
  return [
    readings.figure('hot', `A hot key: ${HOT_LOOPS} loops`, 'perSecond', 'GETs/s'),
    readings.figure('hot-commands', got, 'commandsPerGet', 'commands'),
    readings.figure('hot-cpu', 'A hot key: CPU of the server per GET', 'serverCpuPerCommand', 'µs'),
  ];
}

export const ioThreads: Experiment = {
  id: 'experiment-io-threads',
  title: 'I/O threads of the server',
  steps: 110,
  publishedFigures: [
    published('payloads', '50 clients, pipeline 50', ['payload', ['20 B', '4 KiB']], 'GETs/s', [
      '1 thread',
      [1_230_000, 220_000],
    ]),
  ],
  async run(harness) {
    return [...(await loads(harness)), ...(await hotKey(harness))];
  },
};
