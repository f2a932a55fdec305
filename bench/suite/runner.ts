import { type Case, type ClientBenchmark, type ClientVariant, SERVER_LIMIT } from '../benchmarks/benchmark.js';
import type { Idle, Measured, Probe, Sample } from '../variants/protocol.js';
import type { BenchServer } from './bench-server.js';
import { type Environment, MissingError, openEnvironment } from './environment.js';
import type { Progress } from './progress.js';
import type { CaseResult } from './results.js';
import { ServerLimit } from './server-limit.js';
import { undisturbed } from './steal.js';
import { type Runnable, VariantProcess } from './variant-process.js';

/** The pace of benchmarks that are brief, as parts of the others'. */
const BRIEF = { rounds: 3, seconds: 0.5 };

export interface Pace {
  readonly rounds: number;
  /** Of a timed round. */
  readonly seconds: number;
  /** Before a variant's first round: its code has to become hot. */
  readonly warmUpSeconds: number;
  /** Before every later round. */
  readonly rewarmSeconds: number;
  readonly probeSeconds: number;
}

/** A variant that spends more than this share of a core while another is measured makes the run worthless. */
const IDLE_SHARE = 0.05;
const IDLE_SECONDS_CHECKED = 0.2;

/** One variant's part in one case. */
interface Part {
  readonly case: Case;
  readonly variant: ClientVariant;
  readonly runnable: Runnable;
  readonly samples: Sample[];
  probe: Probe;
}

/** Runs client benchmarks: every variant a process of its own, all variants in each round, the order rotated. */
export class Runner {
  readonly notes = new Set<string>();
  readonly #server: BenchServer;
  readonly #variantFile: string;
  readonly #pace: Pace;
  readonly #progress: Progress;
  readonly #open = new Set<Runnable>();
  /** Processes that serve benchmark after benchmark; undefined where each benchmark has its own. */
  readonly #kept: Map<string, Runnable> | undefined;
  #environment: Environment | undefined;
  #samples = 0;
  #disturbed = 0;

  /**
   * @param reuse - whether a process may serve more than one benchmark: it starts sooner, but is warm and has counted
   * writes, so its figures mean nothing
   */
  constructor(server: BenchServer, variantFile: string, pace: Pace, progress: Progress, reuse: boolean) {
    this.#kept = reuse ? new Map() : undefined;
    this.#server = server;
    this.#variantFile = variantFile;
    this.#pace = pace;
    this.#progress = progress;
  }

  static steps(benchmark: ClientBenchmark, pace: Pace): number {
    return benchmark.variants.length * benchmark.cases.length * (paceOf(benchmark, pace).rounds + 1);
  }

  /** @returns undefined where it cannot be run here; a note says why */
  async run(benchmark: ClientBenchmark): Promise<CaseResult[] | undefined> {
    try {
      this.#environment = await openEnvironment(benchmark.environment, this.#server);
      return await this.#runIn(this.#environment, benchmark);
    } catch (error) {
      if (!(error instanceof MissingError)) throw error;
      this.notes.add(`${benchmark.title}: ${error.message}; not measured.`);
      return undefined;
    } finally {
      await this.#endBenchmark();
    }
  }

  /** Ends all processes at once, for when the run ends early. */
  async abort(): Promise<void> {
    for (const runnable of this.#kept?.values() ?? []) runnable.kill();
    await this.#endBenchmark();
  }

  async #endBenchmark(): Promise<void> {
    for (const runnable of this.#open) runnable.kill();
    this.#open.clear();
    const environment = this.#environment;
    this.#environment = undefined;
    await environment?.close();
  }

  /** How much of the run others had their hands in, where they had. */
  get disturbance(): string | undefined {
    if (this.#disturbed === 0) return undefined;
    return `${this.#disturbed} of ${this.#samples} samples were taken while the machine's host gave more than 2 % of its processors to others.`;
  }

  /** Ends the processes that served more than one benchmark. */
  async close(): Promise<void> {
    for (const runnable of this.#kept?.values() ?? []) await runnable.close();
    this.#kept?.clear();
  }

  async #runIn(environment: Environment, benchmark: ClientBenchmark): Promise<CaseResult[]> {
    const { cases, title } = benchmark;
    const pace = paceOf(benchmark, this.#pace);
    for (const { workload } of cases) await environment.server.seed(workload);
    const variants = await this.#openAll(benchmark, environment);
    const parts = cases.map((one) =>
      variants.map(([variant, runnable]): Part => ({ case: one, variant, runnable, samples: [], probe: {} })),
    );
    // A package takes a while to set up, so all its rounds are run before the next one's.
    for (const group of cases[0]?.workload.kind === 'package' ? parts : [parts.flat()]) {
      for (let round = 0; round < pace.rounds; round += 1) await this.#round(title, environment, group, round, pace);
    }
    // Last, because counting writes patches the variant's process.
    for (const part of parts.flat()) {
      this.#progress.show(title, `${part.case.id}, ${part.variant}, writes and latencies`);
      part.probe = await part.runnable.probe(part.case.workload, pace.probeSeconds);
      this.#progress.show(title, `${part.case.id}, ${part.variant}`, 1);
    }
    for (const runnable of this.#open) await runnable.close();
    this.#open.clear();
    return parts.map((ofCase, index) => ({
      id: cases[index]!.id,
      variants: ofCase.map(({ variant, probe, samples }) => ({ variant, probe, samples })),
    }));
  }

  async #openAll(
    benchmark: ClientBenchmark,
    environment: Environment,
  ): Promise<(readonly [ClientVariant, Runnable])[]> {
    const kept = benchmark.environment === undefined ? this.#kept : undefined;
    // All at once: starting a process takes longer than a short round.
    const opened = await Promise.all(
      benchmark.variants.map(async (variant) => {
        const runnable = kept?.get(variant) ?? (await this.#start(variant, environment));
        if (runnable === undefined) return [];
        if (kept === undefined) this.#open.add(runnable);
        else kept.set(variant, runnable);
        return [[variant, runnable] as const];
      }),
    );
    return opened.flat();
  }

  async #start(variant: ClientVariant, { server, url, adopt }: Environment): Promise<Runnable | undefined> {
    try {
      if (variant === SERVER_LIMIT) return await ServerLimit.open(server);
      const opened = await VariantProcess.open(variant, this.#variantFile, server, {}, url);
      await adopt(opened.pid);
      return opened;
    } catch (error) {
      if (!(error instanceof MissingError)) throw error;
      this.notes.add(`${error.message}: not measured.`);
      return undefined;
    }
  }

  async #round(title: string, { server }: Environment, parts: readonly Part[], round: number, pace: Pace) {
    const { rewarmSeconds, rounds, seconds, warmUpSeconds } = pace;
    for (const { case: one, runnable, samples, variant } of rotated(parts, round)) {
      const { id, workload } = one;
      this.#progress.show(title, `${id}, ${variant}, round ${round + 1} of ${rounds}`);
      const idle = await runnable.prepare(workload, round === 0 ? warmUpSeconds : rewarmSeconds, round === 0);
      this.#checkIdle(variant, idle);
      const measure = () => server.whileWriting<Measured>(workload, () => runnable.measure(workload, seconds));
      const [{ commands: _, seconds: __, ...sample }, quiet] = await undisturbed(
        measure,
        () => runnable.prepare(workload, rewarmSeconds, false),
        this.#kept && 1,
      );
      samples.push(sample);
      this.#samples += 1;
      if (!quiet) this.#disturbed += 1;
      this.#progress.show(title, `${id}, ${variant}`, 1);
    }
  }

  #checkIdle(variant: ClientVariant, idle: Idle): void {
    const share = idle.cpuSeconds / idle.seconds;
    if (this.#kept !== undefined || idle.seconds < IDLE_SECONDS_CHECKED || share <= IDLE_SHARE) return;
    this.notes.add(`${variant} used ${Math.round(share * 100)} % of a core while others were measured.`);
  }
}

/** In each round another one is the first. */
export function rotated<T>(parts: readonly T[], round: number): T[] {
  const first = round % parts.length;
  return [...parts.slice(first), ...parts.slice(0, first)];
}

function paceOf(benchmark: ClientBenchmark, pace: Pace): Pace {
  if (benchmark.brief === undefined) return pace;
  return {
    rounds: Math.min(pace.rounds, BRIEF.rounds),
    seconds: pace.seconds * BRIEF.seconds,
    warmUpSeconds: pace.warmUpSeconds * BRIEF.seconds,
    rewarmSeconds: pace.rewarmSeconds * BRIEF.seconds,
    probeSeconds: pace.probeSeconds * BRIEF.seconds,
  };
}
