import { digits, disable, element, isDisabled, tick } from './format.js';

const CLIENTS = {
  plain: ['Plain ioredis', 'Each read leaves when the one before it has its answer.'],
  corked: ['Corked', 'Joins the writes of one turn. Here a turn has one.'],
  coalesced: ['Coalesced', 'Joins the reads of one turn. Here a turn has one.'],
  prefetch: ['Coalesced, with prefetch', 'Knows which reads of a user follow the first, and sends them with it.'],
};
const HINT = 'Run the request to draw this';
const MOST_TICKS = 5;

/** The cascade within one request: its awaits as rows over time, for four clients side by side. */
export class RequestView {
  #request;
  #run = document.querySelector('#ask');
  #status = document.querySelector('#request-status');
  #ready = false;
  #running = false;
  #pictures;

  constructor(request) {
    this.#request = request;
    const parent = document.querySelector('#requests');
    const clients = Object.entries(CLIENTS);
    this.#pictures = new Map(clients.map(([client, words]) => [client, new Picture(parent, client, ...words)]));
    this.#run.addEventListener('click', () => this.#measure());
  }

  set ready(ready) {
    this.#ready = ready;
    this.#showButton();
  }

  async #measure() {
    if (isDisabled(this.#run)) return;
    this.#running = true;
    this.#showButton();
    this.#status.textContent = 'Under way: first some hundred requests of other users on each client …';
    const comparison = await this.#request('POST', 'live/request');
    this.#running = false;
    this.#showButton();
    if (comparison) this.#show(comparison);
    else this.#status.textContent = 'Nothing measured.';
  }

  #show({ requests, distanceMs, before, rounds }) {
    const [plain, prefetch] = [requests.plain, requests.prefetch].map(summary);
    const longestMs = Math.max(...Object.values(requests).map((awaits) => summary(awaits).totalMs));
    for (const [client, picture] of this.#pictures) picture.draw(requests[client], longestMs);
    this.#status.replaceChildren(
      element('strong', {}, sentence(plain, prefetch)),
      ` Before, each client had served ${before} requests of other users, from which prefetch learns; nothing of this user ` +
        `had been read. Median of ${rounds}, every value checked; the distance is a proxy's, ${tick(distanceMs)} ms.`,
    );
  }

  #showButton() {
    disable(this.#run, !this.#ready || this.#running);
  }
}

class Picture {
  #title;
  #client;
  #plot = element('div', { class: 'plot', role: 'img', 'data-empty': 'true', 'data-hint': HINT });
  #outcome = element('p', { class: 'outcome' }, element('strong', {}, '–'));

  constructor(parent, client, title, explanation) {
    this.#title = title;
    this.#client = client;
    this.#plot.id = `trips-${client}`;
    this.#plot.setAttribute('aria-label', `${title}: nothing measured yet`);
    const caption = element(
      'figcaption',
      {},
      element('h3', { class: client }, title),
      element('p', { class: 'explanation' }, explanation),
    );
    parent.append(element('figure', { class: 'card' }, caption, this.#plot, this.#outcome));
  }

  draw(awaits, longestMs) {
    const { totalMs, trips } = summary(awaits);
    // The same for all, or they could not be compared; some room for the last line.
    const scale = (ms) => `${(100 * ms) / (longestMs * 1.04)}%`;
    const rows = element('div', { class: `rows ${this.#client}` });
    const times = ticks(longestMs);
    for (const ms of times) {
      const label = ms === times.at(-1) ? `${tick(ms)} ms` : tick(ms);
      const line = element('span', { class: 'line' }, element('span', { class: 'tick' }, label));
      line.style.left = scale(ms);
      rows.append(line);
    }
    const end = element('span', { class: 'line end' });
    end.style.left = scale(totalMs);
    rows.append(end);
    for (const [index, { what, askedMs, answeredMs, sent }] of awaits.entries()) {
      const bar = element('i', { class: sent ? 'trip' : 'there' });
      bar.style.left = scale(askedMs);
      if (sent) bar.style.width = scale(answeredMs - askedMs);
      const row = [element('span', { class: 'what' }, what), element('span', { class: 'track' }, bar)];
      // Named, because the lines are in the same places.
      for (const cell of row) cell.style.gridRow = String(index + 1);
      rows.append(...row);
    }
    this.#plot.replaceChildren(rows);
    this.#plot.dataset.empty = 'false';
    this.#plot.setAttribute('aria-label', `${this.#title}: ${awaits.map(inWords).join('; ')}`);
    this.#outcome.replaceChildren(
      element('strong', { class: this.#client }, `${digits(totalMs)} ms`),
      ` ${count(trips)}`,
    );
  }
}

function summary(awaits) {
  return { totalMs: awaits.at(-1).answeredMs, trips: awaits.filter(({ sent }) => sent).length };
}

/** What is to be seen, also where prefetch has not predicted. */
function sentence(plain, prefetch) {
  if (prefetch.trips >= plain.trips) {
    return `This time prefetch waited for ${count(prefetch.trips)} too: it rests while the process is busy, and needs Redis 7.0.9.`;
  }
  return (
    `Whatever sends the reads, the request waits for ${count(plain.trips)}; with prefetch for ${prefetch.trips}: ` +
    `${digits(prefetch.totalMs)} ms instead of ${digits(plain.totalMs)} ms.`
  );
}

function inWords({ what, askedMs, answeredMs, sent }) {
  return sent ? `${what} from ${askedMs.toFixed(1)} to ${answeredMs.toFixed(1)} ms` : `${what} already there`;
}

function count(trips) {
  return `${trips} ${trips === 1 ? 'round trip' : 'round trips'}`;
}

/** Round numbers, few enough that their labels do not meet. */
function ticks(longestMs) {
  const step = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].find((size) => longestMs / size < MOST_TICKS) ?? longestMs;
  return Array.from({ length: Math.floor(longestMs / step) + 1 }, (_, index) => index * step);
}
