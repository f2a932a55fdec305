import { medianAt, type Panel, published } from '../panel.js';
import type { ArmId } from '../workload.js';
import type { Experiment } from './experiment.js';
import { cellsOf, type Grid, panelOf, ratio, say } from './grid.js';
import type { Lab } from './lab.js';

const PINGS = 10_000;
const ROUND_TRIPS = ['0', '0.2', '1', '5', '250'];
const SMOKE_ROUND_TRIPS = ['0', '1'];
const IN_FLIGHT = ['100', '1000', '10000', '100000'];
const MEMORY_BYTES = 1024;
const SCRIPT_CALLS = 1000;

async function tenThousand(lab: Lab): Promise<Panel> {
  const count = lab.count(PINGS, 500);
  const arms = { plain: await lab.arm('plain'), auto: await lab.arm('auto'), coalesced: await lab.arm('coalesced') };
  const grid: Grid = {
    xs: ['in sequence', 'at once'],
    series: Object.keys(arms),
    run: (series, way) => () => arms[series as keyof typeof arms].task('pings', { way, count, seconds: 60 }),
  };
  const readings = await lab.measure(cellsOf(grid));
  await lab.closeArms();
  return panelOf(grid, readings, 'seconds', {
    id: 'pings',
    title: `${count.toLocaleString('en-US')} PINGs, each awaited on its own`,
    x: 'issued',
    y: { title: 'seconds' },
    chart: 'bar',
  });
}

async function byRoundTrip(lab: Lab): Promise<Panel> {
  const arms = ['plain', 'auto', 'coalesced'] as const;
  // A connection over 250 ms takes seconds to open.
  const xs = lab.smoke ? SMOKE_ROUND_TRIPS : ROUND_TRIPS;
  const opened = new Map<string, Awaited<ReturnType<Lab['arm']>>>();
  for (const x of xs) {
    const url = await lab.delayed(lab.server, Number(x));
    const open = async (arm: ArmId) => opened.set(`${arm} ${x}`, await lab.arm(arm, {}, lab.server, url));
    await Promise.all(arms.map(open));
  }
  const count = lab.count(PINGS, 500);
  const grid: Grid = {
    xs,
    series: ['in sequence, coalesced', ...arms.map((arm) => `at once, ${arm}`)],
    run: (series, x) => {
      const [way, arm] = series.split(', ') as [string, string];
      // Far away, a second is enough to see how long one takes.
      return () => opened.get(`${arm} ${x}`)!.task('pings', { way, count, seconds: lab.smoke ? 0.01 : 1 });
    },
  };
  const readings = await lab.measure(cellsOf(grid), { rounds: 2, warmUp: false });
  await lab.closeArms();
  return panelOf(grid, readings, 'perSecond', {
    id: 'round-trips',
    title: 'PINGs a second by round-trip time',
    x: 'round trip, ms',
    y: { title: 'PINGs a second', log: true },
    chart: 'line',
  });
}

async function serverMemory(lab: Lab): Promise<Panel> {
  const data = { keys: 100, valueBytes: MEMORY_BYTES };
  const size = lab.count(100_000, 1000);
  const grid: Grid = {
    xs: [...lab.some(IN_FLIGHT), 'plain ioredis'],
    series: ['peak of the server'],
    run: (_, x) => async () => {
      // A server of its own: a peak is for the life of a server.
      const server = await lab.startServer([]);
      await server.seed({ kind: 'burst', operation: 'get', size: 1, data });
      const arm =
        x === 'plain ioredis'
          ? await lab.arm('plain', {}, server)
          : await lab.arm('coalesced', { coalesce: { maxInFlight: Number(x) } }, server);
      const before = await server.info('memory', 'used_memory');
      await arm.task('floods', { size, keys: data.keys, bytes: data.valueBytes, seconds: 0, pauseMs: 0 });
      const peak = await server.info('memory', 'used_memory_peak');
      await lab.closeArms();
      await server.close();
      return { mebibytes: (peak - before) / 2 ** 20 };
    },
  };
  const readings = await lab.measure(cellsOf(grid), { rounds: 2, warmUp: false });
  const commands = size.toLocaleString('en-US');
  return panelOf(grid, readings, 'mebibytes', {
    id: 'memory',
    title: `Memory of the server at its peak, above idle: ${commands} GETs of 1 KiB at once`,
    x: 'maxInFlight',
    y: { title: 'MiB' },
    chart: 'bar',
  });
}

async function loadedScripts(lab: Lab): Promise<Panel> {
  const server = await lab.startServer([]);
  const arms = { plain: await lab.arm('plain', {}, server), coalesced: await lab.arm('coalesced', {}, server) };
  const count = lab.count(SCRIPT_CALLS, 100);
  const grid: Grid = {
    xs: ['loaded', 'not loaded'],
    series: Object.keys(arms),
    run: (series, script) => () => arms[series as keyof typeof arms].task('scripts', { script, count }),
  };
  const readings = await lab.measure(cellsOf(grid));
  await lab.closeArms();
  return panelOf(grid, readings, 'perSecond', {
    id: 'scripts',
    title: `${count.toLocaleString('en-US')} calls of a script at once (EVALSHA)`,
    x: 'the script is',
    y: { title: 'calls a second' },
    chart: 'bar',
  });
}

export const roundTrips: Experiment = {
  id: 'experiment-round-trips',
  title: 'Pipelining and round trips',
  steps: 80,
  published:
    '10,000 PINGs take 1.185 s without and 0.251 s with pipelining; the factor grows to 10× with the length of the ' +
    "pipeline; batches of about 10,000 commands bound the server's memory; scripts are sent with EVALSHA in a pipeline, " +
    'after SCRIPT LOAD. At a round trip of 250 ms, four requests a second are possible however fast the server is.',
  publishedPanels: [
    published({
      id: 'published-pings',
      title: 'Published: 10,000 PINGs',
      chart: 'bar',
      x: { title: 'issued', values: ['without pipelining', 'with pipelining'] },
      y: { title: 'seconds' },
      series: [{ name: 'Ruby', values: [1.185, 0.251] }],
    }),
  ],
  async run(lab) {
    return [await tenThousand(lab), await byRoundTrip(lab), await serverMemory(lab), await loadedScripts(lab)];
  },
  findings(panels) {
    const seconds = (arm: string, way: string) => medianAt(panels, 'pings', arm, way);
    const far = (series: string) => medianAt(panels, 'round-trips', series, '250');
    const memory = (x: string) => medianAt(panels, 'memory', 'peak of the server', x);
    return [
      'Different from the published experiment: no pipeline is written; each PING is awaited on its own. Issued one ' +
        'after the other they cannot be merged, by whatever client; issued at once, from as many places as you like, ' +
        'they can.',
      `In sequence ${say(seconds('coalesced', 'in sequence'))} s (plain ${say(seconds('plain', 'in sequence'))} s), at ` +
        `once ${say(seconds('coalesced', 'at once'))} s (plain ${say(seconds('plain', 'at once'))} s, auto-pipelining ` +
        `${say(seconds('auto', 'at once'))} s): a factor of ` +
        `${ratio(seconds('coalesced', 'in sequence'), seconds('coalesced', 'at once'))} against the published ` +
        `${ratio(1.185, 0.251)}.`,
      `At 250 ms a sequence does ${say(far('in sequence, coalesced'))} PINGs a second, and no client can help; at once ` +
        `it is ${say(far('at once, plain'))} for plain ioredis, ${say(far('at once, auto'))} with auto-pipelining and ` +
        `${say(far('at once, coalesced'))} coalesced: what is sent without waiting for replies pays the distance once, ` +
        'whoever sends it.',
      `100,000 GETs of 1 KiB at once cost the server ${say(memory('100'))} MiB with \`maxInFlight: 100\`, ` +
        `${say(memory('10000'))} MiB with the default of 10,000, ${say(memory('100000'))} MiB with 100,000, and ` +
        `${say(memory('plain ioredis'))} MiB from plain ioredis. How much of it piles up depends on how fast the client ` +
        'reads; the bound holds for a client that reads nothing, too.',
      `A script that is not loaded costs every call of the burst a second round trip (EVALSHA, NOSCRIPT, EVAL): ` +
        `${say(medianAt(panels, 'scripts', 'coalesced', 'not loaded'))} calls a second instead of ` +
        `${say(medianAt(panels, 'scripts', 'coalesced', 'loaded'))}. SCRIPT LOAD at start is worth its line.`,
    ];
  },
};
