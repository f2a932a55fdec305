import type { Benchmark, Case } from '../benchmarks/benchmark.js';
import { routesOf } from '../http/routes.js';
import type { VariantId } from '../variants/clients.js';
import type { Idle, Measured, Sample, Workload } from '../variants/protocol.js';
import { type Environment, type EnvironmentKind, openEnvironment } from './environment.js';
import { type Pace, paceOf } from './pace.js';
import { type BenchmarkResult, type CaseResult, figuresOf } from './results.js';
import type { Rig } from './rig.js';
import { spread } from './stats.js';
import { undisturbed } from './steal.js';
import { MissingError } from './tool.js';
import { type Runnable, VariantProcess } from './variant-process.js';

/** A variant that spends more than this share of a core while another is measured makes the run worthless. */
const IDLE_SHARE = 0.05;
const IDLE_SECONDS_CHECKED = 0.2;

type Runnables = readonly (readonly [variant: string, Runnable])[];

/**
 * Runs benchmarks: every variant a process of its own, all variants of a case in each round, in rotated order; all
 * rounds of a case before those of the next.
 */
export class Runner {
  readonly #rig: Rig;
  #environment: Environment | undefined;
  /** What plain manages, by environment and commands per request. */
  readonly #most = new Map<string, number>();
  #samples = 0;
  #disturbed = 0;

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  /** Cases that cannot be run here are left out; a note says why. */
  async run(benchmark: Benchmark): Promise<BenchmarkResult> {
    const { id, cases } = benchmark;
    const { rounds, seconds } = paceOf(benchmark, this.#rig.asked);
    const found: CaseResult[] = [];
    for (const kind of new Set(cases.map(({ environment = 'loopback' }) => environment))) {
      const here = cases.filter(({ environment = 'loopback' }) => environment === kind);
      found.push(...(await this.#runIn(kind, { ...benchmark, cases: here })));
    }
    return { id, rounds, seconds, cases: found };
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
    try {
      const environment = await openEnvironment(kind, this.#rig.server);
      this.#environment = environment;
      return await this.#runCases(kind, environment, benchmark);
    } catch (error) {
      this.#rig.kill();
      if (!(error instanceof MissingError)) throw error;
      this.#rig.notes.add(`${benchmark.title}, ${kind}: ${error.message}; not measured.`);
      return [];
    } finally {
      await this.leave();
    }
  }

  async #runCases(kind: EnvironmentKind, environment: Environment, benchmark: Benchmark): Promise<CaseResult[]> {
    const pace = paceOf(benchmark, this.#rig.asked);
    const found: CaseResult[] = [];
    let opened: Runnables = [];
    for (const one of benchmark.cases) {
      await environment.server.seed(one.workload);
      const wanted = one.variants ?? benchmark.variants;
      if (benchmark.ownProcesses || wanted.some((name) => !opened.some(([variant]) => variant === name))) {
        await this.#rig.close();
        opened = await this.#openAll(wanted, benchmark, environment);
      }
      const parts = opened.filter(([variant]) => wanted.includes(variant));
      const workload = await this.#atShare(kind, one.workload, parts, pace);
      found.push(await this.#runCase({ ...one, workload }, parts, environment, benchmark, pace));
    }
    await this.#rig.close();
    return found;
  }

  async #runCase(
    { id, workload }: Case,
    parts: Runnables,
    { server }: Environment,
    { counted, title }: Benchmark,
    pace: Pace,
  ): Promise<CaseResult> {
    const { progress, asked } = this.#rig;
    const samples = new Map<string, Sample[]>(parts.map(([variant]) => [variant, []]));
    for (let round = 0; round < pace.rounds; round += 1) {
      for (const [variant, runnable] of rotated(parts, round)) {
        progress.show(title, `${id}, ${variant}, round ${round + 1} of ${pace.rounds}`);
        const first = round === 0;
        this.#checkIdle(
          variant,
          await runnable.prepare(workload, first ? pace.warmUpSeconds : pace.rewarmSeconds, first),
        );
        const measure = () => server.meanwhile(workload, () => runnable.measure(workload, pace.seconds));
        const [{ commands: _, ...sample }, quiet] = await undisturbed<Measured>(
          measure,
          () => runnable.prepare(workload, pace.rewarmSeconds, false),
          asked.smoke ? 1 : undefined,
        );
        samples.get(variant)?.push(sample);
        this.#samples += 1;
        if (!quiet) this.#disturbed += 1;
        progress.show(title, `${id}, ${variant}`, 1);
      }
    }
    const variants = [];
    for (const [variant, runnable] of parts) {
      // Last, because counting writes patches the variant's process.
      const probed = counted ? await runnable.probe(workload, pace.probeSeconds) : {};
      variants.push({ variant, figures: { ...figuresOf(samples.get(variant)!), ...figuresOf([probed]) } });
    }
    return { id, variants };
  }

  async #openAll(
    wanted: readonly string[],
    { routes }: Benchmark,
    { server, url, ca, adopt }: Environment,
  ): Promise<Runnables> {
    const openRoute = routes && (await routesOf(this.#rig));
    const start = async (variant: string): Promise<Runnable> => {
      if (openRoute !== undefined) return openRoute(...routes![variant]!);
      const options = ca === undefined ? {} : { ca };
      const opened = await VariantProcess.open(variant as VariantId, this.#rig.bundle, server, options, url);
      await adopt(opened.pid);
      return opened;
    };
    // All at once: starting a process takes longer than a short round.
    const opened = await Promise.all(
      wanted.map(async (variant) => {
        const runnable = await this.#rig.open(start(variant));
        return runnable === undefined ? [] : [[variant, runnable] as const];
      }),
    );
    return opened.flat();
  }

  /** A service's load as a rate, where it is a share of what plain manages: that is measured once for each place. */
  async #atShare(kind: EnvironmentKind, workload: Workload, parts: Runnables, pace: Pace): Promise<Workload> {
    if (workload.kind !== 'service' || workload.share === undefined) return workload;
    const { share, ...saturated } = workload;
    const name = `${kind}, ${workload.commands}`;
    let most = this.#most.get(name);
    if (most === undefined) {
      const plain = parts.find(([variant]) => variant === 'plain')?.[1];
      if (plain === undefined)
        throw new Error('expected the variant "plain" where a load is a share of what it manages');
      await plain.prepare(saturated, pace.warmUpSeconds, true);
      const samples: Sample[] = [];
      for (let round = 0; round < pace.rounds; round += 1) samples.push(await plain.measure(saturated, pace.seconds));
      most = spread(samples.map(({ throughput = 0 }) => throughput))!.median;
      this.#most.set(name, most);
    }
    return { ...saturated, rate: Math.max(1, Math.round(most * share)) };
  }

  #checkIdle(variant: string, idle: Idle): void {
    const share = idle.cpuSeconds / idle.seconds;
    if (this.#rig.asked.smoke || idle.seconds < IDLE_SECONDS_CHECKED || share <= IDLE_SHARE) return;
    this.#rig.notes.add(`${variant} used more than 5 % of a core while others were measured.`);
  }
}

/** In each round another one is the first. */
function rotated<T>(parts: readonly T[], round: number): T[] {
  const first = round % parts.length;
  return [...parts.slice(first), ...parts.slice(0, first)];
}
