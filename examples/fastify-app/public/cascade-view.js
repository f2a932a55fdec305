import { axis, bars, Chart } from './charts.js';
import { digits, disable, element, isDisabled, SENDERS, tick } from './format.js';

const REPLAY_MS = 4000;
const EXPLANATIONS = {
  plain:
    'Each command is a write of its own: the last caller gets to ask only after 199 writes, and no reply is read before that.',
  coalesced: 'Asking only adds to the batch, which leaves in one write when the turn ends.',
};

/** The second view: 200 concurrent GETs as 200 bars, the plain client above, the coalesced one below. */
export class CascadeView {
  #request;
  #send = document.querySelector('#send');
  #replay = document.querySelector('#replay');
  #status = document.querySelector('#cascade-status');
  #charts;
  #cascade;
  #ready = false;
  #sending = false;
  #frame = 0;

  constructor(request) {
    this.#request = request;
    const parent = document.querySelector('#cascades');
    this.#charts = Object.fromEntries(SENDERS.map((variant) => [variant, this.#chart(parent, variant)]));
    this.#send.addEventListener('click', () => this.#measure());
    this.#replay.addEventListener('click', () => {
      if (!isDisabled(this.#replay)) this.#play();
    });
  }

  set ready(ready) {
    this.#ready = ready;
    this.#showButtons();
  }

  async #measure() {
    if (isDisabled(this.#send)) return;
    this.#sending = true;
    this.#showButtons();
    const cascade = await this.#request('POST', 'live/cascade');
    this.#sending = false;
    this.#showButtons();
    if (!cascade) return;
    this.#cascade = cascade;
    this.#showButtons();
    this.#say();
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.#drawAt(Number.POSITIVE_INFINITY);
    } else {
      this.#play();
    }
  }

  #say() {
    const { redisCpuUs } = this.#cascade;
    const { plain, coalesced } = this.#cascade.bursts;
    const last = { plain: Math.max(...plain.answeredMs), coalesced: Math.max(...coalesced.answeredMs) };
    this.#status.replaceChildren(
      element('strong', {}, comparison(last.plain / last.coalesced)),
      `: the last caller had its answer after ${digits(last.coalesced)} ms instead of ${digits(last.plain)} ms; ` +
        `${count(coalesced.writes)} instead of ${count(plain.writes)}. ` +
        `Median of ${this.#cascade.rounds} bursts, measured in the service. Redis spent ${digits(redisCpuUs.coalesced)} µs ` +
        `on a GET instead of ${digits(redisCpuUs.plain)} µs; with the option fuseReads, which makes one MGET of 64, ` +
        `${digits(redisCpuUs.fused)} µs.`,
    );
  }

  #showButtons() {
    disable(this.#send, !this.#ready || this.#sending);
    disable(this.#replay, this.#cascade === undefined || this.#sending);
  }

  #longest() {
    const { plain, coalesced } = this.#cascade.bursts;
    return Math.max(...plain.answeredMs, ...coalesced.answeredMs);
  }

  /** The same burst again, thousands of times slower. */
  #play() {
    cancelAnimationFrame(this.#frame);
    const longest = this.#longest();
    const start = performance.now();
    const step = (now) => {
      const part = (now - start) / REPLAY_MS;
      this.#drawAt(part >= 1 ? Number.POSITIVE_INFINITY : Math.max(0, part) * longest);
      if (part < 1) this.#frame = requestAnimationFrame(step);
    };
    this.#frame = requestAnimationFrame(step);
  }

  #drawAt(momentMs) {
    for (const variant of SENDERS) {
      const { askedMs, answeredMs, writes } = this.#cascade.bursts[variant];
      const callers = answeredMs.map((_, index) => index + 1);
      const until = (list) => list.map((value) => Math.min(value, momentMs));
      const words = `first caller ${digits(answeredMs[0])} ms, last caller ${digits(answeredMs.at(-1))} ms, ${count(writes)}`;
      this.#charts[variant].draw([callers, until(answeredMs), until(askedMs)], words);
    }
  }

  #chart(parent, variant) {
    const options = (colour) => ({
      scales: {
        x: { time: false, range: () => [0, 201] },
        // The same for both, or they could not be compared.
        y: { range: () => [0, (this.#cascade === undefined ? 1 : this.#longest()) * 1.08] },
      },
      axes: [
        axis(colour, { grid: { show: false }, splits: () => [1, 50, 100, 150, 200], size: 30 }),
        axis(colour, { values: (_plot, splits) => splits.map((split) => `${tick(split)} ms`), size: 66 }),
      ],
      series: [{}, bar(colour[variant]), bar(colour[`${variant}-pale`])],
    });
    const readout = (index, [callers, answered, asked]) =>
      `caller ${callers[index]} · asked after ${digits(asked[index])} ms · answered after ${digits(answered[index])} ms`;
    return new Chart({
      parent,
      id: `cascade-${variant}`,
      title: variant === 'plain' ? 'Plain ioredis' : 'Coalesced',
      explanation: EXPLANATIONS[variant],
      hint: 'Send 200 GETs to fill this chart',
      key: { [`${variant}-pale`]: 'until it was issued', [variant]: 'until its answer was there' },
      blocks: true,
      empty: [[], [], []],
      options,
      readout,
      height: 240,
    });
  }
}

function bar(colour) {
  return { stroke: colour, fill: colour, width: 0, paths: bars({ size: [1, 20], gap: 1 }), points: { show: false } };
}

/** What was seen, also where coalesced has lost. */
function comparison(ratio) {
  if (ratio > 1.05) return `${digits(ratio)}× sooner than with plain ioredis`;
  if (ratio < 0.95) return `${digits(1 / ratio)}× later than with plain ioredis, this time`;
  return 'About as soon as with plain ioredis';
}

function count(writes) {
  return `${writes} ${writes === 1 ? 'write' : 'writes'}`;
}
