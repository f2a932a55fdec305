import { isDeepStrictEqual } from 'node:util';
import type { BenchClient } from './clients.js';
import type { OperationId } from './data.js';
import { Data, OPERATIONS, type Operation, type Send } from './operations.js';
import type { Measured, TimedWorkload, Workload } from './protocol.js';
import { atRate, LatencyRecorder, loopsFor, recorded, Stopwatch } from './timing.js';

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
    const watch = new Stopwatch();
    return watch.figures((await this.#issue(seconds, latency)) * (this.#operation.commands ?? 1));
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

  async #issue(seconds: number, latency: LatencyRecorder | undefined): Promise<number> {
    const workload = this.#workload;
    const { keys } = this.#data;
    if (workload.kind === 'rate') return atRate(this.#send, workload.perSecond, keys.length, seconds, latency);
    const { many } = this.#client;
    const wholeBursts = workload.kind === 'burst' && (workload.timed === 'burst' || many !== undefined);
    const send = latency === undefined || wholeBursts ? this.#send : recorded(this.#send, latency);
    if (workload.kind === 'loops') return loops(send, workload.loops, keys.length, seconds);
    const { size } = workload;
    const burst =
      many === undefined ? burstOf(send, size, keys.length) : burstOf((index) => keys[index]!, size, keys.length, many);
    return size * (await loopsFor(1, seconds, wholeBursts && latency ? recorded(burst, latency) : burst));
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

/** Each loop has its own place among the keys. */
function loops(send: Send, count: number, keyCount: number, seconds: number): Promise<number> {
  const next = Array.from({ length: count }, (_, loop) => loop % keyCount);
  return loopsFor(count, seconds, (loop) => {
    const index = next[loop]!;
    next[loop] = index + 1 === keyCount ? 0 : index + 1;
    return send(index);
  });
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
