/** One variant, in its own process: does what the parent asks, one request at a time, and is idle in between. */

import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Package } from '../packages/package.js';
import type { Service } from '../packages/service.js';
import { answerParent } from '../suite/child.js';
import { type OpenVariant, UnsupportedError } from './clients.js';
import { gateOf } from './data.js';
import { Exercise } from './exercise.js';
import { collectGarbage, measureMemory } from './memory.js';
import { ioredisOf } from './operations.js';
import type { PackageWorkload, Sample, TimedWorkload, Workload } from './protocol.js';
import type { OpenOrder, Request, Requests } from './requests.js';
import { openVariant } from './watch.js';
import { WriteCounter } from './write-counter.js';

/** What a package that works until nothing is left gets for a timed round, unless the rounds only have to run. */
const TIMED_S = 1;
const SHORT_S = 0.05;

class Variant implements Omit<Requests, 'open'> {
  readonly #open: OpenVariant;
  readonly #order: OpenOrder;
  readonly #exercises = new Map<string, Exercise>();
  #package: { readonly of: string; readonly clients: readonly OpenVariant[]; readonly running: Package } | undefined;
  #service: Promise<Service> | undefined;
  #counter: WriteCounter | undefined;

  constructor(open: OpenVariant, order: OpenOrder) {
    this.#open = open;
    this.#order = order;
  }

  async prepare({ workload, seconds, verify }: Parameters<Requests['prepare']>[0]): Promise<object> {
    await this.#warmUp(workload, seconds, verify);
    collectGarbage();
    // node-redis's timers go with their signals.
    await sleep(1);
    return {};
  }

  async measure({ workload, seconds }: Parameters<Requests['measure']>[0]) {
    if (workload.kind === 'package') return (await this.#packageOf(workload)).run(seconds);
    if (workload.kind === 'service') return (await this.#serving()).run(workload, seconds);
    if (workload.kind !== 'memory') return (await this.#exercise(workload)).measure(seconds);
    return measureMemory(this.#open.client, workload, this.#order.prefix, () => this.#openGate());
  }

  async probe({ workload, seconds }: Parameters<Requests['probe']>[0]): Promise<Sample> {
    if (workload.kind !== 'burst' && workload.kind !== 'loops') return {};
    const exercise = await this.#exercise(workload);
    this.#counter ??= new WriteCounter();
    const before = this.#counter.writes;
    const { commands } = await exercise.measure(seconds);
    return { writes: (this.#counter.writes - before) / commands };
  }

  async close() {
    await this.#closePackage();
    await (await this.#service)?.close();
    this.#open.close();
    return {};
  }

  async #warmUp(workload: Workload, seconds: number, verify: boolean): Promise<void> {
    if (workload.kind === 'package') {
      const running = await this.#packageOf(workload);
      await running.refill?.(seconds);
      await running.run(seconds);
      await running.refill?.(seconds < SHORT_S ? seconds : TIMED_S);
    } else if (workload.kind === 'service') {
      // At a low rate, the code of a service would not be compiled before it is measured; later it is.
      const { rate: _, ...saturated } = workload;
      await (await this.#serving()).run(saturated, seconds);
    } else if (workload.kind !== 'memory' || workload.of !== 'cached values') {
      // Memory is not about speed, but code must be compiled before, not while, memory is counted.
      const timed: TimedWorkload =
        workload.kind === 'memory'
          ? { kind: 'burst', operation: 'get', size: 200, data: { ...workload.data, keys: 200 } }
          : workload;
      const exercise = await this.#exercise(timed);
      if (verify) await exercise.verify();
      await exercise.measure(seconds);
    }
  }

  /** One more client of the variant's kind. */
  #another(): Promise<OpenVariant> {
    const { variant, url, options } = this.#order;
    return openVariant(variant, url, options);
  }

  async #exercise(workload: TimedWorkload): Promise<Exercise> {
    const name = JSON.stringify(workload);
    const known = this.#exercises.get(name);
    if (known !== undefined) return known;
    const connections = workload.kind === 'loops' ? (workload.connections ?? 1) : 1;
    const more = await Promise.all(Array.from({ length: connections - 1 }, () => this.#another()));
    const clients = [this.#open, ...more].map(({ client }) => client);
    const exercise = new Exercise(clients, workload, this.#order.prefix);
    this.#exercises.set(name, exercise);
    return exercise;
  }

  #serving(): Promise<Service> {
    this.#service ??= import('../packages/service.js').then(({ Service: Opened }) =>
      Opened.open(this.#open.client, this.#order.prefix),
    );
    return this.#service;
  }

  /** One at a time: a worker that waits for jobs would be in the figures of the next package. */
  async #packageOf({ name, concurrency }: PackageWorkload): Promise<Package> {
    const of = `${name} ${concurrency}`;
    if (this.#package?.of !== of) {
      await this.#closePackage();
      const clients: OpenVariant[] = [];
      const open = async () => {
        const opened = await this.#another();
        clients.push(opened);
        return ioredisOf(opened.client);
      };
      // As long as any other variant's: scripts with longer keys take the server longer.
      const prefix = `${this.#order.prefix}${randomBytes(4).toString('hex')}:`;
      const { openPackage } = await import('../packages/index.js');
      this.#package = { of, clients, running: await openPackage(name, { open, prefix, concurrency }) };
    }
    return this.#package.running;
  }

  async #closePackage(): Promise<void> {
    await this.#package?.running.close?.();
    for (const { close } of this.#package?.clients ?? []) close();
  }

  /** By a connection of its own: the variant's is blocked. */
  async #openGate(): Promise<void> {
    const { ReferenceClient } = await import('./reference.js');
    const client = await ReferenceClient.open(this.#order.url);
    await client.command('RPUSH', gateOf(this.#order.prefix), 'open');
    client.close();
  }
}

let variant: Variant | undefined;

async function open(order: OpenOrder): ReturnType<Requests['open']> {
  try {
    const opened = await openVariant(order.variant, order.url, order.options);
    variant = new Variant(opened, order);
    return opened.packagePath === undefined ? {} : { packagePath: opened.packagePath };
  } catch (error) {
    if (error instanceof UnsupportedError) return { unsupported: error.message };
    throw error;
  }
}

answerParent(async ({ type, order }: Request) => {
  if (type === 'open') return open(order);
  if (variant === undefined) throw new Error(`expected "open" first, got "${type}"`);
  const run = variant[type] as (this: Variant, of: typeof order) => Promise<object>;
  return run.call(variant, order);
});
