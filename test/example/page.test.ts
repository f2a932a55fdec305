import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type RedisServer, startServer } from '../helpers/redis.js';
import { findChromium, openBrowser } from './browser.js';
import { ExampleService } from './service.js';

const SCREENSHOT = fileURLToPath(new URL('../../docs/images/live-page.png', import.meta.url));
const WAIT = 60_000;
const CHARTS = ['requests', 'p99', 'latency', 'sizes', 'writes', 'redis-cpu'];
const chromium = findChromium();

if (chromium === undefined) {
  console.error(
    '\n*** The live page is NOT tested: there is no Chromium. Install it, or name one with CHROMIUM. ***\n',
  );
}

/**
 * What reaches beyond the card that it is in, or the screen, by its id or text; the wide table may, in the box that
 * scrolls it.
 */
const OVERFLOWING = `[...document.querySelectorAll('body *:not(.scroll > table, .scroll > table *)')].filter((element) => {
  const { left, right, width } = element.getBoundingClientRect();
  const limit = element.closest('.card')?.getBoundingClientRect().right ?? innerWidth;
  return width > 0 && (left < 0 || right > Math.min(limit, innerWidth));
}).map((element) => element.id || element.textContent)`;

/** What scrolls, scrolled to its end: whether it does scroll, and shows its last column then. */
const SCROLLED = `[...document.querySelectorAll('.scroll')].map((box) => {
  box.scrollLeft = box.scrollWidth;
  const last = box.querySelector('tr:last-child > :last-child').getBoundingClientRect();
  return { scrolls: box.scrollLeft > 0, seen: last.right <= box.getBoundingClientRect().right + 1, holds: box.children[0].tagName };
})`;

/** Keeps what each canvas was told to write, since it was cleared, with the box of each text. */
const KEEP_LABELS = `
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    this.canvas.labels = [];
    return clearRect.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    const { actualBoundingBoxLeft, actualBoundingBoxRight, actualBoundingBoxAscent, actualBoundingBoxDescent } = this.measureText(text);
    this.canvas.labels.push({
      text,
      left: x - actualBoundingBoxLeft,
      right: x + actualBoundingBoxRight,
      top: y - actualBoundingBoxAscent,
      bottom: y + actualBoundingBoxDescent,
    });
    return fillText.call(this, text, x, y, ...more);
  };
`;

/**
 * The pairs of labels of a chart with less than two pixels between them, and its readout where that reaches into the
 * plot.
 */
const COLLIDING = `(selector) => {
  const plot = document.querySelector(selector);
  const { labels } = plot.querySelector('canvas');
  const near = (a, b) => a.left < b.right + 2 && b.left < a.right + 2 && a.top < b.bottom + 2 && b.top < a.bottom + 2;
  const pairs = labels.flatMap((a, index) => labels.slice(index + 1).filter((b) => near(a, b)).map((b) => a.text + ' ' + b.text));
  const readout = plot.parentElement.querySelector('.readout');
  const range = document.createRange();
  range.selectNodeContents(readout);
  const shown = [...range.getClientRects()].some(({ top }) => top < plot.getBoundingClientRect().bottom);
  return labels.length === 0 ? ['no labels'] : [...pairs, ...(shown ? [readout.textContent] : [])];
}`;

/**
 * The pictures of a request: of each client its rows, where their bars begin and end, where the request ends, all in
 * parts of the width of the plot, what is said, and the labels that run into each other.
 */
const PICTURES = `[...document.querySelectorAll('#requests figure')].map((figure) => {
  const plot = figure.querySelector('.track').getBoundingClientRect();
  const part = (x) => (x - plot.left) / plot.width;
  const box = (element) => element.getBoundingClientRect();
  const near = (a, b) => a.left < b.right + 2 && b.left < a.right + 2 && a.top < b.bottom && b.top < a.bottom;
  const labels = [...figure.querySelectorAll('.what, .tick')];
  const bars = [...figure.querySelectorAll('.trip, .there')].map((bar) => ({
    row: box(bar).top + box(bar).height / 2,
    from: bar.className === 'trip' ? part(box(bar).left) : part(box(bar).left + box(bar).width / 2),
    to: bar.className === 'trip' ? part(box(bar).right) : part(box(bar).left + box(bar).width / 2),
    sent: bar.className === 'trip',
    colour: getComputedStyle(bar)[bar.className === 'trip' ? 'backgroundColor' : 'borderTopColor'],
  }));
  return {
    place: { left: box(figure).left, top: box(figure).top },
    names: [...figure.querySelectorAll('.what')].map((name) => ({ text: name.textContent, row: box(name).top + box(name).height / 2 })),
    bars,
    end: part(box(figure.querySelector('.end')).left + 1),
    perMs: part(box(figure.querySelectorAll('.line')[1]).left) / Number.parseFloat(figure.querySelectorAll('.tick')[1].textContent),
    words: figure.querySelector('.plot').getAttribute('aria-label'),
    outcome: figure.querySelector('.outcome').textContent,
    colliding: labels.flatMap((a, index) => labels.slice(index + 1).filter((b) => near(box(a), box(b))).map((b) => a.textContent + ' ' + b.textContent)),
  };
})`;

interface Picture {
  place: { left: number; top: number };
  names: { text: string; row: number }[];
  bars: { row: number; from: number; to: number; sent: boolean; colour: string }[];
  end: number;
  perMs: number;
  words: string;
  outcome: string;
  colliding: string[];
}

describe.skipIf(chromium === undefined)('the live page, in a browser', { timeout: 2 * WAIT }, () => {
  let server: RedisServer;
  let service: ExampleService;
  let origin: string;
  let browser: Browser;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    server = await startServer();
    service = new ExampleService({ env: { REDIS_URL: server.url, SEED_PRODUCTS: '50' } });
    origin = await service.listening();
    browser = await openBrowser(chromium!);
  });

  afterAll(async () => {
    await browser?.close();
    await service?.destroy();
    await server?.stop();
  });

  beforeEach(async () => {
    page = await openPage('light');
  });

  // Whatever a test did, the page never complains: no error, no warning, nothing that was not found.
  afterEach(async () => {
    await page.context().close();
    expect(complaints).toEqual([]);
  });

  async function openPage(colorScheme: 'light' | 'dark', width = 1280): Promise<Page> {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
    const opened = await context.newPage();
    await opened.addInitScript(KEEP_LABELS);
    complaints = [];
    opened.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    opened.on('pageerror', (error) => complaints.push(String(error)));
    opened.on('response', (response) => {
      if (!response.url().startsWith(origin)) complaints.push(`asked ${response.url()}`);
      if (response.status() >= 400) complaints.push(`${response.status()} for ${response.url()}`);
    });
    await opened.goto(origin);
    await waitForText(opened.locator('#redis'), /at 127\.0\.0\.1/);
    return opened;
  }

  async function waitForText(locator: Locator, text: RegExp): Promise<void> {
    await expect.poll(() => locator.textContent(), { timeout: WAIT }).toMatch(text);
  }

  async function waitForUp(up: boolean): Promise<void> {
    await expect.poll(() => page.locator('#redis').getAttribute('data-up'), { timeout: WAIT }).toBe(String(up));
  }

  /** The shortest run there is. */
  async function runLoad(): Promise<void> {
    await page.locator('#seconds').fill('1');
    await page.locator('#start').click();
    await waitForText(page.locator('#progress-label'), /warming up/i);
    expect(await chart('requests').getAttribute('data-hint')).toMatch(/^Warming up/);
    // Until then the label may be that of the run before.
    await waitForText(page.locator('#progress-label'), /load on the clients/i);
    await waitForText(page.locator('#progress-label'), /^Done/);
  }

  /** Until prefetch has predicted: it rests after a second in which the service was busy. */
  async function runRequest(): Promise<void> {
    await page.locator('#tab-cascade').click();
    const run = async () => {
      await page.locator('#ask').click();
      await waitForText(page.locator('#request-status'), /every value checked/);
      return page.locator('#request-status strong').textContent();
    };
    await expect
      .poll(run, { timeout: WAIT })
      .toMatch(/waits for 8 round trips; with prefetch for 2: [\d.]+ ms instead of [\d.]+ ms\.$/);
  }

  function pictures(): Promise<Picture[]> {
    return page.evaluate(PICTURES) as Promise<Picture[]>;
  }

  function chart(id: string): Locator {
    return page.locator(`#chart-${id}`);
  }

  const focused = (): Promise<unknown> => page.evaluate('document.activeElement.id');

  /**
   * Whether anything is drawn in the colour, a custom property's, or nearly: one client's area may lie over the other's
   * line.
   */
  function isDrawn(id: string, colour: string): Promise<unknown> {
    return page.evaluate(`(() => {
      const wanted = getComputedStyle(document.documentElement).getPropertyValue('--${colour}').trim();
      const [red, green, blue] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
      const canvas = document.querySelector('#chart-${id} canvas');
      // A copy: reading from a canvas that is drawn on has Chromium complain.
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      for (let at = 0; at < data.length; at += 4) {
        const distance = Math.hypot(data[at] - red, data[at + 1] - green, data[at + 2] - blue);
        if (data[at + 3] === 255 && distance < 60) return true;
      }
      return false;
    })()`);
  }

  it('loads, says which Redis it talks to, and what to do', async () => {
    expect(await page.title()).toContain('ioredis-coalesce');
    expect(await page.locator('#redis').textContent()).toBe(`Redis ${server.version} at 127.0.0.1:${server.port}`);
    expect(await page.locator('#progress-label').textContent()).toContain('Run the load');
    for (const id of CHARTS) {
      expect(await chart(id).getAttribute('data-empty')).toBe('true');
      expect(await chart(id).getAttribute('aria-label')).toContain('nothing measured yet');
      expect(await isDrawn(id, 'coalesced')).toBe(false);
    }
    expect(await page.locator('#start').isEnabled()).toBe(true);
  });

  it('explains its terms where they first appear', async () => {
    const lede = page.locator('.lede');
    expect(await lede.locator('dfn').allTextContents()).toEqual(['coalesced', 'turn of the event loop', 'cached']);
    expect(await lede.textContent()).toContain('A turn is one pass of');
    expect(await page.locator('[data-field=p99Ms] .name').textContent()).toContain('99 of 100 took no longer');
    await page.locator('#tab-cascade').click();
    expect(await page.locator('#view-cascade dfn').textContent()).toBe('latency cascade');
  });

  it('fits a phone: nothing leaves its card or the screen, and the wide table scrolls inside its card', async () => {
    await page.context().close();
    page = await openPage('light', 390);
    for (const view of ['cascade', 'load']) {
      await page.locator(`#tab-${view}`).click();
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
      expect(await page.evaluate(OVERFLOWING)).toEqual([]);
    }
    await runRequest();
    expect(await page.evaluate(OVERFLOWING)).toEqual([]);
    const stacked = await pictures();
    expect(new Set(stacked.map(({ place }) => place.left)).size).toBe(1);
    expect(stacked.flatMap(({ colliding }) => colliding)).toEqual([]);
    await page.locator('#tab-load').click();
    await runLoad();
    await page.locator('.figures summary').click();
    expect(await page.evaluate(SCROLLED)).toEqual([{ scrolls: true, seen: true, holds: 'TABLE' }]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(await page.evaluate(OVERFLOWING)).toEqual([]);
  });

  it('fills every chart, the tiles and the table from a run', async () => {
    await runLoad();
    for (const id of CHARTS) {
      expect(await chart(id).getAttribute('data-empty')).toBe('false');
      expect(await chart(id).getAttribute('aria-label')).toMatch(/plain .*\d.*coalesced .*\d/);
      expect(await isDrawn(id, 'coalesced')).toBe(true);
      expect(await isDrawn(id, 'plain')).toBe(true);
    }
    expect(await chart('sizes').getAttribute('aria-label')).toContain('plain mostly 1 in a write');
    const writes = page.locator('[data-field=writesPerCommand] dd');
    const perWrite = async (which: number) =>
      Number((await writes.nth(which).textContent())?.replace(/^1 per |,/g, ''));
    expect(await writes.nth(0).textContent()).toBe('1 per 1');
    expect(await perWrite(1)).toBeGreaterThan(2);
    for (const id of ['requests', 'p99', 'latency', 'writes', 'redis-cpu']) {
      expect(await chart(id).getAttribute('aria-label')).toMatch(/cached .*\d/);
      expect(await isDrawn(id, 'cached')).toBe(true);
    }
    // The warm-up has filled the cache.
    expect(await writes.nth(2).textContent()).toMatch(/^none$|^1 per [\d,]{3,}$/);
    for (const ratio of await page.locator('.tile .ratio').allTextContents()) {
      expect(ratio).toMatch(/^[\d,.]+×(more|fewer|shorter|longer|less) than plain, coalesced$/);
    }
    expect(await page.locator('#figures tr').count()).toBe(7);
    expect(await page.locator('#figures tr').first().locator('td').count()).toBe(5);
    expect(await page.locator('#progress').getAttribute('value')).toBe('1');
    expect(await page.locator('#start').isEnabled()).toBe(true);
  });

  it('has a key of its colours in every chart, and over the tiles', async () => {
    const keyIn = (place: string) => page.locator(`${place} .key span`).allTextContents();
    for (const id of CHARTS) {
      const names = id === 'sizes' ? ['plain', 'coalesced'] : ['plain', 'coalesced', 'cached'];
      expect(await keyIn(`figure:has(#chart-${id})`)).toEqual(names);
    }
    expect(await page.locator('.key:has(+ #tiles) span').allTextContents()).toEqual(['plain', 'coalesced', 'cached']);
    for (const variant of ['plain', 'coalesced']) {
      const shown = await keyIn(`figure:has(#chart-cascade-${variant})`);
      expect(shown).toEqual(['until it was issued', 'until its answer was there']);
    }
  });

  it.each([390, 1280])('at %i px, no label runs into another one', async (width) => {
    await page.context().close();
    page = await openPage('light', width);
    await runLoad();
    for (const id of CHARTS) {
      await chart(id).hover();
      expect(await page.evaluate(`(${COLLIDING})('#chart-${id}')`)).toEqual([]);
    }
    await page.locator('#tab-cascade').click();
    await page.locator('#send').click();
    await waitForText(page.locator('#cascade-status'), /with plain ioredis/);
    for (const variant of ['plain', 'coalesced']) {
      await chart(`cascade-${variant}`).hover();
      expect(await page.evaluate(`(${COLLIDING})('#chart-cascade-${variant}')`)).toEqual([]);
    }
  });

  it('shows the last run to later visitors, in dark mode too', async () => {
    await runLoad();
    await page.context().close();
    page = await openPage('dark');
    await waitForText(page.locator('#progress-label'), /^Done/);
    for (const id of CHARTS) {
      expect(await isDrawn(id, 'coalesced')).toBe(true);
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await expect.poll(() => isDrawn('requests', 'coalesced'), { timeout: WAIT }).toBe(true);
  });

  it('draws the latency cascade of 200 callers: above with a write per caller, below with one for all', async () => {
    await page.locator('#tab-cascade').click();
    expect(await page.locator('#view-load').isVisible()).toBe(false);
    await page.locator('#send').click();
    await waitForText(page.locator('#cascade-status'), /1 write instead of 200 writes/);
    expect(await page.locator('#cascade-status').textContent()).toMatch(
      /Redis spent .* µs on a GET .* fuseReads.* µs\.$/,
    );
    await expect
      .poll(() => chart('cascade-plain').getAttribute('aria-label'), { timeout: WAIT })
      .toMatch(/first caller .* ms, last caller .* ms, 200 writes/);
    for (const variant of ['plain', 'coalesced']) {
      await expect.poll(() => isDrawn(`cascade-${variant}`, variant), { timeout: WAIT }).toBe(true);
    }
    expect(await page.locator('#replay').isEnabled()).toBe(true);
  });

  it('draws the awaits of one request over the same time for four clients, side by side', async () => {
    await runRequest();
    const shown = await pictures();
    expect(shown.map(({ bars }) => bars.filter(({ sent }) => sent).length)).toEqual([8, 8, 8, 2]);
    expect(shown.map(({ outcome }) => outcome)).toEqual(
      [8, 8, 8, 2].map((trips) => expect.stringMatching(`^[\\d.]+ ms ${trips} round trips$`)),
    );
    expect(new Set(shown.map(({ place }) => place.top)).size).toBe(1);
    for (const { names, bars, end, perMs, words, outcome, colliding } of shown) {
      expect(names.map(({ text }) => text)).toEqual([
        'session',
        'profile',
        'settings',
        'cart',
        'flags',
        'plan',
        'quota',
        'inbox',
      ]);
      expect(perMs).toBeCloseTo(shown[0]!.perMs, 3);
      expect(end).toBeCloseTo(Number.parseFloat(outcome) * perMs, 1);
      expect(colliding).toEqual([]);
      for (const [index, { row, from, to, sent }] of bars.entries()) {
        // In its row, where the one before it has ended, and for as long as words say.
        expect(Math.abs(row - names[index]!.row)).toBeLessThan(4);
        expect(from).toBeGreaterThanOrEqual((bars[index - 1]?.to ?? 0) - 0.01);
        const said = words.split(': ')[1]!.split('; ')[index];
        const times = new RegExp(`^${names[index]!.text} from ([\\d.]+) to ([\\d.]+) ms$`).exec(said!);
        if (sent) expect(to - from).toBeCloseTo((Number(times![2]) - Number(times![1])) * perMs, 1);
        else expect(said).toBe(`${names[index]!.text} already there`);
      }
      expect(bars.at(-1)!.to).toBeCloseTo(end, 1);
    }
    const colours = (list: Picture[]) => list.map(({ bars }) => bars[0]!.colour);
    expect(new Set(colours(shown)).size).toBe(4);
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = colours(await pictures());
    for (const [index, colour] of colours(shown).entries()) expect(dark[index]).not.toBe(colour);
  });

  it('can be used without a mouse', async () => {
    await page.locator('#tab-load').focus();
    await page.keyboard.press('ArrowRight');
    expect(await focused()).toBe('tab-cascade');
    expect(await page.locator('#view-cascade').isVisible()).toBe(true);
    await page.keyboard.press('ArrowRight');
    expect(await focused()).toBe('tab-load');

    const order = [];
    for (let stop = 0; stop < 5; stop += 1) {
      await page.keyboard.press('Tab');
      order.push(await focused());
      if (order.at(-1) === 'connections') {
        await page.keyboard.press('ArrowRight');
        expect(await page.locator('#connections-value').textContent()).toBe('31');
      }
      if (order.at(-1) === 'seconds') await page.keyboard.press('Home');
      if (order.at(-1) === 'start') break;
    }
    expect(order).toEqual(['connections', 'commands', 'seconds', 'start']);
    await page.keyboard.press('Enter');
    await waitForText(page.locator('#progress-label'), /load on the clients/i);
    expect(await focused()).toBe('start');
    // It is one run, however often it is pressed.
    await page.keyboard.press('Enter');
    await waitForText(page.locator('#progress-label'), /^Done: 31 connections/);
    expect(await focused()).toBe('start');
    expect(await page.locator('#trouble').isVisible()).toBe(false);
  });

  it('keeps the keyboard focus when a run is stopped, while a request is served, and while 200 GETs are sent', async () => {
    await page.locator('#seconds').fill('10');
    await page.locator('#start').focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('#stop').isVisible(), { timeout: WAIT }).toBe(true);
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('stop');
    await page.keyboard.press('Enter');
    await waitForText(page.locator('#progress-label'), /^Stopped/);
    expect(await focused()).toBe('start');
    expect(await page.locator('#start').isEnabled()).toBe(true);

    await page.locator('#tab-cascade').click();
    await page.locator('#ask').focus();
    await page.keyboard.press('Enter');
    await waitForText(page.locator('#request-status'), /every value checked/);
    expect(await focused()).toBe('ask');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('send');
    await page.keyboard.press('Enter');
    await waitForText(page.locator('#cascade-status'), /with plain ioredis/);
    expect(await focused()).toBe('send');
  });

  it('shows that Redis is down, in the middle of a run too, and that it is back', async () => {
    await page.locator('#seconds').fill('10');
    await page.locator('#start').click();
    await waitForText(page.locator('#progress-label'), /load on the clients/i);
    await expect.poll(() => chart('requests').getAttribute('data-empty'), { timeout: WAIT }).toBe('false');
    await server.stop();
    await waitForUp(false);
    const address = `Redis at 127.0.0.1:${server.port}`;
    expect(await page.locator('#redis').textContent()).toBe(`${address} is down`);
    expect(await page.locator('#trouble').textContent()).toContain(`${address} is down`);
    expect(await page.locator('#trouble').isVisible()).toBe(true);
    await waitForText(page.locator('#progress-label'), /^The run failed: Redis at .* is not reachable/);
    expect(await page.locator('#start').isEnabled()).toBe(false);
    expect(await page.locator('#send').isEnabled()).toBe(false);
    expect(await page.locator('#ask').isEnabled()).toBe(false);

    server = await startServer({ port: server.port });
    await waitForUp(true);
    expect(await page.locator('#trouble').isVisible()).toBe(false);
    // Nothing is left of the run that failed, here or on a page that is opened now.
    for (const reopened of [false, true]) {
      if (reopened) {
        await page.context().close();
        page = await openPage('light');
      }
      await waitForText(page.locator('#progress-label'), /^No run yet/);
      expect(await page.locator('#progress').getAttribute('value')).toBe('0');
      for (const id of CHARTS) expect(await chart(id).getAttribute('data-empty')).toBe('true');
      expect(await page.locator('.tile .ratio').allTextContents()).toEqual(Array(5).fill('Nothing to compare yet.'));
    }
    await runLoad();
    expect(await chart('requests').getAttribute('data-empty')).toBe('false');
    // The server came back empty; the load would have read nothing.
    expect(await (await fetch(`${origin}/products/50`)).json()).toMatchObject({ id: '50' });
  });

  it.runIf(process.env.UPDATE_SCREENSHOT === '1')('writes its screenshot for the documents', async () => {
    await page.locator('#start').click();
    await waitForText(page.locator('#progress-label'), /^Done/);
    mkdirSync(fileURLToPath(new URL('.', `file://${SCREENSHOT}`)), { recursive: true });
    await page.mouse.move(0, 0);
    await page.screenshot({ path: SCREENSHOT, fullPage: true });
  });
});
