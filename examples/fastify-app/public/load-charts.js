import { axis, bars, Chart, joined, lines, namesOf, stepped } from './charts.js';
import { digits, median, perWrite, SENDERS, tick, VARIANTS } from './format.js';

const HINT = 'Run the load to fill this chart';
const WARMING_UP = 'Warming up each client for a second: the first points come then';
/** A logarithmic axis has no 0: that is drawn at its bottom, as what is below this. */
const LOWEST = 0.001;
/** Pixels from one label of the batch sizes to the next. */
const SIZE_LABEL_PX = 28;
const X_SIZE = 30;
const Y_SIZE = 58;
const EMPTY = [[], ...VARIANTS.map(() => [])];
const EMPTY_SIZES = [[], ...SENDERS.map(() => [])];

/** The six charts of a load run. */
export class LoadCharts {
  #overTime;
  #latency;
  #sizes;
  #edges = [];
  #seconds = 4;

  constructor(parent) {
    const overTime = (options) => this.#timeChart({ parent, ...options });
    const perSecond = overTime({
      id: 'requests',
      title: 'Requests per second',
      explanation: 'Higher is better: answers of the service, each quarter of a second.',
      field: 'requestsPerSecond',
      unit: '/s',
    });
    const p99 = overTime({
      id: 'p99',
      title: 'Latency, 99th percentile',
      explanation: 'Lower is better: what the slowest request in a hundred waited, in milliseconds.',
      field: 'p99Ms',
      unit: ' ms',
    });
    this.#latency = this.#latencyChart(parent);
    this.#sizes = this.#sizesChart(parent);
    const writes = overTime({
      id: 'writes',
      title: 'Socket writes',
      explanation:
        'Lower is better: 1 is a write for each command, 1 in 100 one for a hundred, the bottom one for a thousand or none.',
      field: 'writesPerCommand',
      unit: '',
      show: perWrite,
      logarithmic: true,
    });
    const redisCpu = overTime({
      id: 'redis-cpu',
      title: 'Redis CPU per command',
      explanation: 'What the server itself spent on a command, in microseconds, as INFO tells it.',
      field: 'redisCpuUsPerCommand',
      unit: ' µs',
    });
    this.#overTime = [perSecond, p99, writes, redisCpu];
  }

  /** A run begins with a second for each client that is not shown. */
  set running(running) {
    for (const chart of this.#all) chart.hint = running ? WARMING_UP : HINT;
  }

  get #all() {
    return [...this.#overTime.map(({ chart }) => chart), this.#latency, this.#sizes];
  }

  set edges(edges) {
    this.#edges = edges;
  }

  clear(seconds = this.#seconds) {
    this.#seconds = seconds;
    for (const chart of this.#all) chart.clear();
  }

  /** `counts` has, by client, `latencies` and `commandsBySize`. */
  draw(points, counts) {
    for (const { chart, field, unit, lowest, show } of this.#overTime) {
      const words = VARIANTS.map((variant) => {
        const own = points.filter((point) => point.variant === variant).map((point) => point[field]);
        return `${variant} ${own.length === 0 ? 'not measured yet' : `${show(median(own))}${unit}`}`;
      });
      const drawn = points.map((point) => ({ ...point, [field]: Math.max(point[field], lowest) }));
      chart.draw(joined(drawn, field), `median ${words.join(', ')}`);
    }
    this.#drawLatency(counts);
    this.#drawSizes(counts);
  }

  #timeChart({ field, unit, logarithmic, show = digits, ...figure }) {
    const options = (colour) => ({
      scales: {
        x: { time: false, range: () => [0, this.#seconds] },
        y: logarithmic ? { distr: 3, range: decades } : { range: (_plot, _min, max) => [0, (max || 1) * 1.12] },
      },
      axes: [
        axis(colour, { values: (_plot, splits) => splits.map((split) => `${tick(split)} s`), space: 60, size: X_SIZE }),
        axis(colour, {
          ...(logarithmic ? { splits: (_plot, _axis, min, max) => powersOfTen(min, max) } : {}),
          values: (_plot, splits) => splits.map(logarithmic ? fraction : tick),
          size: Y_SIZE,
        }),
      ],
      series: lines(colour),
    });
    const readout = (index, [seconds, ...values]) =>
      [
        `${seconds[index].toFixed(1)} s`,
        ...named(
          values.map((list) => list[index]),
          unit,
          show,
        ),
      ].join(' · ');
    const chart = new Chart({ ...figure, hint: HINT, key: namesOf(VARIANTS), empty: EMPTY, options, readout });
    return { chart, field, unit, show, lowest: logarithmic ? LOWEST : 0 };
  }

  #latencyChart(parent) {
    const options = (colour) => {
      const [, plain, coalesced, cached] = lines(colour);
      const paths = stepped({ align: 1 });
      return {
        scales: {
          x: { time: false, distr: 3, range: (_plot, min, max) => [min ?? 1, max ?? 10] },
          y: { range: (_plot, _min, max) => [0, (max || 1) * 1.12] },
        },
        axes: [
          axis(colour, {
            splits: (_plot, _axis, min, max) => powersOfTen(min, max),
            values: (_plot, splits) => splits.map((split) => `${tick(split)} ms`),
            size: X_SIZE,
          }),
          axis(colour, { values: (_plot, splits) => splits.map((split) => `${split}%`), size: Y_SIZE }),
        ],
        series: [
          {},
          { ...plain, paths, fill: colour['plain-fill'] },
          { ...coalesced, paths, fill: colour['coalesced-fill'] },
          { ...cached, paths },
        ],
      };
    };
    const readout = (index, [edges, ...shares]) =>
      [
        `from ${digits(edges[index])} ms`,
        ...named(
          shares.map((list) => list[index]),
          '%',
        ),
      ].join(' · ');
    return new Chart({
      parent,
      id: 'latency',
      title: 'Latency distribution',
      explanation: 'Further left is better: the share of requests by what they waited, on a logarithmic axis.',
      hint: HINT,
      key: namesOf(VARIANTS),
      empty: [[1, 10], ...VARIANTS.map(() => [null, null])],
      options,
      readout,
    });
  }

  #drawLatency(counts) {
    const shares = VARIANTS.map((variant) => sharesOf(counts[variant]?.latencies ?? this.#edges.map(() => 0)));
    const used = this.#edges.map((_, index) => index).filter((index) => shares.some((list) => list[index] > 0));
    if (used.length === 0) return;
    // One interval more on either side, so that the steps come down again.
    const from = Math.max(0, used[0] - 1);
    const to = Math.min(this.#edges.length, used.at(-1) + 3);
    const words = shares.map((list, which) => `${VARIANTS[which]} mostly from ${digits(this.#edges[peak(list)])} ms`);
    this.#latency.draw(
      [this.#edges, ...shares].map((list) => list.slice(from, to)),
      words.join(', '),
    );
  }

  #sizesChart(parent) {
    const options = (colour) => ({
      scales: {
        x: { time: false, range: (_plot, _min, max) => [-0.7, (max ?? 0) + 0.7] },
        y: { range: () => [0, 105] },
      },
      axes: [
        axis(colour, {
          grid: { show: false },
          splits: (plot) => every(plot.data[0], Math.ceil((plot.data[0].length * SIZE_LABEL_PX) / widthOf(plot))),
          values: (_plot, splits) => splits.map((power) => String(2 ** power)),
          space: 20,
          size: X_SIZE,
        }),
        axis(colour, { values: (_plot, splits) => splits.map((split) => `${split}%`), size: Y_SIZE }),
      ],
      series: [{}, bar(colour.plain, -1), bar(colour.coalesced, 1)],
    });
    const readout = (index, [powers, ...shares]) =>
      [
        `${sizeName(powers[index])} in a write`,
        ...named(
          shares.map((list) => list[index]),
          '%',
        ),
      ].join(' · ');
    return new Chart({
      parent,
      id: 'sizes',
      title: 'Batch sizes',
      explanation:
        'The share of sent commands by how many, at most, left in one write: plain, each alone. What the cache answers is not sent.',
      hint: HINT,
      key: namesOf(SENDERS),
      blocks: true,
      empty: EMPTY_SIZES,
      options,
      readout,
    });
  }

  #drawSizes(counts) {
    const bounds = SENDERS.flatMap((variant) => Object.keys(counts[variant]?.commandsBySize ?? {}).map(Number));
    if (bounds.length === 0) return;
    const powers = Array.from({ length: Math.log2(Math.max(...bounds)) + 1 }, (_, power) => power);
    const shares = SENDERS.map((variant) =>
      sharesOf(powers.map((power) => counts[variant]?.commandsBySize[2 ** power] ?? 0)),
    );
    const words = shares.map((list, which) => `${SENDERS[which]} mostly ${sizeName(peak(list))} in a write`);
    this.#sizes.draw([powers, ...shares], words.join(', '));
  }
}

function bar(colour, align) {
  return {
    stroke: colour,
    fill: colour,
    width: 0,
    paths: bars({ size: [0.4, 44], align, radius: 0.1 }),
    points: { show: false },
  };
}

/** Between the axes, in pixels of the page. */
function widthOf({ bbox }) {
  return bbox.width / devicePixelRatio;
}

/** Each `step`-th one. */
function every(list, step) {
  return list.filter((_, index) => index % Math.max(1, step) === 0);
}

function powersOfTen(min, max) {
  const first = Math.ceil(Math.log10(min) - 1e-9);
  const last = Math.floor(Math.log10(max) + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => 10 ** (first + index));
}

function decades(_plot, min, max) {
  return [10 ** Math.floor(Math.log10(min || 0.1)), 10 ** Math.ceil(Math.log10((max || 1) * 1.01))];
}

/** `1 in 100` for 0.01: writes per command, in letters that do not reach into the labels below. */
function fraction(value) {
  if (value >= 1) return tick(value);
  return value > LOWEST ? `1 in ${tick(1 / value)}` : `1 in ${tick(LOWEST / value)}k`;
}

function named(values, unit, show = digits) {
  return VARIANTS.flatMap((variant, which) =>
    Number.isFinite(values[which]) ? [`${variant} ${show(values[which])}${unit}`] : [],
  );
}

function sharesOf(counts) {
  const sum = counts.reduce((total, count) => total + count, 0);
  return counts.map((count) => (sum === 0 ? 0 : (100 * count) / sum));
}

function peak(list) {
  return list.indexOf(Math.max(...list));
}

function sizeName(power) {
  return power < 2 ? String(2 ** power) : `${2 ** (power - 1) + 1}–${2 ** power}`;
}
