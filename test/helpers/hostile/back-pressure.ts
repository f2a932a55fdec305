import { once } from 'node:events';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { cold } from '../cold.js';
import type { Client, Host } from '../hosts.js';
import { startServer } from '../redis.js';
import { gc } from './heap.js';
import { HostileProxy } from './proxy.js';
import { seeded } from './random.js';

export interface PressureOptions {
  readonly host: Host;
  readonly commands: number;
  /** Without it, a plain client. */
  readonly maxInFlight?: number;
  readonly pauseWith: 'SIGSTOP' | 'CLIENT PAUSE';
  /** Told of how many have been answered, now and then. */
  readonly progress?: (answered: number) => void;
}

export interface Pressure {
  /** The most commands that were unanswered at the proxy at one time. */
  readonly mostOnTheWire: number;
  /** Unanswered ones at the proxy when all had been issued. */
  readonly onTheWireWhenIssued: number;
  readonly answered: number;
  /** Replies that did not come in the order of their commands. */
  readonly outOfOrder: number;
  /** Heap and buffers per command that waits, in bytes. */
  readonly bytesPerCommand: number;
}

/** As long in upper case as in lower case: every command has the same number of bytes, and every reply one line. */
const KEY = 'counter';
const COMMAND_BYTES = `*2\r\n$4\r\nincr\r\n$${KEY.length}\r\n${KEY}\r\n`.length;
/** Commands issued in one turn of the event loop. */
const BURST = 5_000;

/**
 * Issues commands to a server that does not answer, then lets it. Every command increments the same counter, so the
 * replies are 1, 2, 3, …, and the proxy between counts by length alone.
 */
export async function pressServer(options: PressureOptions): Promise<Pressure> {
  const { host, commands, maxInFlight, pauseWith } = options;
  const server = await startServer();
  const proxy = await HostileProxy.start(server.port, seeded(1));
  const client = new host.Redis(proxy.url, {});
  const admin = new host.Redis(server.url, {});
  if (maxInFlight !== undefined) coalesce(client, { maxInFlight });
  try {
    await Promise.all([once(client, 'ready'), once(admin, 'ready')]);
    await client.set(KEY, '0');
    let mostOnTheWire = 0;
    const start = { requestBytes: proxy.requestBytes, replyLines: proxy.replyLines };
    const onTheWire = (): number =>
      Math.ceil((proxy.requestBytes - start.requestBytes) / COMMAND_BYTES) - (proxy.replyLines - start.replyLines);
    proxy.onRequest = () => {
      mostOnTheWire = Math.max(mostOnTheWire, onTheWire());
    };
    if (pauseWith === 'SIGSTOP') process.kill(server.pid, 'SIGSTOP');
    else await admin.call('CLIENT', 'PAUSE', '3600000', 'WRITE');

    let answered = 0;
    let outOfOrder = 0;
    const take = (reply: unknown): void => {
      answered += 1;
      if (reply !== answered) outOfOrder += 1;
      if (answered % 100_000 === 0) options.progress?.(answered);
    };
    const before = memoryNow();
    let last: Promise<void> = Promise.resolve();
    for (let issued = 0; issued < commands; ) {
      for (let burst = 0; burst < BURST && issued < commands; burst += 1, issued += 1) {
        // One in ten is not of the fast path.
        last = (issued % 10 === 3 ? cold(client, 'INCR', KEY) : client.incr(KEY)).then(take);
      }
      await new Promise(setImmediate);
    }
    const bytesPerCommand = (memoryNow() - before) / commands;
    const expected = Math.min(commands, maxInFlight ?? commands);
    await settled(() => onTheWire() >= expected);
    const onTheWireWhenIssued = onTheWire();

    if (pauseWith === 'SIGSTOP') process.kill(server.pid, 'SIGCONT');
    else await admin.call('CLIENT', 'UNPAUSE');
    await last;
    return { mostOnTheWire, onTheWireWhenIssued, answered, outOfOrder, bytesPerCommand };
  } finally {
    client.disconnect();
    admin.disconnect();
    await proxy.close();
    if (pauseWith === 'SIGSTOP') process.kill(server.pid, 'SIGCONT');
    await server.stop();
  }
}

export interface ReaderOptions {
  readonly host: Host;
  readonly replies: number;
  readonly size: number;
  /** Without it, a plain client. */
  readonly maxInFlight?: number;
  /** Whether the stream is paused by hand for a while, or the event loop does other work again and again. */
  readonly slowBy: 'paused stream' | 'blocked event loop';
}

export interface Reading {
  readonly answered: number;
  /** Replies that came out of order or are not the value asked for. */
  readonly wrong: number;
  /** What the server's memory grew by at the most, in bytes. */
  readonly serverGrowth: number;
}

/** Asks for more bytes of replies than the client reads, and looks at what that costs the server. */
export async function readSlowly(options: ReaderOptions): Promise<Reading> {
  const { host, replies, size, maxInFlight, slowBy } = options;
  const server = await startServer();
  const client = new host.Redis(server.url, {});
  const admin = new host.Redis(server.url, {});
  if (maxInFlight !== undefined) coalesce(client, { maxInFlight });
  try {
    await Promise.all([once(client, 'ready'), once(admin, 'ready')]);
    const values = Array.from({ length: 7 }, (_, index) => String(index).repeat(size));
    await Promise.all(values.map((value, index) => admin.set(`value ${index}`, value)));
    const memory = async (): Promise<number> => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1]);
    const before = await memory();
    let peak = before;
    let answered = 0;
    let wrong = 0;
    const take = (index: number, reply: unknown): void => {
      if (reply !== values[index % values.length] || index !== answered) wrong += 1;
      answered += 1;
      if (slowBy === 'blocked event loop' && answered % 20 === 0) block(5);
    };
    const all = Promise.all(
      Array.from({ length: replies }, (_, index) => {
        const key = `value ${index % values.length}`;
        const reply = index % 10 === 3 ? cold(client, 'GET', key) : client.get(key);
        return reply.then((value) => take(index, value));
      }),
    );
    if (slowBy === 'paused stream') {
      // The first replies must be on their way, or nothing is paused.
      await settled(() => answered > 0);
      (client as Client & { stream: NodeJS.ReadableStream }).stream.pause();
      for (let sample = 0; sample < 10; sample += 1) {
        peak = Math.max(peak, await memory());
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      (client as Client & { stream: NodeJS.ReadableStream }).stream.resume();
    } else {
      while (answered < replies) peak = Math.max(peak, await memory());
    }
    await all;
    return { answered, wrong, serverGrowth: peak - before };
  } finally {
    client.disconnect();
    admin.disconnect();
    await server.stop();
  }
}

/** Blocks for some time, as a service does that computes. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function memoryNow(): number {
  gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function settled(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
