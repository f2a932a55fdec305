import { exactly, medianAt, type Panel } from '../panel.js';
import type { BenchServer } from '../server.js';
import type { Workload } from '../workload.js';
import type { Experiment } from './experiment.js';
import { cellsOf, type Grid, panelOf, ratio, say } from './grid.js';
import type { Lab } from './lab.js';

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

function readsOf(valueBytes: number): Workload {
  return { kind: 'burst', operation: 'get', size: 1, data: { keys: KEYS, valueBytes } };
}

async function loads(lab: Lab): Promise<Panel[]> {
  const kinds = lab.some(Object.keys(THREADS));
  const servers = new Map<string, BenchServer>();
  for (const kind of kinds) {
    const server = await lab.startServer(THREADS[kind]!);
    for (const bytes of Object.values(PAYLOADS)) await server.seed(readsOf(bytes));
    servers.set(kind, server);
  }
  const arms = new Map(
    await Promise.all(kinds.map(async (kind) => [kind, await lab.arm('coalesced', {}, servers.get(kind)!)] as const)),
  );
  const load = (kind: string, clients: number, depth: number, bytes: number) => () =>
    arms.get(kind)!.task('manyClients', { clients, depth, bytes, keys: KEYS, seconds: lab.seconds });

  const payloads: Grid = {
    xs: lab.some(Object.keys(PAYLOADS)),
    series: kinds,
    run: (kind, x) => load(kind, CLIENTS, DEPTH, PAYLOADS[x as keyof typeof PAYLOADS]),
  };
  const depths: Grid = {
    xs: lab.some(['10', '50', '100']),
    series: kinds,
    run: (kind, x) => load(kind, CLIENTS, Number(x), 100),
  };
  const clients: Grid = {
    xs: lab.some(['1', '20', '50']),
    series: kinds,
    run: (kind, x) => load(kind, Number(x), DEPTH, 100),
  };
  const rounds = { rounds: 2, warmUp: false };
  const title = 'GETs a second';
  const panels = [
    panelOf(payloads, await lab.measure(cellsOf(payloads), rounds), 'perSecond', {
      id: 'payloads',
      title: `${title} by payload: ${CLIENTS} clients, ${DEPTH} commands each`,
      x: 'payload',
      y: { title },
      chart: 'bar',
    }),
    panelOf(depths, await lab.measure(cellsOf(depths), rounds), 'perSecond', {
      id: 'depths',
      title: `${title} by batch size: ${CLIENTS} clients, 100 B`,
      x: 'commands a batch',
      y: { title },
      chart: 'bar',
    }),
    panelOf(clients, await lab.measure(cellsOf(clients), rounds), 'perSecond', {
      id: 'clients',
      title: `${title} by clients: ${DEPTH} commands each, 100 B`,
      x: 'clients',
      y: { title },
      chart: 'bar',
    }),
  ];
  await lab.closeArms();
  return panels;
}

async function hotKey(lab: Lab): Promise<Panel[]> {
  const server = await lab.startServer([]);
  const arms = {
    plain: await lab.arm('plain', {}, server),
    coalesced: await lab.arm('coalesced', {}, server),
    shareReads: await lab.arm('coalesced', { coalesce: { shareReads: true } }, server),
  };
  const grid: Grid = {
    xs: ['one key'],
    series: Object.keys(arms),
    run: (series) => async () => {
      const before = await server.info('stats', 'total_commands_processed');
      const figures = await lab.withServerCpu(server, () =>
        arms[series as keyof typeof arms].task('hotKey', { loops: HOT_LOOPS, seconds: lab.seconds }),
      );
      const commands = (await server.info('stats', 'total_commands_processed')) - before;
      return { ...figures, commandsPerGet: commands / (figures.commands as number) };
    },
  };
  const readings = await lab.measure(cellsOf(grid));
  await lab.closeArms();
  const base = { x: 'key', chart: 'none' as const };
  return [
    panelOf(grid, readings, 'perSecond', {
      ...base,
      id: 'hot',
      title: `A hot key: ${HOT_LOOPS} loops`,
      y: { title: 'GETs a second' },
    }),
    panelOf(grid, readings, 'commandsPerGet', {
      ...base,
      id: 'hot-commands',
      title: 'A hot key: commands that the server got for each GET',
      y: { title: 'commands' },
    }),
    panelOf(grid, readings, 'serverCpuPerCommand', {
      ...base,
      id: 'hot-cpu',
      title: 'A hot key: CPU of the server for each GET',
      y: { title: 'µs' },
    }),
  ];
}

export const ioThreads: Experiment = {
  id: 'experiment-io-threads',
  title: 'I/O threads of the server',
  steps: 110,
  published:
    '1 to 8 threads; GET, 50 clients, pipeline 50, payloads of 20 B to 4 KiB: 1.23M/s at 20 B to 0.22M/s at 4 KiB with ' +
    'one thread, about +25% with four; also pipelines of 10, 50, 100 and 1, 20, 50 clients. It started with a hot key.',
  publishedPanels: [
    {
      id: 'published-payloads',
      title: 'Published: 50 clients, pipeline 50',
      published: true,
      chart: 'bar',
      x: { title: 'payload', values: ['20 B', '4 KiB'] },
      y: { title: 'GETs a second' },
      series: [{ name: '1 thread', values: [exactly(1_230_000), exactly(220_000)] }],
    },
  ],
  async run(lab) {
    return [...(await loads(lab)), ...(await hotKey(lab))];
  },
  findings(panels) {
    const at = (threads: string, x: string) => medianAt(panels, 'payloads', threads, x);
    return [
      'Different from the published experiment: the load is one Node process of coalesced clients, which on two cores ' +
        'takes one of them. The server has the other, so threads beyond one have no core to run on: this machine can ' +
        'show what they cost, not what they bring.',
      `At 20 B, ${say(at('1 thread', '20 B'))} GETs a second with one thread and ${say(at('4 threads', '20 B'))} with ` +
        `four (${ratio(at('4 threads', '20 B'), at('1 thread', '20 B'))}); at 4 KiB ${say(at('1 thread', '4 KiB'))} and ` +
        `${say(at('4 threads', '4 KiB'))}. I/O threads spread the cost of many small writes; coalescing removes it ` +
        'at the source.',
      `The hot key: with \`shareReads\` the server got ${say(medianAt(panels, 'hot-commands', 'shareReads', 'one key'))} ` +
        `commands for each GET, and spent ${say(medianAt(panels, 'hot-cpu', 'shareReads', 'one key'))} µs on it, ` +
        `against ${say(medianAt(panels, 'hot-cpu', 'coalesced', 'one key'))} µs without and ` +
        `${say(medianAt(panels, 'hot-cpu', 'plain', 'one key'))} µs for plain ioredis.`,
    ];
  },
};
