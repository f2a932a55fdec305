import { join } from 'node:path';
import type { Benchmark, Case } from '../benchmarks/benchmark.js';
import { select } from '../benchmarks/index.js';
import { routesOf } from '../http/routes.js';
import { ranged } from '../report/tables.js';
import { terminalTable } from '../report/terminal.js';
import type { VariantId } from '../variants/clients.js';
import { METRICS, type Sample } from '../variants/protocol.js';
import { type Bundle, bundlePrograms } from './bundle.js';
import { cleanly } from './cleanup.js';
import type { BenchOptions } from './options.js';
import { paceOf } from './pace.js';
import { figuresOf } from './results.js';
import { buildRevision } from './revision.js';
import { openRig, type Rig } from './rig.js';
import { measureRounds } from './rounds.js';
import { describeMachine, readSettings } from './settings.js';
import type { Setup } from './setup.js';
import { type Estimate, estimate, isClear, ratios } from './stats.js';
import { type Runnable, VariantProcess } from './variant-process.js';

const HEAD = ['work', 'measure', 'new / old', 'verdict'];
/** Compared where nothing is named. */
const USUAL = ['burst', 'fast-path', 'schedule'];
const SMOKE_ROUNDS = 3;
/** What is worth telling: at least so large. */
const SMALLEST = 0.02;

const MEASURES = { throughput: 'better', cpu: 'worse', memory: 'worse' } as const;

export interface Change {
  readonly work: string;
  readonly measure: string;
  /** New to old, round by round. */
  readonly ratio: Estimate;
  readonly verdict: 'better' | 'worse' | 'no clear difference';
}

interface Job {
  readonly work: string;
  readonly case: Case;
  open(bundle: Bundle, rig: Rig): Promise<Runnable>;
}

/** Runs this revision and another one side by side, and says what changed beyond the noise. */
export async function compareWith(name: string, { named, asked, awake }: BenchOptions, setup: Setup): Promise<string> {
  const jobs = select(named.length === 0 ? USUAL : named).flatMap(jobsOf);
  if (jobs.length === 0) throw new Error('expected benchmarks of a coalesced client on a single server to compare');
  const pace = paceOf({}, asked.smoke ? { rounds: SMOKE_ROUNDS, ...asked } : asked);
  return cleanly(async (cleanup) => {
    const revision = await buildRevision(name);
    await cleanup.add(() => revision.remove());
    // The variants are this revision's; what they import as `ioredis-coalesce` is that of the folder they lie in.
    const old = await bundlePrograms(setup.nodePath, join(revision.folder, '.bench'));
    const rig = await openRig(cleanup, { asked, samples: 2 * jobs.length * pace.most, nodePath: setup.nodePath });
    const { server, progress } = rig;
    const found: Change[] = [];
    for (const { work, case: one, open } of jobs) {
      await server.seed(one.workload);
      const parts = Object.entries({ old, new: rig.bundle }).map(([side, bundle]) => ({
        name: side,
        open: () => rig.open(open(bundle, rig)),
      }));
      const took = (side: string) => progress.show(work, side, 1);
      try {
        const samples = await measureRounds(parts, { workload: one.workload, server, pace, took });
        found.push(...changes(work, samples.get('old') ?? [], samples.get('new') ?? []));
      } catch (error) {
        // An operation may be newer than the old revision.
        rig.notes.add(`${work}: not compared (${(error as Error).message.split('\n', 2).join(' ')}).`);
      }
      rig.kill();
    }
    progress.stop();
    const settings = await readSettings({ server, awake, node: setup.node });
    const paced = `${pace.least} to ${pace.most} rounds of ${pace.seconds} s, interleaved; 95 % intervals.`;
    const what = `${settings.revision} (new) against ${revision.name} (old), ${paced}`;
    const rows = found.map(({ work, measure, ratio, verdict }) => [work, measure, ranged(ratio, '×'), verdict]);
    const table = terminalTable({ head: HEAD, rows });
    return [`${table}\n`, what, describeMachine(settings), ...rig.notes, summary(found)].join('\n');
  });
}

/** Compares the rounds of two revisions at the same work; both have one sample in each round. */
export function changes(work: string, before: readonly Sample[], after: readonly Sample[]): Change[] {
  const measures = Object.entries(MEASURES) as [keyof typeof MEASURES, 'better' | 'worse'][];
  return measures.flatMap(([metric, more]) => {
    const ratio = estimate(ratios(figuresOf(after)[metric] ?? [], figuresOf(before)[metric] ?? []));
    if (ratio === undefined) return [];
    const isReal = isClear(ratio) && Math.abs(ratio.value - 1) >= SMALLEST;
    const verdict = !isReal ? 'no clear difference' : ratio.value > 1 === (more === 'better') ? 'better' : 'worse';
    return [{ work, measure: METRICS[metric].title, ratio, verdict }];
  });
}

/** The coalesced variants of a benchmark, in each of its cases that has the machine to itself. */
export function jobsOf({ cases, routes, title, variants }: Benchmark): Job[] {
  const near = cases.filter(
    ({ environment = 'loopback', workload }) => environment === 'loopback' && workload.kind !== 'service',
  );
  return near.flatMap((one) =>
    (one.variants ?? variants)
      .filter((variant) => /^cork|^coalesced/.test(variant))
      .map((variant): Job => {
        const details = [...(cases.length > 1 ? [one.id] : []), ...(variant === 'coalesced' ? [] : [variant])];
        const route = routes?.[variant];
        return {
          work: [title, ...details].join(', '),
          case: one,
          async open(bundle, { cleanup, server }) {
            if (route === undefined) return VariantProcess.open(variant as VariantId, bundle, server);
            const { open, close } = await routesOf({ bundle, cleanup, server });
            // Each revision's processes, too, are new in each round.
            const { isKept: _, ...opened } = await open(...route);
            return { ...opened, close };
          },
        };
      }),
  );
}

function summary(found: readonly Change[]): string {
  const changed = found.filter(({ verdict }) => verdict !== 'no clear difference');
  if (changed.length === 0) return 'Nothing changed beyond the noise.';
  const list = changed.map(({ work, measure, verdict }) => `${work}: ${measure} ${verdict}`);
  return `Changed beyond the noise: ${list.join('; ')}.`;
}
