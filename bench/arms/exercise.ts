import { isDeepStrictEqual } from 'node:util';
import { FIELD, hashOf, keysOf, listOf, type Operation, type Sample, valuesOf, type Workload } from '../workload.js';
import { type BenchClient, lacks } from './clients.js';
import { LatencyRecorder } from './latency.js';
import { atRate } from './rate.js';

export type TimedWorkload = Exclude<Workload, { kind: 'memory' }>;

/** Issues the command for the key at `index`. */
type Send = (index: number) => Promise<unknown>;

/** In `mixed`, each fifth command writes. */
const WRITE_EVERY = 5;

/** A workload made ready for one client: keys and values exist once, not once a command. */
export class Exercise {
  readonly #workload: TimedWorkload;
  readonly #operation: Operation;
  readonly #keys: string[];
  readonly #written: string[];
  readonly #values: string[];
  readonly #client: BenchClient;

  constructor(client: BenchClient, workload: TimedWorkload, prefix: string) {
    this.#client = client;
    this.#workload = workload;
    this.#operation = workload.kind === 'burst' ? workload.operation : 'get';
    this.#keys = keysOf(prefix, workload.data, this.#operation);
    this.#written = keysOf(prefix, workload.data, 'set');
    this.#values = valuesOf(workload.data);
  }

  /** Each key once, as bursts of the workload's size, and each reply compared with what the key holds. */
  async verify(): Promise<void> {
    const operation = this.#operation;
    const reads = operation === 'set' || operation === 'mixed' ? 'get' : operation;
    const size = this.#burstSize();
    for (let first = 0; first < this.#keys.length; first += size) {
      const keys = this.#keys.slice(first, first + size);
      if (operation === 'set') await Promise.all(keys.map((_, offset) => this.#send('set')(first + offset)));
      const read = this.#send(reads);
      const replies =
        this.#client.many === undefined
          ? await Promise.all(keys.map((_, offset) => read(first + offset)))
          : await this.#client.many(keys);
      this.#expect(keys, replies, first);
    }
  }

  /** Runs for about `seconds`; latencies go to `latency`, which costs, where given. */
  async run(seconds: number, latency?: LatencyRecorder): Promise<Sample> {
    const plain = this.#send(this.#operation);
    const send = latency === undefined ? plain : timed(plain, latency);
    const cpuBefore = process.cpuUsage();
    const start = performance.now();
    const commands = await this.#issue(send, start + seconds * 1000, latency);
    const elapsed = (performance.now() - start) / 1000;
    const cpu = process.cpuUsage(cpuBefore);
    return { commands, seconds: elapsed, perSecond: commands / elapsed, cpuUs: (cpu.user + cpu.system) / commands };
  }

  /** A lone loop is about latency, and a clock reading costs nothing beside a round trip; so are fixed rates. */
  async measure(seconds: number): Promise<Sample> {
    const { kind } = this.#workload;
    const loneLoop = kind === 'loops' && this.#workload.loops === 1;
    if (!loneLoop && kind !== 'rate') return this.run(seconds);
    const latency = new LatencyRecorder();
    const sample = await this.run(seconds, latency);
    return { ...sample, latencyUs: latency.summary() };
  }

  #issue(send: Send, until: number, latency: LatencyRecorder | undefined): Promise<number> {
    const count = this.#keys.length;
    const workload = this.#workload;
    switch (workload.kind) {
      case 'loops':
        return loops(send, workload.loops, count, until);
      case 'rate':
        return atRate(this.#send('get'), workload.perSecond, count, until, latency);
      case 'burst': {
        const { many } = this.#client;
        return many === undefined
          ? bursts(send, workload.size, count, until)
          : burstsByHand(many, this.#keys, workload.size, until, latency);
      }
    }
  }

  #burstSize(): number {
    switch (this.#workload.kind) {
      case 'burst':
        return this.#workload.size;
      case 'loops':
        return this.#workload.loops;
      case 'rate':
        return this.#keys.length;
    }
  }

  #send(operation: Operation): Send {
    const client = this.#client;
    const keys = this.#keys;
    const values = this.#values;
    const written = this.#written;
    switch (operation) {
      case 'get':
        return (index) => client.get(keys[index]!);
      case 'set':
        return (index) => client.set(written[index]!, values[index]!);
      case 'mixed':
        return (index) =>
          index % WRITE_EVERY === WRITE_EVERY - 1
            ? client.set(written[index]!, values[index]!)
            : client.get(keys[index]!);
      case 'call':
        if (client.call === undefined) throw lacks(operation);
        return (index) => client.call!('get', keys[index]!);
      case 'hget':
        if (client.hget === undefined) throw lacks(operation);
        return (index) => client.hget!(keys[index]!, FIELD);
      case 'hgetall':
        if (client.hgetall === undefined) throw lacks(operation);
        return (index) => client.hgetall!(keys[index]!);
      case 'lrange':
        if (client.lrange === undefined) throw lacks(operation);
        return (index) => client.lrange!(keys[index]!, 0, -1);
    }
  }

  #expect(keys: readonly string[], replies: readonly unknown[], first: number): void {
    for (const [offset, reply] of replies.entries()) {
      const value = this.#values[first + offset]!;
      const expected =
        this.#operation === 'hgetall' ? hashOf(value) : this.#operation === 'lrange' ? listOf(value) : value;
      if (reply === expected || isDeepStrictEqual(canonical(reply), expected)) continue;
      throw new Error(`${keys[offset]} should hold ${brief(expected)}, got ${brief(reply)}`);
    }
  }
}

async function bursts(send: Send, size: number, keyCount: number, until: number): Promise<number> {
  let next = 0;
  let commands = 0;
  do {
    const replies = new Array<Promise<unknown>>(size);
    for (let index = 0; index < size; index += 1) {
      replies[index] = send(next);
      next = next + 1 === keyCount ? 0 : next + 1;
    }
    await Promise.all(replies);
    commands += size;
  } while (performance.now() < until);
  return commands;
}

/** The keys of each burst are collected as the others collect promises. */
async function burstsByHand(
  many: NonNullable<BenchClient['many']>,
  keys: readonly string[],
  size: number,
  until: number,
  latency: LatencyRecorder | undefined,
): Promise<number> {
  let next = 0;
  let commands = 0;
  do {
    const start = performance.now();
    const burst = new Array<string>(size);
    for (let index = 0; index < size; index += 1) {
      burst[index] = keys[next]!;
      next = next + 1 === keys.length ? 0 : next + 1;
    }
    await many(burst);
    latency?.record(start);
    commands += size;
  } while (performance.now() < until);
  return commands;
}

async function loops(send: Send, count: number, keyCount: number, until: number): Promise<number> {
  let running = true;
  let commands = 0;
  const loop = async (number: number) => {
    let next = number % keyCount;
    while (running) {
      await send(next);
      commands += 1;
      next = next + 1 === keyCount ? 0 : next + 1;
      // One loop keeps the time for all: reading the clock at each command would be part of the result.
      if (number === 0 && performance.now() >= until) running = false;
    }
  };
  await Promise.all(Array.from({ length: count }, (_, number) => loop(number)));
  return commands;
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
