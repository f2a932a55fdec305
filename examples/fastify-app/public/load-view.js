import { keyOf, namesOf } from './charts.js';
import { digits, disable, element, isDisabled, median, perWrite, VARIANTS } from './format.js';
import { LoadCharts } from './load-charts.js';

const NO_RUN = 'No run yet. Press “Run the load”.';

/** What a run comes to: shown as tiles (the first five) and in the table. */
const FIGURES = [
  {
    field: 'requestsPerSecond',
    name: 'Requests per second',
    note: 'answered by this service',
    unit: '',
    better: 'more',
    worse: 'fewer',
  },
  {
    field: 'p99Ms',
    name: 'Latency, 99th percentile',
    note: '99 of 100 took no longer',
    unit: ' ms',
    better: 'shorter',
    worse: 'longer',
    low: true,
  },
  {
    field: 'writesPerCommand',
    name: 'Socket writes',
    note: 'one per so many commands',
    unit: '',
    show: perWrite,
    better: 'fewer',
    worse: 'more',
    low: true,
  },
  {
    field: 'redisCpuUsPerCommand',
    name: 'Redis CPU per command',
    note: 'spent by the server',
    unit: ' µs',
    better: 'less',
    worse: 'more',
    low: true,
  },
  {
    field: 'serviceCpuUsPerRequest',
    name: 'Service CPU per request',
    note: 'spent by this Node process',
    unit: ' µs',
    better: 'less',
    worse: 'more',
    low: true,
  },
  { field: 'p50Ms', name: 'Latency, median', unit: ' ms', low: true },
  { field: 'requests', name: 'Requests in all', unit: '' },
];
const TILES = FIGURES.filter(({ better }) => better !== undefined);

/** The first view: sliders, the run and its progress, tiles, charts and table. */
export class LoadView {
  #request;
  #charts = new LoadCharts(document.querySelector('#charts'));
  #form = document.querySelector('#controls');
  #start = document.querySelector('#start');
  #stop = document.querySelector('#stop');
  #progress = document.querySelector('#progress');
  #label = document.querySelector('#progress-label');
  #running = false;
  #ready = false;
  #points = [];
  #counts = {};

  /** `request(method, path, body)` answers with JSON, or shows what went wrong and answers with nothing. */
  constructor(request) {
    this.#request = request;
    for (const input of this.#form.querySelectorAll('input')) {
      const shown = document.querySelector(`#${input.id}-value`);
      const show = () => {
        // Each client also warms up, and there are pauses.
        const all = input.id === 'seconds' ? `, ${4 * (Number(input.value) + 1)} in all` : '';
        shown.textContent = `${input.value}${all}`;
      };
      input.addEventListener('input', show);
      // A reload may bring back another value than the page's own.
      show();
    }
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#run();
    });
    this.#stop.addEventListener('click', () => this.#request('DELETE', 'live/run'));
    document.querySelector('#tiles').before(keyOf(namesOf(VARIANTS), true));
    this.#showFigures({});
  }

  /** Whether a run can be asked for at all. */
  set ready(ready) {
    this.#ready = ready;
    this.#showButtons();
  }

  setting({ latencyEdgesMs }) {
    this.#charts.edges = latencyEdgesMs;
  }

  /** The run's state, sent by the service; a page that connects gets the last one again. */
  runChanged(run) {
    if (run.state === 'running' && !this.#running) this.#clear(run.settings);
    this.#running = run.state === 'running';
    this.#charts.running = this.#running;
    this.#progress.value = run.fraction ?? (run.state === 'done' ? 1 : 0);
    this.#showButtons();
    if (run.state === 'none') {
      this.#clear();
      this.#say(NO_RUN);
      return;
    }
    const { connections, commands } = run.settings;
    const what = `${connections} connections, ${commands} ${commands === 1 ? 'command' : 'commands'} per request`;
    if (run.state === 'running') this.#say(`${capital(run.label)} …`);
    if (run.state === 'stopped') this.#say('Stopped. The figures are those until then.');
    if (run.state === 'failed') this.#say(`The run failed: ${run.reason}.`);
    if (run.state === 'done') {
      this.#clear(run.settings);
      this.#points = run.points;
      this.#charts.draw(run.points, run.figures);
      this.#showFigures(run.figures);
      this.#say(`Done: ${what}.`);
    }
  }

  sampled({ variant, latencies, commandsBySize, ...point }) {
    this.#points.push({ variant, ...point });
    this.#counts[variant] = { latencies, commandsBySize };
    this.#charts.draw(this.#points, this.#counts);
    this.#showFigures(this.#soFar());
  }

  async #run() {
    if (isDisabled(this.#start)) return;
    const numbers = [...new FormData(this.#form)].map(([name, text]) => [name, Number(text)]);
    disable(this.#start, true);
    await this.#request('POST', 'live/run', Object.fromEntries(numbers));
    this.#showButtons();
  }

  #clear(settings) {
    this.#points = [];
    this.#counts = {};
    this.#charts.clear(settings?.seconds);
    this.#showFigures({});
  }

  /** Medians of the points so far, until the run's own figures are there. */
  #soFar() {
    const fields = ['requestsPerSecond', 'p99Ms', 'writesPerCommand', 'redisCpuUsPerCommand'];
    const figures = {};
    for (const variant of VARIANTS) {
      const own = this.#points.filter((point) => point.variant === variant);
      if (own.length > 0) {
        figures[variant] = Object.fromEntries(fields.map((field) => [field, median(own.map((point) => point[field]))]));
      }
    }
    return figures;
  }

  // A screen reader speaks this: only what changed, never each step of the bar.
  #say(text) {
    if (this.#label.textContent !== text) this.#label.textContent = text;
  }

  #showButtons() {
    // A focused button that vanishes would lose the keyboard's place.
    const focused = document.activeElement;
    this.#stop.hidden = !this.#running;
    disable(this.#start, this.#running || !this.#ready);
    if (focused === this.#stop && this.#stop.hidden) this.#start.focus();
  }

  #showFigures(figures) {
    document.querySelector('#tiles').replaceChildren(...TILES.map((figure) => tileOf(figure, figures)));
    const rows = FIGURES.map((figure) => rowOf(figure, figures));
    const none = element('tr', {}, element('td', { colspan: 6 }, 'No run yet.'));
    document
      .querySelector('#figures')
      .replaceChildren(...(VARIANTS.some((variant) => figures[variant]) ? rows : [none]));
  }
}

function tileOf({ field, name, note, unit, better, worse, low, show = digits }, figures) {
  const values = VARIANTS.map((variant) => figures[variant]?.[field] ?? Number.NaN);
  const [plain, coalesced] = values;
  const gain = low ? plain / coalesced : coalesced / plain;
  const ratio = element('p', { class: 'ratio coalesced' });
  if (Number.isFinite(gain)) {
    const words = `${gain >= 1 ? better : worse} than plain, coalesced`;
    ratio.append(`${digits(gain >= 1 ? gain : 1 / gain)}×`, element('small', {}, words));
  } else {
    ratio.append(element('small', {}, 'Nothing to compare yet.'));
  }
  const most = Math.max(...values.filter(Number.isFinite));
  const list = element('dl');
  VARIANTS.forEach((variant, which) => {
    const known = Number.isFinite(values[which]);
    const bar = element('span', { class: known ? `bar ${variant}` : undefined });
    bar.style.width = `${(100 * values[which]) / most}%`;
    const term = element('dt', {}, bar, element('span', { class: 'hidden' }, variant));
    if (known) list.append(term, element('dd', { class: variant }, `${show(values[which])}${unit}`));
  });
  const title = element('p', { class: 'name' }, name, element('small', {}, note));
  return element('li', { class: 'tile card', 'data-field': field }, title, ratio, list);
}

function rowOf({ field, name, unit, show = digits }, figures) {
  const own = VARIANTS.map((variant) => figures[variant]?.[field] ?? Number.NaN);
  const ratios = own.slice(1).map((value) => value / own[0]);
  const cells = [...own.map((value) => `${show(value)}${unit}`), ...ratios.map((ratio) => `${digits(ratio)}×`)];
  const values = [...own, ...ratios];
  return element(
    'tr',
    {},
    element('th', { scope: 'row' }, name),
    ...cells.map((text, index) => element('td', {}, Number.isFinite(values[index]) ? text : '')),
  );
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
