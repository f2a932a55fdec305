/** Requests as they come, over plain sockets: what makes the load must cost less than what answers it. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Waker } from '../suite/waker.js';
import { LatencyRecorder } from '../variants/timing.js';
import type { LoadResult } from './load-process.js';

const RIGHT = 'HTTP/1.1 200 ';
/** A request may be late by some tens of microseconds: its latency counts from when it was due. */
const LOOPING_MS = 0.03;
/** Every client gets the same arrivals. */
const SEED = 20;

/** One HTTP connection, with one request at a time. All responses have to be of the same length. */
class Connection {
  readonly #socket: Socket;
  readonly #request: string;
  readonly #fail: (error: Error) => void;
  #length: number | undefined;
  #got = 0;
  #done: (() => void) | undefined;

  constructor(socket: Socket, request: string, fail: (error: Error) => void) {
    this.#socket = socket;
    this.#request = request;
    this.#fail = fail;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('the service closed a connection')));
  }

  send(done: () => void): void {
    this.#done = done;
    this.#socket.write(this.#request);
  }

  close(): void {
    this.#socket.removeAllListeners('close').destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#got === 0 && chunk.toString('latin1', 0, RIGHT.length) !== RIGHT) {
      this.#fail(
        new Error(`expected an answer that starts with "${RIGHT}", got "${chunk.toString('latin1', 0, 200)}"`),
      );
      return;
    }
    this.#length ??= lengthOf(chunk);
    this.#got += chunk.length;
    if (this.#got < this.#length) return;
    if (this.#got > this.#length) {
      this.#fail(new Error(`expected answers of ${this.#length} bytes, got ${this.#got}`));
      return;
    }
    this.#got = 0;
    this.#done?.();
  }
}

/** Of a response whose headers are in the first chunk. */
function lengthOf(chunk: Buffer): number {
  const head = chunk.indexOf('\r\n\r\n');
  const body = /\r\ncontent-length: (\d+)\r\n/i.exec(chunk.toString('latin1', 0, head + 2))?.[1];
  if (head === -1 || body === undefined) throw new Error('expected headers with a content-length in the first chunk');
  return head + 4 + Number(body);
}

/** Connections that stay open from run to run, as those of a load balancer do: to open them is not part of a run. */
export class Arrivals {
  readonly #waker: Waker;
  readonly #connections: readonly Connection[];
  readonly #failed: Promise<never>;

  private constructor(waker: Waker, connections: readonly Connection[], failed: Promise<never>) {
    this.#waker = waker;
    this.#connections = connections;
    this.#failed = failed;
  }

  static async open(port: number, connections: number): Promise<Arrivals> {
    const request = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
    let fail: (error: Error) => void = () => {};
    const failed = new Promise<never>((_, reject) => {
      fail = reject;
    });
    // Between two runs, nobody waits for it.
    failed.catch(() => {});
    const waker = await Waker.start(LOOPING_MS);
    const open = Array.from({ length: connections }, async () => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true });
      await once(socket, 'connect');
      return new Connection(socket, request, fail);
    });
    return new Arrivals(waker, await Promise.all(open), failed);
  }

  /** @param rate - mean requests per second, of all connections; without one, as fast as it goes. */
  async run(seconds: number, rate?: number): Promise<LoadResult> {
    const latency = new LatencyRecorder();
    const free = [...this.#connections];
    const start = performance.now();
    const until = start + seconds * 1000;
    const run =
      rate === undefined
        ? closedLoop(free, until, latency)
        : openLoop(free, arrivals(rate, start), until, latency, this.#waker);
    await Promise.race([run, this.#failed]);
    return { requests: latency.count, seconds: (performance.now() - start) / 1000, ...latency.summary() };
  }

  async close(): Promise<void> {
    for (const one of this.#connections) one.close();
    await this.#waker.close();
  }
}

/** Each connection sends its next request as soon as it has an answer. */
async function closedLoop(connections: readonly Connection[], until: number, latency: LatencyRecorder): Promise<void> {
  const loop = async (one: Connection) => {
    while (performance.now() < until) {
      const sentAt = performance.now();
      await new Promise<void>((done) => one.send(done));
      latency.record(sentAt);
    }
  };
  await Promise.all(connections.map(loop));
}

/**
 * Each request is due at its time, whatever became of the ones before, and its latency counts from then on (no
 * coordinated omission). It waits where no connection is free.
 */
function openLoop(
  free: Connection[],
  dueTimes: Iterator<number, never>,
  until: number,
  latency: LatencyRecorder,
  waker: Waker,
): Promise<void> {
  const waiting: number[] = [];
  let next = dueTimes.next().value;
  let unanswered = 0;
  return new Promise((resolve) => {
    const send = (one: Connection, dueAt: number) =>
      one.send(() => {
        latency.record(dueAt);
        unanswered -= 1;
        const longest = waiting.shift();
        if (longest === undefined) free.push(one);
        else send(one, longest);
        if (unanswered === 0 && next >= until) resolve();
      });
    const arrive = (): void => {
      for (const now = performance.now(); next <= now && next < until; next = dueTimes.next().value) {
        unanswered += 1;
        const one = free.pop();
        if (one === undefined) waiting.push(next);
        else send(one, next);
      }
      if (next < until) waker.call(next, arrive);
      else if (unanswered === 0) resolve();
    };
    arrive();
  });
}

/** The times of a Poisson process, the same ones each time. */
export function* arrivals(perSecond: number, start: number): Generator<number, never> {
  const random = randomFrom(SEED);
  for (let time = start; ; ) {
    time -= (Math.log(1 - random()) * 1000) / perSecond;
    yield time;
  }
}

/** From 0 to 1: mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
