import { keysOf, type Operation, type Sample, valuesOf, type Workload } from '../workload.js';
import type { BenchClient } from './clients.js';
import { LatencyRecorder } from './latency.js';

export type TimedWorkload = Exclude<Workload, { kind: 'memory' }>;

/** Issues the command for the key at `index`. */
type Send = (index: number) => Promise<unknown>;

/** A workload made ready for one client: keys and values exist once, not once a command. */
export class Exercise {
  readonly #workload: TimedWorkload;
  readonly #operation: Operation;
  readonly #keys: string[];
  readonly #values: string[];
  readonly #client: BenchClient;

  constructor(client: BenchClient, workload: TimedWorkload, prefix: string) {
    this.#client = client;
    this.#workload = workload;
    this.#operation = workload.kind === 'burst' ? workload.operation : 'get';
    this.#keys = keysOf(prefix, workload.data, this.#operation);
    this.#values = valuesOf(workload.data);
  }

  /** Each key once, as bursts of the workload's size, and each reply compared with what the key holds. */
  async verify(): Promise<void> {
    const send = this.#send();
    const size = this.#workload.kind === 'burst' ? this.#workload.size : this.#workload.loops;
    for (let first = 0; first < this.#keys.length; first += size) {
      const keys = this.#keys.slice(first, first + size);
      const replies = await Promise.all(keys.map((_, offset) => send(first + offset)));
      if (this.#operation !== 'set') this.#expect(keys, replies, first);
      else this.#expect(keys, await Promise.all(keys.map((key) => this.#client.get(key))), first);
    }
  }

  /** Runs for about `seconds`; latencies go to `latency`, which costs, where given. */
  async run(seconds: number, latency?: LatencyRecorder): Promise<Sample> {
    const plain = this.#send();
    const send = latency === undefined ? plain : timed(plain, latency);
    const cpuBefore = process.cpuUsage();
    const start = performance.now();
    const until = start + seconds * 1000;
    const commands =
      this.#workload.kind === 'burst'
        ? await bursts(send, this.#workload.size, this.#keys.length, until)
        : await loops(send, this.#workload.loops, this.#keys.length, until);
    const elapsed = (performance.now() - start) / 1000;
    const cpu = process.cpuUsage(cpuBefore);
    return { commands, seconds: elapsed, perSecond: commands / elapsed, cpuUs: (cpu.user + cpu.system) / commands };
  }

  /** A lone loop is about latency, and a clock reading costs nothing beside a round trip. */
  async measure(seconds: number): Promise<Sample> {
    if (this.#workload.kind !== 'loops' || this.#workload.loops !== 1) return this.run(seconds);
    const latency = new LatencyRecorder();
    const sample = await this.run(seconds, latency);
    return { ...sample, latencyUs: latency.summary() };
  }

  #send(): Send {
    const client = this.#client;
    const keys = this.#keys;
    const values = this.#values;
    switch (this.#operation) {
      case 'get':
        return (index) => client.get(keys[index]!);
      case 'set':
        return (index) => client.set(keys[index]!, values[index]!);
      case 'call':
        if (client.call === undefined) throw new Error('the workload "call" needs a client with call()');
        return (index) => client.call!('get', keys[index]!);
    }
  }

  #expect(keys: readonly string[], replies: readonly unknown[], first: number): void {
    for (const [offset, reply] of replies.entries()) {
      const expected = this.#values[first + offset];
      if (reply === expected) continue;
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

function brief(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > 60 ? `${text.slice(0, 60)}… (${text.length} characters)` : text;
}
