import { element, VARIANTS } from './format.js';
import uPlot from './uplot/uPlot.esm.js';

const HEIGHT = 210;
const FONT = '12px system-ui, "DejaVu Sans", sans-serif';
const charts = new Set();

// The canvases know no CSS: they are drawn again in the colours of the other mode.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const chart of charts) chart.rebuild();
});

function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = [
    'ink',
    'soft',
    'grid',
    'plain',
    'plain-pale',
    'plain-fill',
    'coalesced',
    'coalesced-pale',
    'coalesced-fill',
    'cached',
  ];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/**
 * A figure with a title, one line of explanation, the plot, and what it says in words for those who do not see it.
 * `options(colours)` gives uPlot's, `readout(index, data)` the line under the plot while the pointer is over it.
 */
export class Chart {
  #plot;
  #uplot;
  #options;
  #readout;
  #data;
  #empty;
  #height;

  constructor({ parent, id, title, explanation, hint, key, blocks, options, readout, empty, height = HEIGHT }) {
    this.#options = options;
    this.#readout = element('p', { class: 'readout', 'aria-hidden': 'true' });
    this.#plot = element('div', { class: 'plot', id: `chart-${id}`, role: 'img', 'data-hint': hint });
    this.#height = height;
    this.readoutOf = readout;
    this.title = title;
    const caption = element(
      'figcaption',
      {},
      element('h3', {}, title),
      element('p', { class: 'explanation' }, explanation),
      keyOf(key, blocks),
    );
    parent.append(element('figure', { class: 'card' }, caption, this.#plot, this.#readout));
    this.#data = this.#empty = empty;
    this.clear();
    this.rebuild();
    charts.add(this);
    new ResizeObserver(() => this.#fit()).observe(this.#plot);
  }

  /** What stands in place of the plot as long as it is empty. */
  set hint(text) {
    this.#plot.dataset.hint = text;
  }

  /** `words` is the chart for a screen reader. */
  draw(data, words) {
    this.#data = data;
    this.#plot.dataset.empty = 'false';
    this.#plot.setAttribute('aria-label', `${this.title}: ${words}`);
    this.#uplot.setData(data);
  }

  clear() {
    this.#data = this.#empty;
    this.#plot.dataset.empty = 'true';
    this.#plot.setAttribute('aria-label', `${this.title}: nothing measured yet`);
    this.#uplot?.setData(this.#data);
  }

  rebuild() {
    this.#uplot?.destroy();
    const options = this.#options(colours());
    this.#uplot = new uPlot(
      {
        width: Math.max(200, this.#plot.clientWidth),
        height: this.#height,
        padding: [10, 28, 0, 0],
        legend: { show: false },
        cursor: { points: { show: false }, drag: { x: false, y: false } },
        hooks: { setCursor: [(plot) => this.#showReadout(plot.cursor.idx)] },
        ...options,
      },
      this.#data,
      this.#plot,
    );
  }

  #fit() {
    const width = this.#plot.clientWidth;
    // Hidden views have no width.
    if (width > 0 && width !== this.#uplot.width) this.#uplot.setSize({ width, height: this.#height });
  }

  #showReadout(index) {
    const shown = index !== null && index !== undefined && this.#plot.dataset.empty === 'false';
    this.#readout.textContent = shown ? this.readoutOf(index, this.#data) : '';
  }
}

/** What the colours and dashes are, from colour to name; a screen reader gets the words of `draw`. */
export function keyOf(names, blocks = false) {
  const entries = Object.entries(names).map(([colour, name]) => element('span', { class: colour }, element('i'), name));
  return element('p', { class: blocks ? 'key blocks' : 'key', 'aria-hidden': 'true' }, ...entries);
}

/** A key of clients by their own names. */
export function namesOf(variants) {
  return Object.fromEntries(variants.map((variant) => [variant, variant]));
}

export function axis({ ink, soft, grid }, more) {
  return { stroke: soft ?? ink, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false }, ...more };
}

/** A line per client: plain dashed, cached dotted, so that colour is not all that tells them apart. */
export function lines(colour) {
  const common = { width: 2.25, spanGaps: true, points: { show: false } };
  return [
    {},
    { ...common, stroke: colour.plain, dash: [6, 4] },
    { ...common, stroke: colour.coalesced, fill: colour['coalesced-fill'] },
    { ...common, stroke: colour.cached, dash: [2, 3] },
  ];
}

/** All clients' points over one axis of time. */
export function joined(points, field) {
  const tables = VARIANTS.map((variant) => {
    const own = points.filter((point) => point.variant === variant);
    return [own.map(({ seconds }) => seconds), own.map((point) => point[field])];
  });
  return uPlot.join(tables);
}

export const { bars, stepped } = uPlot.paths;
