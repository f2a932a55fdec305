import type { Benchmark, Case } from '../benchmarks/benchmark.js';
import { routesOf } from '../http/routes.js';
import type { VariantId } from '../variants/clients.js';
import type { Workload } from '../variants/protocol.js';
import { type Environment, type EnvironmentKind, openEnvironment } from './environment.js';
import { paceOf } from './pace.js';
import { type BenchmarkResult, type CaseResult, figuresOf } from './results.js';
import type { Rig } from './rig.js';
import { measureRounds, type Part } from './rounds.js';
import { median } from './stats.js';
import { MissingError } from './tool.js';
import { type Runnable, VariantProcess } from './variant-process.js';

/** Rounds of what a service manages, which a share is taken of. */
const MANAGED_ROUNDS = 3;

type Open = (variant: string) => Promise<Runnable>;

/** Runs benchmarks, one case after the other. */
export class Runner {
  readonly #rig: Rig;
  #environment: Environment | undefined;
  /** What a variant manages, by environment and work. */
  readonly #most = new Map<string, number>();
  #samples = 0;
  #disturbed = 0;

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  /** Cases that cannot be run here are left out; a note says why. */
  async run(benchmark: Benchmark): Promise<BenchmarkResult> {
    const { id, cases } = benchmark;
    const { seconds } = paceOf(benchmark, this.#rig.asked);
    const found: CaseResult[] = [];
    for (const kind of new Set(cases.map(({ environment = 'loopback' }) => environment))) {
      const here = cases.filter(({ environment = 'loopback' }) => environment === kind);
      found.push(...(await this.#runIn(kind, { ...benchmark, cases: here })));
    }
    return { id, seconds, cases: found };
  }

  /** The environment of a case, also for when the run ends early. */
  async leave(): Promise<void> {
    const environment = this.#environment;
    this.#environment = undefined;
    await environment?.close();
  }

  /** How many of the samples so far other machines disturbed. */
  noteDisturbed(): void {
    if (this.#disturbed === 0) return;
    this.#rig.notes.add(
      `${this.#disturbed} of ${this.#samples} samples were taken while the machine's host gave more than 2 % of its processors to others.`,
    );
    this.#disturbed = 0;
    this.#samples = 0;
  }

  async #runIn(kind: EnvironmentKind, benchmark: Benchmark): Promise<CaseResult[]> {
    const { notes, server } = this.#rig;
    try {
      const environment = await openEnvironment(kind, server);
      this.#environment = environment;
      const { version } = environment.server;
      if (version !== server.version) notes.add(`${kind}: ${version}, which has TLS.`);
      const found: CaseResult[] = [];
      for (const one of benchmark.cases) found.push(await this.#runCase(kind, environment, one, benchmark));
      return found;
    } catch (error) {
      if (!(error instanceof MissingError)) throw error;
      notes.add(`${benchmark.title}, ${kind}: ${error.message}; not measured.`);
      return [];
    } finally {
      this.#rig.kill();
      await this.leave();
    }
  }

  async #runCase(
    kind: EnvironmentKind,
    environment: Environment,
    one: Case,
    benchmark: Benchmark,
  ): Promise<CaseResult> {
    const { progress, asked } = this.#rig;
    const { server } = environment;
    const { counted, metrics, title } = benchmark;
    const { id, variants = benchmark.variants } = one;
    const pace = paceOf(benchmark, asked);
    await server.seed(one.workload);
    const routes = benchmark.routes && (await routesOf(this.#rig));
    const open: Open = (variant) =>
      routes?.open(...benchmark.routes![variant]!) ?? this.#openProcess(variant as VariantId, environment);
    const workload = await this.#atShare(kind, one.workload, variants[0]!, open);
    const parts = variants.map((name): Part => ({ name, open: () => this.#rig.open(open(name)) }));
    const took = (variant: string, quiet: boolean) => {
      this.#samples += 1;
      if (!quiet) this.#disturbed += 1;
      progress.show(title, `${id}, ${variant}`, 1);
    };
    const attempts = asked.smoke ? 1 : undefined;
    const samples = await measureRounds(parts, { workload, server, pace, metrics, attempts, took });
    const found = [];
    for (const [variant, all] of samples) {
      let probed = {};
      if (counted) {
        // Last, because counting writes patches the variant's process.
        const opened = (await this.#rig.open(open(variant)))!;
        await opened.prepare(workload, pace.rewarmSeconds, false);
        probed = await opened.probe(workload, pace.probeSeconds);
        await opened.close();
      }
      found.push({ variant, figures: { ...figuresOf(all), ...figuresOf([probed]) } });
    }
    await routes?.close();
    return { id, variants: found };
  }

  async #openProcess(variant: VariantId, { server, url, ca, adopt }: Environment): Promise<Runnable> {
    const opened = await VariantProcess.open(variant, this.#rig.bundle, server, ca === undefined ? {} : { ca }, url);
    await adopt(opened.pid);
    return opened;
  }

  /** A service's load as a rate, where it is a share of what the first variant manages: measured once a place. */
  async #atShare(kind: EnvironmentKind, workload: Workload, first: string, open: Open): Promise<Workload> {
    if (workload.kind !== 'service' || workload.share === undefined) return workload;
    const { share, ...saturated } = workload;
    const { seconds, warmUpSeconds } = paceOf({ seconds: 1, warmUpSeconds: 2 }, this.#rig.asked);
    const name = [kind, first, workload.operation, workload.commands].join();
    let most = this.#most.get(name);
    if (most === undefined) {
      const opened = (await this.#rig.open(open(first)))!;
      await opened.prepare(saturated, warmUpSeconds, true);
      const managed: number[] = [];
      while (managed.length < MANAGED_ROUNDS) managed.push((await opened.measure(saturated, seconds)).throughput ?? 0);
      await opened.close();
      most = median(managed)!;
      this.#most.set(name, most);
    }
    return { ...saturated, rate: Math.max(1, Math.round(most * share)) };
  }
}
