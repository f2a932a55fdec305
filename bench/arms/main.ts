/** One arm, in its own process: does what the parent asks, one request at a time, and is idle in between. */

import { setTimeout as sleep } from 'node:timers/promises';
import { runTask } from '../tasks/index.js';
import type { Answer, ClientOptions, Figures, Idle, Probe, Request, Sample, Workload } from '../workload.js';
import { gateOf } from '../workload.js';
import { type OpenArm, openArm } from './clients.js';
import { Exercise, type TimedWorkload } from './exercise.js';
import { LatencyRecorder } from './latency.js';
import { collectGarbage, measureMemory } from './memory.js';
import { WriteCounter } from './write-counter.js';

type OpenRequest = Extract<Request, { type: 'open' }>;

class Arm {
  readonly #arm: OpenArm;
  readonly #request: OpenRequest;
  readonly #url: string;
  readonly #prefix: string;
  readonly #exercises = new Map<string, Exercise>();
  #counter: WriteCounter | undefined;
  #restingSince = performance.now();
  #cpuAtRest = process.cpuUsage();

  static async open(request: OpenRequest): Promise<Arm> {
    return new Arm(await openArm(request.arm, request.url, request.options), request);
  }

  private constructor(arm: OpenArm, request: OpenRequest) {
    this.#arm = arm;
    this.#request = request;
    this.#url = request.url;
    this.#prefix = request.prefix;
  }

  get packagePath(): string | undefined {
    return this.#arm.packagePath;
  }

  async prepare(workload: Workload, seconds: number, verify: boolean): Promise<Idle> {
    const idle = this.#idle();
    // Memory is not about speed, but code must be compiled before, not while, memory is counted.
    const timed: TimedWorkload =
      workload.kind === 'memory' ? { kind: 'burst', operation: 'get', size: 200, data: workload.data } : workload;
    const exercise = this.#exercise(timed);
    if (verify) await exercise.verify();
    await exercise.run(seconds);
    return idle;
  }

  async measure(workload: Workload, seconds: number): Promise<Sample> {
    if (workload.kind === 'memory') {
      return measureMemory(this.#arm.client, workload, this.#prefix, () => this.#openGate());
    }
    return this.#exercise(workload).measure(seconds);
  }

  async probe(workload: Workload, seconds: number): Promise<Probe> {
    if (workload.kind === 'memory') return {};
    const exercise = this.#exercise(workload);
    const latency = new LatencyRecorder();
    await exercise.run(seconds, latency);
    this.#counter ??= new WriteCounter();
    const before = this.#counter.writes;
    const { commands } = await exercise.run(seconds);
    return { writesPerCommand: (this.#counter.writes - before) / commands, latencyUs: latency.summary() };
  }

  task(name: string, options: Readonly<Record<string, unknown>>): Promise<Figures> {
    const { arm, url, options: own } = this.#request;
    return runTask(name, {
      client: this.#arm.client,
      open: (more: ClientOptions = {}) => openArm(arm, url, { ...own, ...more }),
      url,
      prefix: this.#prefix,
      options,
    });
  }

  /** What a round leaves behind must not run in another arm's round: node-redis's timers go with their signals. */
  async rest(): Promise<void> {
    collectGarbage();
    await sleep(1);
    this.#restingSince = performance.now();
    this.#cpuAtRest = process.cpuUsage();
  }

  close(): void {
    this.#arm.close();
  }

  #idle(): Idle {
    const cpu = process.cpuUsage(this.#cpuAtRest);
    return {
      seconds: (performance.now() - this.#restingSince) / 1000,
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
    };
  }

  #exercise(workload: TimedWorkload): Exercise {
    const name = JSON.stringify(workload);
    let exercise = this.#exercises.get(name);
    if (exercise === undefined) {
      exercise = new Exercise(this.#arm.client, workload, this.#prefix);
      this.#exercises.set(name, exercise);
    }
    return exercise;
  }

  /** By a connection of its own: the arm's is blocked. */
  async #openGate(): Promise<void> {
    const { ReferenceClient } = await import('./reference.js');
    const client = await ReferenceClient.open(this.#url);
    await client.command('RPUSH', gateOf(this.#prefix), 'open');
    client.close();
  }
}

let arm: Arm | undefined;

async function answer(request: Request): Promise<Answer> {
  if (request.type === 'open') {
    arm = await Arm.open(request);
    const { packagePath } = arm;
    return packagePath === undefined ? { type: 'opened' } : { type: 'opened', packagePath };
  }
  if (arm === undefined) throw new Error(`expected "open" first, got "${request.type}"`);
  switch (request.type) {
    case 'prepare':
      return { type: 'prepared', idle: await arm.prepare(request.workload, request.seconds, request.verify) };
    case 'measure': {
      const sample = await arm.measure(request.workload, request.seconds);
      await arm.rest();
      return { type: 'measured', sample };
    }
    case 'probe':
      return { type: 'probed', probe: await arm.probe(request.workload, request.seconds) };
    case 'task': {
      const figures = await arm.task(request.name, request.options);
      await arm.rest();
      return { type: 'done', figures };
    }
    case 'close':
      arm.close();
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
// Experiments set bounds that are too low on purpose, and need not be told.
process.removeAllListeners('warning');
process.on('warning', (warning: Error & { code?: string }) => {
  if (warning.code !== 'COALESCE_WARN_BATCH_BOUND') console.error(warning);
});
process.on('disconnect', () => process.exit());
// Ctrl-C reaches every process of the terminal; the parent decides, and has keys to remove first.
process.on('SIGINT', () => {});
