import { isDeepStrictEqual } from 'node:util';
import type { BenchClient } from './clients.js';
import type { OperationId } from './data.js';
import { Data, OPERATIONS, type Operation, type Send } from './operations.js';
import type { Measured, TimedWorkload, Workload } from './protocol.js';
import { type LatencyRecorder, loopsFor, timed } from './timing.js';

/** A workload made ready for one client. */
export class Exercise {
  readonly #workload: TimedWorkload;
  readonly #operation: Operation;
  readonly #data: Data;
  readonly #client: BenchClient;
  /** One for each connection. */
  readonly #sends: readonly Send[];

  constructor(clients: readonly BenchClient[], workload: TimedWorkload, prefix: string) {
    const id = operationOf(workload);
    const [client] = clients;
    this.#client = client!;
    this.#workload = workload;
    this.#operation = OPERATIONS[id];
    this.#data = new Data(prefix, workload.data, id);
    const { needs } = this.#operation;
    if (needs !== undefined && !(needs in client!))
      throw new Error(`the operation "${id}" needs a client with ${needs}`);
    this.#sends = clients.map((one) => this.#operation.send(one, this.#data));
  }

  /** Each key once, as bursts of the workload's size, and each reply compared with what it must be. */
  async verify(): Promise<void> {
    const { keys, written } = this.#data;
    const size = this.#workload.kind === 'burst' ? this.#workload.size : keys.length;
    for (let first = 0; first < keys.length; first += size) {
      const indexes = Array.from({ length: Math.min(size, keys.length - first) }, (_, offset) => first + offset);
      const sent =
        this.#client.many?.(indexes.map((index) => keys[index]!)) ?? Promise.all(indexes.map(this.#sends[0]!));
      const replies = this.#operation.readBack
        ? await sent.then(() => Promise.all(indexes.map((index) => this.#client.get(written[index]!))))
        : await sent;
      for (const [offset, reply] of replies.entries()) this.#expect(reply, first + offset);
    }
  }

  /** Runs for about `seconds`. */
  measure(seconds: number): Promise<Measured> {
    const { commands = 1 } = this.#operation;
    return timed(async (latency) => commands * (await this.#issue(seconds, latency)));
  }

  #issue(seconds: number, latency: LatencyRecorder): Promise<number> {
    const workload = this.#workload;
    const { keys } = this.#data;
    if (workload.kind === 'loops') return loops(this.#sends, workload.loops, keys.length, seconds, latency);
    const { size } = workload;
    const { many } = this.#client;
    const burst =
      many === undefined
        ? burstOf(this.#sends[0]!, size, keys.length)
        : burstOf((index) => keys[index]!, size, keys.length, many);
    return loopsFor(1, seconds, burst, latency).then((bursts) => bursts * size);
  }

  #expect(reply: unknown, index: number): void {
    const expected = this.#operation.expected(this.#data, index);
    if (reply === expected || isDeepStrictEqual(canonical(reply), expected)) return;
    throw new Error(`${this.#data.keys[index]} should hold ${brief(expected)}, got ${brief(reply)}`);
  }
}

export function operationOf(workload: Workload): OperationId {
  const operation = 'operation' in workload ? workload.operation : undefined;
  return operation === undefined || operation === 'request' ? 'get' : operation;
}

/**
 * A burst that goes on where the one before ended; what is collected is awaited one by one or handed over as a whole.
 */
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
function loops(
  sends: readonly Send[],
  count: number,
  keyCount: number,
  seconds: number,
  latency: LatencyRecorder,
): Promise<number> {
  const next = Array.from({ length: count }, (_, loop) => loop % keyCount);
  const step = (loop: number) => {
    const index = next[loop]!;
    next[loop] = index + 1 === keyCount ? 0 : index + 1;
    return sends[loop % sends.length]!(index);
  };
  return loopsFor(count, seconds, step, latency);
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
