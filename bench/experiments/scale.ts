import { exactly, type Figure, figureOf, type Series } from '../report/figure.js';
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
const COALESCED = { variant: 'coalesced' } as const;
const LINE = { chart: 'line', log: true } as const;

/** Several clients in one process, and several callers on each: `loadAt` gives both numbers. */
function byLoad(harness: Harness, x: string, places: readonly string[], loadAt: (place: number) => [number, number]) {
  return harness.measureClients({
    x: [x, harness.some(places)],
    series: [MEASURED],
    client: () => COALESCED,
    run: (client, _, place) => client.task('loops', load(harness, ...loadAt(Number(place)))),
  });
}

async function byBatch(harness: Harness): Promise<{ figures: Figure[]; model: ScaleModel }> {
  const readings = await byLoad(harness, 'callers = commands per batch', DEPTHS, (depth) => [1, depth]);
  const found = (depth: string) => ({
    cpuUs: readings.at(MEASURED, depth, 'cpuUs')?.median ?? Number.NaN,
    perSecond: readings.at(MEASURED, depth, 'perSecond')?.median ?? Number.NaN,
  });
  const model = modelFrom(found('1'), { depth: 1000, ...found('1000') });
  const titled = (title: string) => `${title}, by callers on one connection`;
  const cpu = readings.figure('batch', titled('CPU of the client per command'), 'cpuUs', 'µs', LINE);
  const speed = readings.figure('batch-throughput', titled('Commands per second'), 'perSecond', 'commands/s', LINE);
  const figures = [
    beside(cpu, (depth) => cpuPerCommand(model, Number(depth))),
    beside(speed, (depth) => commandsPerSecond(model, Number(depth), 0)),
  ];
  return { figures, model };
}

async function byNodes(harness: Harness, model: ScaleModel): Promise<Figure> {
  const readings = await byLoad(harness, 'nodes or connections', NODES, (nodes) => [nodes, CALLERS / nodes]);
  const title = `CPU of the client per command: ${CALLERS} callers over several nodes or connections`;
  const figure = readings.figure('nodes', title, 'cpuUs', 'µs', { chart: 'line' });
  return beside(figure, (nodes) => cpuPerCommand(model, CALLERS / Number(nodes)));
}

async function byRoundTrip(harness: Harness, model: ScaleModel): Promise<Figure> {
  const places = harness.some(ROUND_TRIPS);
  const depths = harness.some(DEPTHS);
  const urls = await harness.delayed(places);
  const nameOf = (depth: string) => (depth === '1' ? '1 caller' : `${depth} callers`);
  const readings = await harness.measureClients({
    x: ['round trip, ms', places],
    series: depths.map(nameOf),
    rounds: 2,
    warmUp: false,
    client: (_, place) => ({ ...COALESCED, url: urls.get(place)! }),
    run: (client, series) => client.task('loops', load(harness, 1, Number.parseInt(series, 10))),
  });
  const title = 'Commands per second by round-trip time';
  const figure = readings.figure('round-trips', title, 'perSecond', 'commands/s', LINE);
  const models: Series[] = depths.map((depth) => ({
    name: `${nameOf(depth)}, model`,
    values: places.map((place) => exactly(commandsPerSecond(model, Number(depth), Number(place)))),
  }));
  return { ...figure, series: [...figure.series, ...models] };
}

async function byProcesses(harness: Harness): Promise<Figure[]> {
  const all = await Promise.all(Array.from({ length: Number(PROCESSES.at(-1)) }, () => harness.open(COALESCED)));
  const readings = await harness.measure({
    x: ['processes', harness.some(PROCESSES)],
    series: [MEASURED],
    run: (_, processes) =>
      harness.withServerCpu(async () => {
        const order = load(harness, 1, LOOPS_OF_PROCESS);
        const found = await Promise.all(all.slice(0, Number(processes)).map((client) => client.task('loops', order)));
        const sum = (name: string) => found.reduce((total, measured) => total + Number(measured[name]), 0);
        return { commands: sum('commands'), perSecond: sum('perSecond') };
      }),
  });
  await harness.closeVariants();
  const title = `Commands per second of several processes on one host, ${LOOPS_OF_PROCESS} callers each`;
  const ofServer = 'CPU of the server per command, by processes';
  return [
    readings.figure('processes', title, 'perSecond', 'commands/s'),
    readings.figure('processes-server', ofServer, 'serverCpuPerCommand', 'µs'),
  ];
}

/** On paper only: commands in a batch, and what the client pays, if commands go to nodes at random. */
function fleet(model: ScaleModel): Figure[] {
  const rates = FLEET.rates.map((rate) => Number(rate.replace(/\D/g, '')));
  const figure = (id: string, title: string, unit: string, value: (rate: number, nodes: number) => number) => {
    const series = FLEET.nodes.map((nodes) => ({
      name: `${nodes} ${nodes === 1 ? 'node' : 'nodes'}`,
      values: rates.map((rate) => exactly(value(rate, nodes))),
    }));
    return figureOf(`fleet-${id}`, `Model: ${title}`, ['commands of a process', FLEET.rates], unit, series);
  };
  const [turns, processes] = [FLEET.turns, FLEET.processes].map((count) => count.toLocaleString('en-US'));
  const batch = (rate: number, nodes: number) => meanBatch(rate, FLEET.turns, nodes);
  const writes = (rate: number, nodes: number) => (FLEET.processes * rate) / batch(rate, nodes) / 1e6;
  return [
    figure('batch', `commands per batch, at ${turns} turns of the event loop per second`, 'commands', batch),
    figure('writes', `million writes per second of ${processes} processes`, 'million writes/s', writes),
    figure('cpu', 'CPU of the client per command', 'µs', (rate, nodes) => cpuPerCommand(model, batch(rate, nodes))),
  ];
}

function load({ seconds }: Harness, clients: number, depth: number) {
  return { clients, depth, data: DATA, seconds };
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
};
