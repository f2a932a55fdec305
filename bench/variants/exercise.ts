import { isDeepStrictEqual } from 'node:util';
import type { BenchClient } from './clients.js';
import { LatencyRecorder } from './latency.js';
import { Data, OPERATIONS, type Operation, type Send } from './operations.js';
import type { Measured, OperationId, Workload } from './protocol.js';
import { atRate } from './rate.js';

export type TimedWorkload = Extract<Workload, { kind: 'burst' | 'loops' | 'rate' }>;

/** A workload made ready for one client. */
export class Exercise {
  readonly #workload: TimedWorkload;
  readonly #operation: Operation;
  readonly #data: Data;
  readonly #client: BenchClient;
  readonly #send: Send;

  constructor(client: BenchClient, workload: TimedWorkload, prefix: string) {
    const id = operationOf(workload);
    this.#client = client;
    this.#workload = workload;
    this.#operation = OPERATIONS[id];
    this.#data = new Data(prefix, workload.data, id);
    const { needs } = this.#operation;
    if (needs !== undefined && !(needs in client))
      throw new Error(`the operation "${id}" needs a client with ${needs}`);
    this.#send = this.#operation.send(client, this.#data);
  }

  /** Each key once, as bursts of the workload's size, and each reply compared with what it must be. */
  async verify(): Promise<void> {
    const { keys, written } = this.#data;
    const size = this.#workload.kind === 'burst' ? this.#workload.size : keys.length;
    for (let first = 0; first < keys.length; first += size) {
      const indexes = Array.from({ length: Math.min(size, keys.length - first) }, (_, offset) => first + offset);
      const sent = this.#client.many?.(indexes.map((index) => keys[index]!)) ?? Promise.all(indexes.map(this.#send));
      const replies = this.#operation.readBack
        ? await sent.then(() => Promise.all(indexes.map((index) => this.#client.get(written[index]!))))
        : await sent;
      for (const [offset, reply] of replies.entries()) this.#expect(reply, first + offset);
    }
  }

  /** Runs for about `seconds`; latencies go to `latency`, which costs, where given. */
  async run(seconds: number, latency?: LatencyRecorder): Promise<Measured> {
    const cpuBefore = process.cpuUsage();
    const start = performance.now();
    const commands = (await this.#issue(start + seconds * 1000, latency)) * (this.#operation.commands ?? 1);
    const elapsed = (performance.now() - start) / 1000;
    const cpu = process.cpuUsage(cpuBefore);
    return { commands, perSecond: commands / elapsed, cpuUs: (cpu.user + cpu.system) / commands };
  }

  /** A lone loop is about latency, and a clock reading costs nothing beside a round trip; so are fixed rates. */
  async measure(seconds: number): Promise<Measured> {
    const workload = this.#workload;
    const aboutLatency =
      workload.kind === 'rate' || (workload.kind === 'loops' ? workload.loops === 1 : workload.timed === 'burst');
    if (!aboutLatency) return this.run(seconds);
    const latency = new LatencyRecorder();
    const sample = await this.run(seconds, latency);
    return { ...sample, latencyUs: latency.summary() };
  }

  #issue(until: number, latency: LatencyRecorder | undefined): Promise<number> {
    const workload = this.#workload;
    const count = this.#data.keys.length;
    if (workload.kind === 'rate') return atRate(this.#send, workload.perSecond, count, until, latency);
    const wholeBursts = workload.kind === 'burst' && (workload.timed === 'burst' || this.#client.many !== undefined);
    const send = latency === undefined || wholeBursts ? this.#send : timed(this.#send, latency);
    if (workload.kind === 'loops') return loops(send, workload.loops, count, until);
    const { many } = this.#client;
    const burst =
      many === undefined
        ? burstOf(send, workload.size, count)
        : burstOf((index) => this.#data.keys[index]!, workload.size, count, many);
    return bursts(burst, workload.size, until, wholeBursts ? latency : undefined);
  }

  #expect(reply: unknown, index: number): void {
    const expected = this.#operation.expected(this.#data, index);
    if (reply === expected || isDeepStrictEqual(canonical(reply), expected)) return;
    throw new Error(`${this.#data.keys[index]} should hold ${brief(expected)}, got ${brief(reply)}`);
  }
}

export function operationOf(workload: Workload): OperationId {
  return ('operation' in workload ? workload.operation : undefined) ?? 'get';
}

/** A burst that goes on where the one before ended; what is collected is awaited one by one or handed over as a whole. */
function burstOf<T>(
  collect: (index: number) => T,
  size: number,
  keyCount: number,
  settle: (collected: T[]) => Promise<unknown> = (collected) => Promise.all(collected),
): () => Promise<unknown> {
  let next = 0;
  return () => {
    const collected = new Array<T>(size);
    for (let index = 0; index < size; index += 1) {
      collected[index] = collect(next);
      next = next + 1 === keyCount ? 0 : next + 1;
    }
    return settle(collected);
  };
}

async function bursts(
  burst: () => Promise<unknown>,
  size: number,
  until: number,
  latency: LatencyRecorder | undefined,
): Promise<number> {
  let sends = 0;
  do {
    const start = performance.now();
    await burst();
    latency?.record(start);
    sends += size;
  } while (performance.now() < until);
  return sends;
}

async function loops(send: Send, count: number, keyCount: number, until: number): Promise<number> {
  let running = true;
  let sends = 0;
  const loop = async (number: number) => {
    let next = number % keyCount;
    while (running) {
      await send(next);
      sends += 1;
      next = next + 1 === keyCount ? 0 : next + 1;
      // One loop keeps the time for all: reading the clock at each command would be part of the result.
      if (number === 0 && performance.now() >= until) running = false;
    }
  };
  await Promise.all(Array.from({ length: count }, (_, number) => loop(number)));
  return sends;
}

function timed(send: Send, latency: LatencyRecorder): Send {
  return async (index) => {
    const start = performance.now();
    await send(index);
    latency.record(start);
  };
}

/** A hash as a plain object, whichever of the shapes a library gives it. */
function canonical(reply: unknown): unknown {
  if (!Array.isArray(reply)) return typeof reply === 'object' && reply !== null ? { ...reply } : reply;
  const pairs = reply.filter((entry): entry is { field: string; value: string } => entry?.field !== undefined);
  return pairs.length === 0 ? reply : Object.fromEntries(pairs.map(({ field, value }) => [field, value]));
}

function brief(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 60)}… (${text.length} characters)` : text;
}
