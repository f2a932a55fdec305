import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Arrivals, arrivals } from '../../bench/http/arrivals.js';

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  return (server.address() as AddressInfo).port;
}

async function run(port: number, connections: number, seconds: number, rate?: number) {
  const load = await Arrivals.open(port, connections);
  onTestFinished(() => load.close());
  return load.run(seconds, rate);
}

describe('the times of arrivals', () => {
  const times = (count: number) =>
    Array.from(
      { length: count },
      (
        (next) => () =>
          next.next().value
      )(arrivals(1000, 0)),
    );

  it('are the same ones each time', () => {
    expect(times(100)).toEqual(times(100));
  });

  it('are those of a Poisson process: gaps of 1 ms in the mean, of which 1/e are longer than that', () => {
    const found = times(20_000);
    const gaps = found.map((time, index) => time - (found[index - 1] ?? 0));
    expect(found.at(-1)! / found.length).toBeCloseTo(1, 1);
    expect(gaps.filter((gap) => gap > 1).length / gaps.length).toBeCloseTo(1 / Math.E, 1);
    expect(Math.min(...gaps)).toBeGreaterThan(0);
  });
});

describe('a run', () => {
  it('sends as many requests as are due, and each is answered', async () => {
    let asked = 0;
    const port = await serve((_, response) => {
      asked += 1;
      response.end('right');
    });
    const { requests, p50 } = await run(port, 4, 0.5, 400);
    const due = [...takeUntil(arrivals(400, 0), 500)].length;
    expect(requests).toBe(due);
    expect(asked).toBe(due);
    expect(p50).toBeGreaterThan(0);
  });

  it('sends when a request is due, whatever became of those before, and counts the time from then on', async () => {
    let last = Promise.resolve();
    const port = await serve((_, response) => {
      last = last.then(() => sleep(20)).then(() => void response.end('late'));
    });
    // The service manages 50 per second: the backlog grows.
    const { p99 } = await run(port, 1, 0.3, 200);
    expect(p99).toBeGreaterThan(100_000);
  });

  it('keeps every connection busy where no rate is given', async () => {
    const port = await serve((_, response) => response.end('right'));
    const { requests } = await run(port, 4, 0.1);
    expect(requests).toBeGreaterThan(4);
  });

  it('fails on a wrong answer, and shows it', async () => {
    const port = await serve((_, response) => {
      response.statusCode = 500;
      response.end('no value');
    });
    await expect(run(port, 1, 0.1, 100)).rejects.toThrow(/starts with "HTTP\/1.1 200 ", got "HTTP\/1.1 500/);
  });
});

function* takeUntil(times: Iterable<number>, end: number): Generator<number> {
  for (const time of times) {
    if (time >= end) return;
    yield time;
  }
}
