import { exactly, type Figure, medianAt, type Series, say } from '../report/figure.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';
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
const MEASURED = 'measured';

async function byBatch(harness: Harness): Promise<{ figures: Figure[]; model: ScaleModel }> {
  const variant = await harness.open('coalesced');
  const readings = await harness.measure({
    x: ['callers = commands per batch', harness.some(DEPTHS)],
    series: [MEASURED],
    run: (_, depth) => () => variant.task('manyClients', load(harness, 1, Number(depth))),
  });
  await harness.closeVariants();
  const found = (depth: string) => ({
    cpuUs: readings.at(MEASURED, depth, 'cpuUs')?.median ?? Number.NaN,
    perSecond: readings.at(MEASURED, depth, 'perSecond')?.median ?? Number.NaN,
  });
  const model = modelFrom(found('1'), { depth: 1000, ...found('1000') });
  const callers = 'by callers on one connection';
  const line = { chart: 'line', log: true } as const;
  const cpu = readings.figure('batch', `CPU of the client per command, ${callers}`, 'cpuUs', 'µs', line);
  const unit = 'commands/s';
  const throughput = readings.figure('batch-throughput', `Commands per second, ${callers}`, 'perSecond', unit, line);
  const figures = [
    beside(cpu, (depth) => cpuPerCommand(model, Number(depth))),
    beside(throughput, (depth) => commandsPerSecond(model, Number(depth), 0)),
  ];
  return { figures, model };
}

async function byNodes(harness: Harness, model: ScaleModel): Promise<Figure> {
  const variant = await harness.open('coalesced');
  const readings = await harness.measure({
    x: ['nodes or connections', harness.some(NODES)],
    series: [MEASURED],
    run: (_, nodes) => () => variant.task('manyClients', load(harness, Number(nodes), CALLERS / Number(nodes))),
  });
  await harness.closeVariants();
  const title = `CPU of the client per command: ${CALLERS} callers over so many nodes or connections`;
  const figure = readings.figure('nodes', title, 'cpuUs', 'µs', { chart: 'line' });
  return beside(figure, (nodes) => cpuPerCommand(model, CALLERS / Number(nodes)));
}

async function byRoundTrip(harness: Harness, model: ScaleModel): Promise<Figure> {
  const places = harness.some(ROUND_TRIPS);
  const depths = harness.some(DEPTHS);
  const variants = await harness.openEach(places, async (place) =>
    harness.open('coalesced', { url: await harness.delayed(Number(place)) }),
  );
  const nameOf = (depth: string) => (depth === '1' ? '1 caller' : `${depth} callers`);
  const readings = await harness.measure(
    {
      x: ['round trip, ms', places],
      series: depths.map(nameOf),
      run: (series, place) => () =>
        variants.get(place)!.task('manyClients', load(harness, 1, Number.parseInt(series, 10))),
    },
    { rounds: 2, warmUp: false },
  );
  await harness.closeVariants();
  const title = 'Commands per second by round-trip time';
  const figure = readings.figure('round-trips', title, 'perSecond', 'commands/s', { chart: 'line', log: true });
  const models: Series[] = depths.map((depth) => ({
    name: `${nameOf(depth)}, model`,
    values: places.map((place) => exactly(commandsPerSecond(model, Number(depth), Number(place)))),
  }));
  return { ...figure, series: [...figure.series, ...models] };
}

async function byProcesses(harness: Harness): Promise<Figure[]> {
  const all = await harness.openEach(
    Array.from({ length: Number(PROCESSES.at(-1)) }, (_, index) => index),
    () => harness.open('coalesced'),
  );
  const readings = await harness.measure({
    x: ['processes', harness.some(PROCESSES)],
    series: [MEASURED],
    run: (_, processes) => () =>
      harness.withServerCpu(async () => {
        const running = [...all.values()].slice(0, Number(processes));
        const order = load(harness, 1, LOOPS_OF_PROCESS);
        const found = await Promise.all(running.map((variant) => variant.task('manyClients', order)));
        const sum = (name: string) => found.reduce((total, measured) => total + (measured[name] as number), 0);
        return { commands: sum('commands'), perSecond: sum('perSecond') };
      }),
  });
  await harness.closeVariants();
  const title = `Commands per second of so many processes on one host, ${LOOPS_OF_PROCESS} callers each`;
  const ofServer = 'CPU of the server per command, by processes';
  return [
    readings.figure('processes', title, 'perSecond', 'commands/s'),
    readings.figure('processes-server', ofServer, 'serverCpuPerCommand', 'µs'),
  ];
}

/** On paper only: commands in a batch, and what the client pays, if commands go to nodes at random. */
function fleet(model: ScaleModel): Figure[] {
  const rates = FLEET.rates.map((rate) => Number(rate.replace(/\D/g, '')));
  const figure = (id: string, title: string, unit: string, value: (rate: number, nodes: number) => number): Figure => ({
    id: `fleet-${id}`,
    title: `Model: ${title}`,
    x: { title: 'commands of a process', values: FLEET.rates },
    y: { title: unit },
    series: FLEET.nodes.map((nodes) => ({
      name: `${nodes} ${nodes === 1 ? 'node' : 'nodes'}`,
      values: rates.map((rate) => exactly(value(rate, nodes))),
    })),
  });
  const [turns, processes] = [FLEET.turns, FLEET.processes].map((count) => count.toLocaleString('en-US'));
  const batch = (rate: number, nodes: number) => meanBatch(rate, FLEET.turns, nodes);
  const writes = (rate: number, nodes: number) => (FLEET.processes * rate) / batch(rate, nodes) / 1e6;
  return [
    figure('batch', `commands per batch, at ${turns} turns of the event loop per second`, 'commands', batch),
    figure('writes', `million writes per second of ${processes} processes`, 'million writes/s', writes),
    figure('cpu', 'CPU of the client per command', 'µs', (rate, nodes) => cpuPerCommand(model, batch(rate, nodes))),
  ];
}

function load(harness: Harness, clients: number, depth: number): Record<string, number> {
  return { clients, depth, keys: DATA.keys, bytes: DATA.valueBytes, seconds: harness.seconds };
}

/** The model's figures as one more series. */
function beside(figure: Figure, model: (place: string) => number): Figure {
  const values = figure.x.values.map((place) => exactly(model(place)));
  return { ...figure, series: [...figure.series, { name: 'model', values }] };
}

export const scale: Experiment = {
  id: 'scale',
  title: 'How cost grows',
  steps: 110,
  published: '',
  publishedFigures: [],
  async run(harness) {
    await harness.server.seed({ kind: 'burst', operation: 'get', size: 1, data: DATA });
    const { figures, model } = await byBatch(harness);
    return [
      ...figures,
      await byNodes(harness, model),
      await byRoundTrip(harness, model),
      ...(await byProcesses(harness)),
      ...fleet(model),
    ];
  },
  findings(figures) {
    const cpu = (depth: string) => say(medianAt(figures, 'batch', MEASURED, depth));
    const nodes = (count: string) => say(medianAt(figures, 'nodes', MEASURED, count));
    const fleetBatch = (nodeCount: string) => say(medianAt(figures, 'fleet-batch', nodeCount, '10,000/s'));
    return [
      `A round trip costs the client ${cpu('1')} µs with one command in it; per command it is ${cpu('100')} µs with 100 ` +
        `and ${cpu('1000')} µs with 1,000.`,
      `${CALLERS} callers over 1, 10 and 100 nodes: ${nodes('1')}, ${nodes('10')} and ${nodes('100')} µs per command. A ` +
        'batch is per connection: what is spread over n nodes is in batches of an nth.',
      'The distances are made by a proxy on the same machine. Its own work is in what was measured and not in the model, ' +
        'and weighs most at 0.2 ms.',
      'More nodes cost less than the model says: replies of several connections that have arrived are read in one turn ' +
        'of the event loop, which the model counts for each of them.',
      `In the fleet on paper, a process with 10,000 commands per second has batches of ${fleetBatch('1 node')} to one ` +
        `node and of ${fleetBatch('100 nodes')} to each of 100: there coalescing has stopped paying. What helps then is ` +
        'to bring commands together that belong together: hash tags, so that a request reads from one node; fewer, ' +
        'larger processes; or a `schedule` or `maxFlushDelay` that waits for more.',
    ];
  },
};
