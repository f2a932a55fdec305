/** Requests as they come, over plain sockets: what makes the load must cost less than what answers it. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { descriptorOf } from '../suite/delay-proxy.js';
import { systemNow, TimedWriter } from '../suite/timed-writer.js';
import { LatencyRecorder } from '../variants/timing.js';
import type { LoadResult } from './load-process.js';

const RIGHT = 'HTTP/1.1 200 ';
/** Every client gets the same arrivals. */
const SEED = 20;
/** How far ahead the thread that sends knows them, and how often it is told of more. */
const AHEAD_MS = 150;
const TOLD_EVERY_MS = 50;

/** One HTTP connection; its requests are answered one after the other. All responses have to be of the same length. */
class Connection {
  readonly fd: number;
  /** Called when the requests on their way are answered, in their order. */
  readonly waiting: (() => void)[] = [];
  readonly #socket: Socket;
  readonly #fail: (error: Error) => void;
  #length: number | undefined;
  #got = 0;

  constructor(socket: Socket, fail: (error: Error) => void) {
    this.#socket = socket;
    this.fd = descriptorOf(socket);
    this.#fail = fail;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('the service closed a connection')));
  }

  send(request: Uint8Array, done: () => void): void {
    this.waiting.push(done);
    this.#socket.write(request);
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
    while (this.#got >= this.#length) {
      this.#got -= this.#length;
      const done = this.waiting.shift();
      if (done === undefined) this.#fail(new Error(`expected answers of ${this.#length} bytes, got more`));
      done?.();
    }
  }
}

/** Of a response whose headers are in the first chunk. */
function lengthOf(chunk: Buffer): number {
  const head = chunk.indexOf('\r\n\r\n');
  const body = /\r\ncontent-length: (\d+)\r\n/i.exec(chunk.toString('latin1', 0, head + 2))?.[1];
  if (head === -1 || body === undefined) throw new Error('expected headers with a content-length in the first chunk');
  return head + 4 + Number(body);
}

/**
 * Connections that stay open from run to run, as those of a load balancer do: to open them is not part of a run. They
 * are taken in turn; one gets a second request before it has answered only where answers take longer than a whole turn.
 */
export class Arrivals {
  readonly #writer: TimedWriter;
  readonly #connections: readonly Connection[];
  readonly #requests: readonly Uint8Array[];
  readonly #failed: Promise<never>;
  #next = 0;

  private constructor(
    writer: TimedWriter,
    connections: readonly Connection[],
    requests: readonly Uint8Array[],
    failed: Promise<never>,
  ) {
    this.#writer = writer;
    this.#connections = connections;
    this.#requests = requests;
    this.#failed = failed;
  }

  /** @param paths - that are asked for in turn. */
  static async open(port: number, connections: number, paths: readonly string[] = ['/']): Promise<Arrivals> {
    const requests = paths.map((path) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`));
    let fail: (error: Error) => void = () => {};
    const failed = new Promise<never>((_, reject) => {
      fail = reject;
    });
    // Between two runs, nobody waits for it.
    failed.catch(() => {});
    const open = Array.from({ length: connections }, async () => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true });
      await once(socket, 'connect');
      return new Connection(socket, fail);
    });
    return new Arrivals(await TimedWriter.start(), await Promise.all(open), requests, failed);
  }

  /** @param rate - mean requests per second, of all connections; without one, as fast as it goes. */
  async run(seconds: number, rate?: number): Promise<LoadResult> {
    const latency = new LatencyRecorder();
    const late = new LatencyRecorder();
    const cpu = process.cpuUsage();
    const start = systemNow();
    const until = start + seconds * 1000;
    const run = rate === undefined ? this.#closedLoop(until, latency) : this.#openLoop(rate, until, latency, late);
    await Promise.race([run, this.#failed]);
    const { user, system } = process.cpuUsage(cpu);
    return {
      ...{ requests: latency.count, seconds: (systemNow() - start) / 1000, ...latency.summary() },
      loadCpu: (user + system) / latency.count,
      ...(rate === undefined ? {} : { late: late.summary().p50 }),
    };
  }

  async close(): Promise<void> {
    for (const one of this.#connections) one.close();
    await this.#writer.close();
  }

  #request(): Uint8Array {
    this.#next += 1;
    return this.#requests[this.#next % this.#requests.length]!;
  }

  /** Each connection sends its next request as soon as it has an answer. */
  async #closedLoop(until: number, latency: LatencyRecorder): Promise<void> {
    const loop = async (one: Connection) => {
      while (systemNow() < until) {
        const sentAt = systemNow();
        await new Promise<void>((done) => one.send(this.#request(), done));
        latency.add(systemNow() - sentAt);
      }
    };
    await Promise.all(this.#connections.map(loop));
  }

  /**
   * Each request is due at its time, whatever became of the ones before, and its latency counts from then on (no
   * coordinated omission).
   */
  async #openLoop(rate: number, until: number, latency: LatencyRecorder, late: LatencyRecorder): Promise<void> {
    const answers: Promise<void>[] = [];
    const send = (dueAt: number) => {
      const request = this.#request();
      const { fd, waiting } = this.#connections[this.#next % this.#connections.length]!;
      const slot = this.#writer.write(fd, request, dueAt);
      answers.push(
        new Promise((answered) => {
          waiting.push(() => {
            latency.add(systemNow() - dueAt);
            late.add(this.#writer.latenessOf(slot));
            answered();
          });
        }),
      );
    };
    const dueTimes = arrivals(rate, systemNow());
    let next = dueTimes.next().value;
    // However short the time, there is one.
    do {
      for (; answers.length === 0 || next < Math.min(until, systemNow() + AHEAD_MS); next = dueTimes.next().value)
        send(next);
      await sleep(TOLD_EVERY_MS);
    } while (next < until);
    await Promise.all(answers);
  }
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
