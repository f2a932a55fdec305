import { type Benchmark, type Case, SERVER_LIMIT } from '../benchmarks/benchmark.js';
import { routesOf } from '../http/routes.js';
import type { VariantId } from '../variants/clients.js';
import type { Idle, Measured, Probe, Sample } from '../variants/protocol.js';
import { type Environment, openEnvironment } from './environment.js';
import { unclearCases } from './evaluate.js';
import type { BenchmarkResult, CaseResult, VariantResult } from './results.js';
import type { Pace, Rig } from './rig.js';
import { openServerLimit } from './server-limit.js';
import { MOST_ROUNDS } from './settings.js';
import { undisturbed } from './steal.js';
import { MissingError } from './tool.js';
import { type Runnable, VariantProcess } from './variant-process.js';

/** A variant that spends more than this share of a core while another is measured makes the run worthless. */
const IDLE_SHARE = 0.05;
const IDLE_SECONDS_CHECKED = 0.2;

/** One variant's part in one case. */
interface Part {
  readonly case: Case;
  readonly variant: string;
  runnable: Runnable;
  readonly samples: Sample[];
  probe: Probe;
}

/**
 * Runs benchmarks: every variant a process of its own, for all rounds or for each, all variants in each round, the order
 * rotated.
 */
export class Runner {
  readonly #rig: Rig;
  /** Of a smoke run, by variant: they serve benchmark after benchmark, and are warm and have counted writes. */
  readonly #kept = new Map<string, Runnable>();
  #environment: Environment | undefined;
  #samples = 0;
  #disturbed = 0;

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  static steps(benchmark: Benchmark, pace: Pace): number {
    return benchmark.variants.length * benchmark.cases.length * (paceOf(benchmark, pace).rounds + 1);
  }

  /** @returns undefined where it cannot be run here; a note says why */
  async run(benchmark: Benchmark): Promise<BenchmarkResult | undefined> {
    const { id, title } = benchmark;
    try {
      this.#environment = await openEnvironment(benchmark.environment, this.#rig.server);
      const { rounds, seconds } = paceOf(benchmark, this.#rig.pace);
      const pace = benchmark.pace === undefined ? {} : { pace: { rounds, seconds } };
      return { id, title, ...pace, cases: await this.#runIn(this.#environment, benchmark) };
    } catch (error) {
      if (error instanceof MissingError) {
        this.#rig.notes.add(`${title}: ${error.message}; not measured.`);
        return undefined;
      }
      this.#rig.kill();
      throw error;
    } finally {
      await this.leave();
    }
  }

  /** The environment of a benchmark, also for when the run ends early. */
  async leave(): Promise<void> {
    const environment = this.#environment;
    this.#environment = undefined;
    await environment?.close();
  }

  /** Ends the processes that served more than one benchmark, and reports how many samples other machines disturbed. */
  async close(): Promise<void> {
    await this.#rig.close(this.#kept.values());
    if (this.#disturbed === 0) return;
    this.#rig.notes.add(
      `${this.#disturbed} of ${this.#samples} samples were taken while the machine's host gave more than 2 % of its processors to others.`,
    );
  }

  async #runIn(environment: Environment, benchmark: Benchmark): Promise<CaseResult[]> {
    const { cases, ownProcesses = false, title } = benchmark;
    const { progress } = this.#rig;
    const pace = paceOf(benchmark, this.#rig.pace);
    for (const { workload } of cases) await environment.server.seed(workload);
    let variants = await this.#openAll(benchmark, environment);
    const parts = cases.map((one) =>
      variants.map(([variant, runnable]): Part => ({ case: one, variant, runnable, samples: [], probe: {} })),
    );
    for (const group of benchmark.caseByCase ? parts : [parts.flat()]) {
      for (let round = 0; round < pace.rounds * (this.#rig.untilClear ? MOST_ROUNDS : 1); round += 1) {
        const measured = round < pace.rounds ? group : partsOf(unclearCases(benchmark.id, resultsOf(group)), group);
        if (measured.length === 0) break;
        if (ownProcesses && round > 0) {
          await this.#rig.close(variants.map(([, runnable]) => runnable));
          variants = await this.#openAll(benchmark, environment);
          const opened = new Map(variants);
          for (const part of group) part.runnable = opened.get(part.variant)!;
        }
        await this.#round(title, environment, measured, round, pace, ownProcesses || round === 0);
      }
    }
    // Last, because counting writes patches the variant's process.
    for (const part of parts.flat()) {
      progress.show(title, `${part.case.id}, ${part.variant}, writes and latencies`);
      part.probe = await part.runnable.probe(part.case.workload, pace.probeSeconds);
      progress.show(title, `${part.case.id}, ${part.variant}`, 1);
    }
    const kept = [...this.#kept.values()];
    await this.#rig.close(variants.flatMap(([, runnable]) => (kept.includes(runnable) ? [] : [runnable])));
    return resultsOf(parts.flat());
  }

  async #openAll({ environment: kind, routes, variants }: Benchmark, { server, url, adopt }: Environment) {
    const kept = this.#rig.smoke && kind === undefined && routes === undefined ? this.#kept : new Map();
    const openRoute = routes && (await routesOf(this.#rig));
    const start = async (variant: string): Promise<Runnable> => {
      if (openRoute !== undefined) return openRoute(...routes![variant]!);
      if (variant === SERVER_LIMIT) return openServerLimit(server);
      const opened = await VariantProcess.open(variant as VariantId, this.#rig.bundle, server, {}, url);
      await adopt(opened.pid);
      return opened;
    };
    // All at once: starting a process takes longer than a short round.
    const opened = await Promise.all(
      variants.map(async (variant) => {
        const runnable: Runnable | undefined = kept.get(variant) ?? (await this.#rig.open(start(variant)));
        if (runnable !== undefined) kept.set(variant, runnable);
        return runnable === undefined ? [] : [[variant, runnable] as const];
      }),
    );
    return opened.flat();
  }

  /** @param cold - whether the processes have not run anything yet. */
  async #round(
    title: string,
    { server }: Environment,
    parts: readonly Part[],
    round: number,
    pace: Pace,
    cold: boolean,
  ): Promise<void> {
    const { rewarmSeconds, rounds, seconds, warmUpSeconds } = pace;
    for (const { case: one, runnable, samples, variant } of rotated(parts, round)) {
      const { id, workload } = one;
      this.#rig.progress.show(title, `${id}, ${variant}, round ${round + 1} of ${rounds}`);
      const idle = await runnable.prepare(workload, cold ? warmUpSeconds : rewarmSeconds, cold);
      this.#checkIdle(variant, idle);
      const measure = () => server.whileWriting<Measured>(workload, () => runnable.measure(workload, seconds));
      const [{ commands: _, seconds: __, ...sample }, quiet] = await undisturbed(
        measure,
        () => runnable.prepare(workload, rewarmSeconds, false),
        this.#rig.smoke ? 1 : undefined,
      );
      samples.push(sample);
      this.#samples += 1;
      if (!quiet) this.#disturbed += 1;
      this.#rig.progress.show(title, `${id}, ${variant}`, round < rounds ? 1 : 0);
    }
  }

  #checkIdle(variant: string, idle: Idle): void {
    const share = idle.cpuSeconds / idle.seconds;
    if (this.#rig.smoke || idle.seconds < IDLE_SECONDS_CHECKED || share <= IDLE_SHARE) return;
    this.#rig.notes.add(`${variant} used ${Math.round(share * 100)} % of a core while others were measured.`);
  }
}

function partsOf(cases: ReadonlySet<string>, parts: readonly Part[]): Part[] {
  return parts.filter((part) => cases.has(part.case.id));
}

function resultsOf(parts: readonly Part[]): CaseResult[] {
  const byCase = new Map<string, VariantResult[]>();
  for (const { case: one, variant, probe, samples } of parts) {
    const variants = byCase.get(one.id) ?? [];
    byCase.set(one.id, [...variants, { variant, probe, samples }]);
  }
  return [...byCase].map(([id, variants]) => ({ id, variants }));
}

/** In each round another one is the first. */
export function rotated<T>(parts: readonly T[], round: number): T[] {
  const first = round % parts.length;
  return [...parts.slice(first), ...parts.slice(0, first)];
}

/** What a benchmark makes of the pace of the run. */
export function paceOf({ pace: own, cases }: Pick<Benchmark, 'pace' | 'cases'>, pace: Pace): Pace {
  // A service, or a package with its own code, takes seconds until the compiler has seen enough of it.
  const warmUp = cases[0]?.workload.kind === 'package' ? 4 : 1;
  const { rounds, seconds } = own ?? { rounds: 1, seconds: 1 };
  return {
    rounds: Math.ceil(pace.rounds * rounds),
    seconds: pace.seconds * seconds,
    warmUpSeconds: pace.warmUpSeconds * seconds * warmUp,
    rewarmSeconds: pace.rewarmSeconds * seconds,
    probeSeconds: pace.probeSeconds * seconds,
  };
}
