import { exactly, medianAt, type Panel, type Series } from '../panel.js';
import type { Experiment } from './experiment.js';
import { cellsOf, type Grid, panelOf, say } from './grid.js';
import type { Lab } from './lab.js';
import { commandsPerSecond, cpuPerCommand, meanBatch, modelFrom, type ScaleModel } from './scale-model.js';

const DATA = { keys: 1000, valueBytes: 100 };
const DEPTHS = ['1', '10', '100', '1000'];
const CALLERS = 200;
const NODES = ['1', '2', '5', '10', '20', '50', '100'];
const ROUND_TRIPS = ['0.2', '1', '5'];
const PROCESSES = ['1', '2', '4'];
const LOOPS_OF_PROCESS = 50;
/** Of the fleet on paper. */
const FLEET = { processes: 1000, turns: 1000, rates: ['1,000/s', '10,000/s', '100,000/s'], nodes: [1, 10, 100] };

async function byBatch(lab: Lab): Promise<{ panel: Panel; throughput: Panel; model: ScaleModel }> {
  const arm = await lab.arm('coalesced');
  const grid: Grid = {
    xs: lab.some(DEPTHS),
    series: ['measured'],
    run: (_, depth) => () => arm.task('manyClients', load(lab, 1, Number(depth))),
  };
  const readings = await lab.measure(cellsOf(grid));
  await lab.closeArms();
  const found = (depth: string, figure: string) =>
    readings.get(`measured, ${depth}`)?.spread(figure)?.median ?? Number.NaN;
  const figures = (depth: string) => ({ cpuUs: found(depth, 'cpuUs'), perSecond: found(depth, 'perSecond') });
  const model = modelFrom(figures('1'), { depth: 1000, ...figures('1000') });
  const cpu = panelOf(grid, readings, 'cpuUs', {
    id: 'batch',
    title: 'CPU of the client per command, by callers on one connection',
    x: 'callers = commands a batch',
    y: { title: 'µs', log: true },
    chart: 'line',
  });
  const throughput = panelOf(grid, readings, 'perSecond', {
    id: 'batch-throughput',
    title: 'Commands a second, by callers on one connection',
    x: 'callers = commands a batch',
    y: { title: 'commands a second', log: true },
    chart: 'line',
  });
  return {
    panel: beside(cpu, (depth) => cpuPerCommand(model, Number(depth))),
    throughput: beside(throughput, (depth) => commandsPerSecond(model, Number(depth), 0)),
    model,
  };
}

async function byNodes(lab: Lab, model: ScaleModel): Promise<Panel> {
  const arm = await lab.arm('coalesced');
  const grid: Grid = {
    xs: lab.some(NODES),
    series: ['measured'],
    run: (_, nodes) => () => arm.task('manyClients', load(lab, Number(nodes), CALLERS / Number(nodes))),
  };
  const readings = await lab.measure(cellsOf(grid));
  await lab.closeArms();
  const panel = panelOf(grid, readings, 'cpuUs', {
    id: 'nodes',
    title: `CPU of the client per command: ${CALLERS} callers over so many nodes or connections`,
    x: 'nodes or connections',
    y: { title: 'µs' },
    chart: 'line',
  });
  return beside(panel, (nodes) => cpuPerCommand(model, CALLERS / Number(nodes)));
}

async function byRoundTrip(lab: Lab, model: ScaleModel): Promise<Panel> {
  const xs = lab.some(ROUND_TRIPS);
  const depths = lab.some(DEPTHS);
  const arms = new Map(
    await Promise.all(
      xs.map(async (x) => {
        const url = await lab.delayed(lab.server, Number(x));
        return [x, await lab.arm('coalesced', {}, lab.server, url)] as const;
      }),
    ),
  );
  const nameOf = (depth: string) => (depth === '1' ? '1 caller' : `${depth} callers`);
  const grid: Grid = {
    xs,
    series: depths.map(nameOf),
    run: (series, x) => () => arms.get(x)!.task('manyClients', load(lab, 1, Number.parseInt(series, 10))),
  };
  const readings = await lab.measure(cellsOf(grid), { rounds: 2, warmUp: false });
  await lab.closeArms();
  const panel = panelOf(grid, readings, 'perSecond', {
    id: 'round-trips',
    title: 'Commands a second by round-trip time',
    x: 'round trip, ms',
    y: { title: 'commands a second', log: true },
    chart: 'line',
  });
  const models: Series[] = depths.map((depth) => ({
    name: `${nameOf(depth)}, model`,
    values: xs.map((x) => exactly(commandsPerSecond(model, Number(depth), Number(x)))),
  }));
  return { ...panel, series: [...panel.series, ...models] };
}

async function byProcesses(lab: Lab): Promise<Panel[]> {
  const most = Number(PROCESSES.at(-1));
  const arms = await Promise.all(Array.from({ length: most }, () => lab.arm('coalesced')));
  const grid: Grid = {
    xs: lab.some(PROCESSES),
    series: ['measured'],
    run: (_, processes) => () =>
      lab.withServerCpu(lab.server, async () => {
        const running = arms.slice(0, Number(processes));
        const all = await Promise.all(running.map((arm) => arm.task('manyClients', load(lab, 1, LOOPS_OF_PROCESS))));
        const sum = (name: string) => all.reduce((total, figures) => total + (figures[name] as number), 0);
        return { commands: sum('commands'), perSecond: sum('perSecond') };
      }),
  };
  const readings = await lab.measure(cellsOf(grid));
  await lab.closeArms();
  const base = { x: 'processes', chart: 'none' as const };
  return [
    panelOf(grid, readings, 'perSecond', {
      ...base,
      id: 'processes',
      title: `Commands a second of so many processes on one host, ${LOOPS_OF_PROCESS} callers each`,
      y: { title: 'commands a second' },
    }),
    panelOf(grid, readings, 'serverCpuPerCommand', {
      ...base,
      id: 'processes-server',
      title: 'CPU of the server per command, by processes',
      y: { title: 'µs' },
    }),
  ];
}

/** On paper only: commands in a batch, and what the client pays, if commands go to nodes at random. */
function fleet(model: ScaleModel): Panel[] {
  const x = { title: 'commands of a process', values: FLEET.rates };
  const rates = FLEET.rates.map((rate) => Number(rate.replace(/\D/g, '')));
  const series = (value: (rate: number, nodes: number) => number): Series[] =>
    FLEET.nodes.map((nodes) => ({
      name: `${nodes} ${nodes === 1 ? 'node' : 'nodes'}`,
      values: rates.map((rate) => exactly(value(rate, nodes))),
    }));
  const batch = (rate: number, nodes: number) => meanBatch(rate, FLEET.turns, nodes);
  return [
    {
      id: 'fleet-batch',
      title: `Model: commands a batch, at ${FLEET.turns.toLocaleString('en-US')} turns of the event loop a second`,
      x,
      y: { title: 'commands' },
      series: series(batch),
      chart: 'none',
    },
    {
      id: 'fleet-writes',
      title: `Model: million writes a second of ${FLEET.processes.toLocaleString('en-US')} processes`,
      x,
      y: { title: 'million writes a second' },
      series: series((rate, nodes) => (FLEET.processes * rate) / batch(rate, nodes) / 1e6),
      chart: 'none',
    },
    {
      id: 'fleet-cpu',
      title: 'Model: CPU of the client per command',
      x,
      y: { title: 'µs' },
      series: series((rate, nodes) => cpuPerCommand(model, batch(rate, nodes))),
      chart: 'none',
    },
  ];
}

function load(lab: Lab, clients: number, depth: number): Record<string, number> {
  return { clients, depth, keys: DATA.keys, bytes: DATA.valueBytes, seconds: lab.seconds };
}

/** The model's figures as one more series. */
function beside(panel: Panel, model: (x: string) => number): Panel {
  return {
    ...panel,
    series: [...panel.series, { name: 'model', values: panel.x.values.map((x) => exactly(model(x))) }],
  };
}

export const scale: Experiment = {
  id: 'scale',
  title: 'How cost grows',
  steps: 110,
  published: '',
  publishedPanels: [],
  async run(lab) {
    await lab.server.seed({ kind: 'burst', operation: 'get', size: 1, data: DATA });
    const { panel, throughput, model } = await byBatch(lab);
    return [
      panel,
      throughput,
      await byNodes(lab, model),
      await byRoundTrip(lab, model),
      ...(await byProcesses(lab)),
      ...fleet(model),
    ];
  },
  findings(panels) {
    const cpu = (depth: string) => medianAt(panels, 'batch', 'measured', depth);
    const nodes = (count: string) => medianAt(panels, 'nodes', 'measured', count);
    const fleetBatch = (nodeCount: string, rate: string) => medianAt(panels, 'fleet-batch', nodeCount, rate);
    return [
      `A round trip costs the client ${say(cpu('1'))} µs with one command in it; per command it is ${say(cpu('100'))} µs ` +
        `with 100 and ${say(cpu('1000'))} µs with 1,000.`,
      `${CALLERS} callers over 1, 10 and 100 nodes: ${say(nodes('1'))}, ${say(nodes('10'))} and ${say(nodes('100'))} µs ` +
        'a command. A batch is per connection: what is spread over n nodes is in batches of an nth.',
      'The distances are made by a proxy on the same machine. Its own work is in what was measured and not in the model, ' +
        'and weighs most at 0.2 ms.',
      'More nodes cost less than the model says: replies of several connections that have arrived are read in one turn ' +
        'of the event loop, which the model counts for each of them.',
      `In the fleet on paper, a process with 10,000 commands a second has batches of ` +
        `${say(fleetBatch('1 node', '10,000/s'))} to one node and of ${say(fleetBatch('100 nodes', '10,000/s'))} to each ` +
        'of 100: there coalescing has stopped paying. What helps then is to bring commands together that belong ' +
        'together: hash tags, so that a request reads from one node; fewer, larger processes; or a `schedule` or ' +
        '`maxFlushDelay` that waits for more.',
    ];
  },
};
