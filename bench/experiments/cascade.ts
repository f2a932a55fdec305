import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { ArmProcess } from '../arm-process.js';
import { exactly, medianAt, type Panel, type PanelValue } from '../panel.js';
import type { Figures } from '../workload.js';
import type { Experiment } from './experiment.js';
import { cellsOf, type Grid, panelOf, ratio, say } from './grid.js';
import type { Lab, Readings } from './lab.js';

const CALLERS = 200;
const ARMS = ['plain', 'auto', 'coalesced'] as const;
const CONNECTIONS = ['1', '2', '4'];
/** The callers that are shown. */
const SHOWN = Array.from({ length: 21 }, (_, index) => Math.min(index * 10, CALLERS - 1));
const REQUESTS_PER_SECOND = 800;
const COMMANDS_PER_REQUEST = 20;

type Arms = ReadonlyMap<string, ArmProcess>;

async function cascades(lab: Lab): Promise<Panel[]> {
  await lab.server.seed({ kind: 'burst', operation: 'get', size: 1, data: { keys: 1000, valueBytes: 100 } });
  const arms: Arms = new Map(
    await Promise.all(
      ARMS.flatMap((arm) =>
        lab.some(CONNECTIONS).map(async (connections) => [`${arm} ${connections}`, await lab.arm(arm)] as const),
      ),
    ),
  );
  const grid = (way: string): Grid => ({
    xs: lab.some(CONNECTIONS),
    series: ARMS,
    run: (arm, connections) => () =>
      arms.get(`${arm} ${connections}`)!.task('cascade', {
        callers: CALLERS,
        connections: Number(connections),
        repetitions: lab.count(way === 'timed' ? 200 : 20, 3),
        way,
      }),
  });
  const timed = await lab.measure(cellsOf(grid('timed')));
  const calls = await systemCalls(lab, arms, grid('timed').xs);
  const counted = await lab.measure(cellsOf(grid('counted')), { rounds: 1, warmUp: false });
  await lab.closeArms();
  const by = (readings: ReadonlyMap<string, Readings>, figure: string, id: string, title: string, unit: string) =>
    panelOf(grid('timed'), readings, figure, { id, title, x: 'connections', y: { title: unit }, chart: 'none' });
  return [
    callers(timed),
    by(timed, 'first', 'first', `${CALLERS} GETs at once: when the first caller has its reply`, 'ms'),
    by(timed, 'last', 'last', `${CALLERS} GETs at once: when the last caller has its reply`, 'ms'),
    by(timed, 'loopDelayMs', 'loop-delay', 'Event-loop delay meanwhile, p99', 'ms'),
    by(counted, 'writes', 'writes', `Socket writes for ${CALLERS} GETs`, 'writes'),
    by(counted, 'reads', 'reads', `\`data\` events for ${CALLERS} GETs`, 'events'),
    ...(calls === undefined ? [] : [calls]),
  ];
}

/** Response time by the caller's place in the burst, over one connection. */
function callers(timed: ReadonlyMap<string, Readings>): Panel {
  return {
    id: 'callers',
    title: `${CALLERS} GETs at once on one connection: response time of each caller, first to last`,
    x: { title: 'caller', values: SHOWN.map((index) => `${index + 1}`) },
    y: { title: 'ms' },
    series: ARMS.map((arm) => {
      const medians: PanelValue[] = timed.get(`${arm}, 1`)?.spreads('medians') ?? [];
      return { name: arm, values: SHOWN.map((index) => medians[index] ?? null) };
    }),
    chart: 'line',
  };
}

/** System calls of the client's process for each burst, as strace counts them. */
async function systemCalls(lab: Lab, arms: Arms, connections: readonly string[]): Promise<Panel | undefined> {
  if (!(await hasStrace())) {
    lab.notes.add('strace is not on PATH: system calls were not counted.');
    return undefined;
  }
  const repetitions = lab.count(100, 5);
  const series: { name: string; values: PanelValue[] }[] = [];
  for (const name of ARMS) {
    const values: PanelValue[] = [];
    for (const count of connections) {
      const arm = arms.get(`${name} ${count}`)!;
      const options = { callers: CALLERS, connections: Number(count), repetitions, way: 'timed' };
      const calls = await straced(arm, () => arm.task('cascade', options));
      if (calls === undefined) {
        lab.notes.add('strace may not look at another process here: system calls were not counted.');
        return undefined;
      }
      values.push(exactly(calls / repetitions));
    }
    series.push({ name, values });
  }
  return {
    id: 'system-calls',
    title: `System calls for ${CALLERS} GETs, of all kinds and threads`,
    x: { title: 'connections', values: connections },
    y: { title: 'calls' },
    series,
    chart: 'none',
  };
}

async function hasStrace(): Promise<boolean> {
  return promisify(execFile)('strace', ['-V']).then(
    () => true,
    () => false,
  );
}

async function straced(arm: ArmProcess, run: () => Promise<Figures>): Promise<number | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-strace-'));
  const file = join(folder, 'calls');
  const strace = spawn('strace', ['-f', '-c', '-U', 'calls,name', '-o', file, '-p', String(arm.pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(strace, 'close');
  try {
    // It says so when it is attached, or why it is not.
    const said = await Promise.race([
      once(strace.stderr, 'data').then(String),
      ended.then(() => 'ended'),
      sleep(5000, 'silent'),
    ]);
    if (!said.includes('attached')) return undefined;
    await run();
    strace.kill('SIGINT');
    await ended;
    const calls = /^\s*(\d+)\s+total$/m.exec(await readFile(file, 'utf8'))?.[1];
    return calls === undefined ? undefined : Number(calls);
  } finally {
    strace.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  }
}

async function service(lab: Lab): Promise<Panel[]> {
  const arms = new Map(await Promise.all(ARMS.map(async (arm) => [arm as string, await lab.arm(arm)] as const)));
  const grid: Grid = {
    xs: ['average', 'p50', 'p99'],
    series: ARMS,
    run: (arm, x) =>
      x === 'average'
        ? () =>
            arms.get(arm)!.task('requests', {
              perSecond: REQUESTS_PER_SECOND,
              commands: COMMANDS_PER_REQUEST,
              seconds: lab.count(2, 0.05),
            })
        : undefined,
  };
  const readings = await lab.measure(cellsOf(grid), { warmUp: false });
  await lab.closeArms();
  const of = (arm: string, figure: string) => readings.get(`${arm}, average`)?.spread(figure) ?? null;
  return [
    {
      id: 'service',
      title: `A service at ${REQUESTS_PER_SECOND} requests a second, ${COMMANDS_PER_REQUEST} concurrent GETs each`,
      x: { title: 'response time', values: grid.xs },
      y: { title: 'ms' },
      series: ARMS.map((arm) => ({
        name: arm,
        values: ['averageMs', 'p50Ms', 'p99Ms'].map((figure) => of(arm, figure)),
      })),
      chart: 'bar',
    },
  ];
}

export const cascade: Experiment = {
  id: 'experiment-cascade',
  title: 'The latency cascade in Node',
  steps: 70,
  published:
    '200 concurrent GETs on one ioredis connection: response times that climb to 257 ms from the first caller to the ' +
    'last, `data` events up to 35 ms apart; cured by batching the writes with `writev`. A service at 800 requests/s ' +
    'whose average went to 60 ms.',
  publishedPanels: [
    {
      id: 'published-cascade',
      title: 'Published: 200 GETs at once',
      published: true,
      x: { title: 'measure', values: ['last caller', 'between `data` events, up to'] },
      y: { title: 'ms' },
      series: [{ name: 'ioredis', values: [exactly(257), exactly(35)] }],
      chart: 'none',
    },
  ],
  async run(lab) {
    return [...(await cascades(lab)), ...(await service(lab))];
  },
  findings(panels) {
    const last = (arm: string, connections = '1') => medianAt(panels, 'last', arm, connections);
    const first = (arm: string) => medianAt(panels, 'first', arm, '1');
    const writes = (arm: string) => medianAt(panels, 'writes', arm, '1');
    return [
      'Different from the published experiment: a server on the same machine with nothing else to do, and a process ' +
        'with nothing else to do either.',
      `Here the whole burst waits, not its tail alone: the first caller has its reply after ${say(first('plain'))} ms ` +
        `with plain ioredis (coalesced ${say(first('coalesced'))} ms), because the process makes all its writes before ` +
        'it reads the first reply. Time from first to last caller grows where reading and writing take turns: under load.',
      `The last of ${CALLERS} callers waits ${say(last('plain'))} ms with plain ioredis, ${say(last('auto'))} ms with ` +
        `auto-pipelining and ${say(last('coalesced'))} ms coalesced (${ratio(last('plain'), last('coalesced'))} sooner ` +
        `than plain), for ${say(writes('plain'))}, ${say(writes('auto'))} and ${say(writes('coalesced'))} socket writes.`,
      `More connections, as the source recommends: plain ioredis needs ${say(last('plain', '1'))} ms on one, ` +
        `${say(last('plain', '2'))} ms on two and ${say(last('plain', '4'))} ms on four; coalesced ` +
        `${say(last('coalesced', '1'))}, ${say(last('coalesced', '2'))} and ${say(last('coalesced', '4'))} ms.`,
    ];
  },
};
