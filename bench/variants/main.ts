/** One variant, in its own process: does what the parent asks, one request at a time, and is idle in between. */

import { setTimeout as sleep } from 'node:timers/promises';
import { openPackage, type Package } from '../packages/index.js';
import { runTask } from '../tasks/index.js';
import { type OpenVariant, openVariant, UnsupportedError } from './clients.js';
import { gateOf } from './data.js';
import { Exercise, type TimedWorkload } from './exercise.js';
import { LatencyRecorder } from './latency.js';
import { collectGarbage, measureMemory } from './memory.js';
import type { Answer, ClientOptions, Idle, Measured, Measurements, Probe, Request, Workload } from './protocol.js';
import { WriteCounter } from './write-counter.js';

type OpenRequest = Extract<Request, { type: 'open' }>;

class Variant {
  readonly #open: OpenVariant;
  readonly #request: OpenRequest;
  readonly #exercises = new Map<string, Exercise>();
  #package: { readonly of: string; readonly running: Package } | undefined;
  #counter: WriteCounter | undefined;
  #restingSince = performance.now();
  #cpuAtRest = process.cpuUsage();

  static async open(request: OpenRequest): Promise<Variant> {
    return new Variant(await openVariant(request.variant, request.url, request.options), request);
  }

  private constructor(open: OpenVariant, request: OpenRequest) {
    this.#open = open;
    this.#request = request;
  }

  get packagePath(): string | undefined {
    return this.#open.packagePath;
  }

  async prepare(workload: Workload, seconds: number, verify: boolean): Promise<Idle> {
    const idle = this.#idle();
    if (workload.kind === 'package') {
      const running = await this.#packageOf(workload);
      await running.refill?.(seconds);
      await running.run(seconds);
      await running.refill?.(seconds);
      return idle;
    }
    // Memory is not about speed, but code must be compiled before, not while, memory is counted.
    const timed: TimedWorkload =
      workload.kind === 'memory'
        ? { kind: 'burst', operation: 'get', size: 200, data: { ...workload.data, keys: 200 } }
        : workload;
    if (workload.kind === 'memory' && workload.of === 'cached values') return idle;
    const exercise = this.#exercise(timed);
    if (verify) await exercise.verify();
    await exercise.run(seconds);
    return idle;
  }

  async measure(workload: Workload, seconds: number): Promise<Measured> {
    switch (workload.kind) {
      case 'memory':
        return measureMemory(this.#open.client, workload, this.#request.prefix, () => this.#openGate());
      case 'package':
        return (await this.#packageOf(workload)).run(seconds);
      default:
        return this.#exercise(workload).measure(seconds);
    }
  }

  async probe(workload: Workload, seconds: number): Promise<Probe> {
    if (workload.kind === 'memory' || workload.kind === 'package') return {};
    const exercise = this.#exercise(workload);
    const latency = new LatencyRecorder();
    await exercise.run(seconds, latency);
    this.#counter ??= new WriteCounter();
    const before = this.#counter.writes;
    const { commands } = await exercise.run(seconds);
    return { writesPerCommand: (this.#counter.writes - before) / commands, latencyUs: latency.summary() };
  }

  task(name: string, options: Readonly<Record<string, unknown>>): Promise<Measurements> {
    const { url, prefix } = this.#request;
    return runTask(name, { client: this.#open.client, open: (more) => this.#another(more), url, prefix, options });
  }

  /** What a round leaves behind must not run in another variant's round: node-redis's timers go with their signals. */
  async rest(): Promise<void> {
    collectGarbage();
    await sleep(1);
    this.#restingSince = performance.now();
    this.#cpuAtRest = process.cpuUsage();
  }

  async close(): Promise<void> {
    await this.#package?.running.close();
    this.#open.close();
  }

  #idle(): Idle {
    const cpu = process.cpuUsage(this.#cpuAtRest);
    return {
      seconds: (performance.now() - this.#restingSince) / 1000,
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
    };
  }

  #another(more: ClientOptions = {}): Promise<OpenVariant> {
    const { variant, url, options } = this.#request;
    return openVariant(variant, url, { ...options, ...more });
  }

  #exercise(workload: TimedWorkload): Exercise {
    const name = JSON.stringify(workload);
    let exercise = this.#exercises.get(name);
    if (exercise === undefined) {
      exercise = new Exercise(this.#open.client, workload, this.#request.prefix);
      this.#exercises.set(name, exercise);
    }
    return exercise;
  }

  /** One at a time: a worker that waits for jobs would be in the figures of the next package. */
  async #packageOf({ name, concurrency }: Extract<Workload, { kind: 'package' }>): Promise<Package> {
    const of = `${name} ${concurrency}`;
    if (this.#package?.of !== of) {
      await this.#package?.running.close();
      const prefix = `${this.#request.prefix}${this.#request.variant}:`;
      this.#package = { of, running: await openPackage(name, { open: () => this.#another(), prefix, concurrency }) };
    }
    return this.#package.running;
  }

  /** By a connection of its own: the variant's is blocked. */
  async #openGate(): Promise<void> {
    const { ReferenceClient } = await import('./reference.js');
    const client = await ReferenceClient.open(this.#request.url);
    await client.command('RPUSH', gateOf(this.#request.prefix), 'open');
    client.close();
  }
}

let variant: Variant | undefined;

async function answer(request: Request): Promise<Answer> {
  if (request.type === 'open') {
    try {
      variant = await Variant.open(request);
    } catch (error) {
      if (error instanceof UnsupportedError) return { type: 'opened', unsupported: error.message };
      throw error;
    }
    const { packagePath } = variant;
    return packagePath === undefined ? { type: 'opened' } : { type: 'opened', packagePath };
  }
  if (variant === undefined) throw new Error(`expected "open" first, got "${request.type}"`);
  switch (request.type) {
    case 'prepare':
      return { type: 'prepared', idle: await variant.prepare(request.workload, request.seconds, request.verify) };
    case 'measure': {
      const sample = await variant.measure(request.workload, request.seconds);
      await variant.rest();
      return { type: 'measured', sample };
    }
    case 'probe':
      return { type: 'probed', probe: await variant.probe(request.workload, request.seconds) };
    case 'task': {
      const measurements = await variant.task(request.name, request.options);
      await variant.rest();
      return { type: 'done', measurements };
    }
    case 'close':
      await variant.close();
      return { type: 'closed' };
  }
}

process.on('message', (request: Request) => {
  answer(request)
    .catch((error: unknown): Answer => {
      return { type: 'failed', message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    })
    .then((reply) => process.send?.(reply));
});
// Experiments set limits that are too low on purpose, and need not be told.
process.removeAllListeners('warning');
process.on('warning', (warning: Error & { code?: string }) => {
  if (warning.code !== 'COALESCE_WARN_BATCH_BOUND') console.error(warning);
});
process.on('disconnect', () => process.exit());
// Ctrl-C reaches every process of the terminal; the parent decides, and has keys to remove first.
process.on('SIGINT', () => {});
