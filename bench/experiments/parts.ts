import { exactly, type Figure, figureOf } from '../report/figure.js';
import type { PartedBurst } from '../tasks/parts.js';
import type { Experiment } from './experiment.js';
import type { Harness } from './harness.js';
import type { Readings } from './readings.js';

const SHORT = { keys: 1000, valueBytes: 100 };
const FEW = { keys: 200, valueBytes: 100 };
const LONG = { keys: 200, valueBytes: 16 * 1024 };
type Work = Pick<PartedBurst, 'operation' | 'size' | 'data'>;
const WORKS: Readonly<Record<string, Work>> = {
  '20 GETs': { operation: 'get', size: 20, data: SHORT },
  '50 GETs': { operation: 'get', size: 50, data: SHORT },
  '100 GETs': { operation: 'get', size: 100, data: SHORT },
  '200 GETs': { operation: 'get', size: 200, data: SHORT },
  '1,000 GETs': { operation: 'get', size: 1000, data: SHORT },
  '200 SETs': { operation: 'set', size: 200, data: SHORT },
  '20 GETs of 16 KiB': { operation: 'get', size: 20, data: LONG },
  '20 scripts': { operation: 'script', size: 20, data: FEW },
  '200 scripts': { operation: 'script', size: 200, data: FEW },
};
const PARTS = ['1', '2', '3', '4', '6', '8'];
const LEAD = 5;
const LED = ', led';
const ROUNDS = 7;

/** Throughput of each work relative to one write per burst. */
function gains(readings: Readings, works: readonly string[], places: readonly string[], led: boolean): Figure {
  const series = works.map((work) => {
    const one = readings.at(work, '1', 'perSecond')?.median;
    const values = places.map((place) => readings.at(led ? work + LED : work, place, 'perSecond')?.median);
    return { name: work, values: values.map((value) => (value && one ? exactly(value / one) : null)) };
  });
  const title = `Throughput by number of parts${led ? ` after a first one of ${LEAD}` : ''}`;
  const x = [led ? 'further parts' : 'parts', places] as const;
  return figureOf(led ? 'gain-led' : 'gain', title, x, 'relative to one write, more is better', series, {
    chart: 'line',
  });
}

async function measure(harness: Harness): Promise<Figure[]> {
  const works = harness.some(Object.keys(WORKS));
  const places = harness.some(PARTS);
  for (const name of works) {
    const { operation, data } = WORKS[name]!;
    await harness.server.seed({ kind: 'burst', operation, size: 1, data });
  }
  const readings = await harness.measureClients({
    x: ['parts', places],
    series: works.flatMap((name) => [name, name + LED]),
    rounds: ROUNDS,
    client: () => ({ variant: 'coalesced-immediate' }),
    run: (client, series, place) => {
      const led = series.endsWith(LED);
      const work = WORKS[led ? series.slice(0, -LED.length) : series]!;
      const order = { ...work, lead: led ? LEAD : 0, parts: Number(place), seconds: harness.seconds / 2 };
      return harness.withServerCpu(() => client.task('parts', order));
    },
  });
  return [
    gains(readings, works, places, false),
    gains(readings, works, places, true),
    readings.figure('throughput', 'Throughput', 'perSecond', 'commands/s'),
    readings.figure('cpu', 'CPU of the client per command', 'cpuUs', 'µs'),
    readings.figure('server-cpu', 'CPU of the server per command', 'serverCpuPerCommand', 'µs'),
    readings.figure('p50', 'Time from the first command to the last reply, median', 'p50', 'µs'),
    readings.figure('p99', 'The same, p99', 'p99', 'µs'),
  ];
}

export const parts: Experiment = {
  id: 'parts',
  title: 'Bursts in parts',
  steps: Object.keys(WORKS).length * 2 * PARTS.length * (ROUNDS + 1),
  publishedFigures: [],
  run: measure,
};
