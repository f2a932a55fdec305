import type { Measured, Metric, Sample, Workload } from '../variants/protocol.js';
import type { BenchServer } from './bench-server.js';
import type { Pace } from './pace.js';
import { figuresOf } from './results.js';
import { estimate, isWithin, ratios } from './stats.js';
import { undisturbed } from './steal.js';
import type { Runnable } from './variant-process.js';

/** How narrow the interval of a ratio has to be. */
export const PRECISION: Readonly<Partial<Record<Metric, number>>> = { throughput: 0.05, cpu: 0.05, p99: 0.1 };
const USUAL: readonly Metric[] = ['throughput', 'cpu'];

/** One side of what is compared. */
export interface Part {
  readonly name: string;
  /** A process of its own: one keeps its luck with the compiler and the layout of its memory, worth up to a tenth. */
  open(): Promise<Runnable | undefined>;
}

interface Work {
  readonly workload: Workload;
  readonly server: BenchServer;
  readonly pace: Pace;
  /** Those whose ratios have to be known. @default throughput and CPU */
  readonly metrics?: readonly Metric[] | undefined;
  /** How often a round is repeated that others disturb. */
  readonly attempts?: number | undefined;
  took(name: string, quiet: boolean): void;
}

/**
 * Measures all parts in each round, in rotated order, until the intervals of their ratios to the first are narrow
 * enough. What cannot be opened is left out.
 */
export async function measureRounds(parts: readonly Part[], work: Work): Promise<Map<string, Sample[]>> {
  const { pace, workload, server, attempts } = work;
  const samples = new Map<string, Sample[]>();
  let left = parts;
  for (let round = 0; round < pace.least || (round < pace.most && !areKnown(samples, work.metrics)); round += 1) {
    for (const part of rotated(left, round)) {
      const opened = await part.open();
      if (opened === undefined) {
        left = left.filter((one) => one !== part);
        continue;
      }
      const warmUp = round > 0 && opened.isKept ? pace.rewarmSeconds : pace.warmUpSeconds;
      await opened.prepare(workload, warmUp, round === 0);
      const [{ commands: _, ...sample }, quiet] = await undisturbed<Measured>(
        () => server.meanwhile(workload, () => opened.measure(workload, pace.seconds)),
        () => opened.prepare(workload, pace.rewarmSeconds, false),
        attempts,
      );
      await opened.close();
      samples.set(part.name, [...(samples.get(part.name) ?? []), sample]);
      work.took(part.name, quiet);
    }
  }
  return new Map(left.flatMap(({ name }) => [[name, samples.get(name) ?? []] as const]));
}

function areKnown(samples: ReadonlyMap<string, readonly Sample[]>, metrics = USUAL): boolean {
  const [first, ...others] = [...samples.values()].map(figuresOf);
  return others.every((one) =>
    metrics.every((metric) => {
      const known = estimate(ratios(one[metric] ?? [], first?.[metric] ?? []));
      return known === undefined || isWithin(PRECISION[metric] ?? 0.05, known);
    }),
  );
}

/** In each round another one is the first. */
function rotated<T>(parts: readonly T[], round: number): T[] {
  const first = round % Math.max(parts.length, 1);
  return [...parts.slice(first), ...parts.slice(0, first)];
}
