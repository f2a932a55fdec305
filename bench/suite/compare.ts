import { join } from 'node:path';
import type { Benchmark, Case } from '../benchmarks/benchmark.js';
import { select } from '../benchmarks/index.js';
import { routesOf } from '../http/routes.js';
import { say } from '../report/tables.js';
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
import { describeMachine, readSettings } from './settings.js';
import type { Setup } from './setup.js';
import { ratios, type Spread, signedRankTest, spread } from './stats.js';
import { undisturbed } from './steal.js';
import { type Runnable, VariantProcess } from './variant-process.js';

const HEAD = ['work', 'measure', 'new / old', 'by chance', 'verdict'];
/** Compared where nothing is named. */
const USUAL = ['burst', 'fast-path', 'schedule'];
/**
 * More and shorter rounds than in a published run: each has processes of its own, and it is their number that tells.
 */
const USUAL_PACE = { rounds: 15, seconds: 0.5 };

/** What is worth telling: less likely by chance than this, and at least so large. */
const CHANCE = 0.01;
const SMALLEST = 0.02;

const MEASURES = { throughput: 'better', cpu: 'worse', memory: 'worse' } as const;

export interface Change {
  readonly work: string;
  readonly measure: string;
  /** New to old, round by round. */
  readonly ratio: Spread;
  readonly chance: number;
  readonly verdict: 'better' | 'worse' | 'no change beyond the noise';
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
  const usual = asked.smoke ? { rounds: 3, seconds: undefined } : USUAL_PACE;
  const { rounds, seconds } = paceOf(
    {},
    {
      ...asked,
      rounds: asked.rounds ?? usual.rounds,
      seconds: asked.seconds ?? usual.seconds,
    },
  );
  return cleanly(async (cleanup) => {
    const revision = await buildRevision(name);
    await cleanup.add(() => revision.remove());
    // The variants are this revision's; what they import as `ioredis-coalesce` is that of the folder they lie in.
    const old = await bundlePrograms(setup.nodePath, join(revision.folder, '.bench'));
    const total = jobs.length * rounds;
    const rig = await openRig(cleanup, {
      asked: { ...asked, rounds, seconds },
      rounds: total,
      nodePath: setup.nodePath,
    });
    const { server, progress } = rig;
    const found: Change[] = [];
    for (const job of jobs) found.push(...(await compareJob(job, [old, rig.bundle], rig)));
    progress.stop();
    const settings = await readSettings({ server, awake, node: setup.node });
    const paced = `${rounds} rounds of ${seconds} s each, interleaved.`;
    const what = `${settings.revision} (new) against ${revision.name} (old), ${paced}`;
    const table = terminalTable({ head: HEAD, rows: found.map(cells) });
    return [`${table}\n`, what, describeMachine(settings), ...rig.notes, summary(found)].join('\n');
  });
}

/** Compares the rounds of two revisions at the same work; both have one sample in each round. */
export function changes(work: string, before: readonly Sample[], after: readonly Sample[]): Change[] {
  const measures = Object.entries(MEASURES) as [keyof typeof MEASURES, 'better' | 'worse'][];
  return measures.flatMap(([metric, more]) => {
    const byRound = ratios(figuresOf(after)[metric] ?? [], figuresOf(before)[metric] ?? []);
    const ratio = spread(byRound);
    if (ratio === undefined) return [];
    const chance = signedRankTest(byRound.map(Math.log));
    const real = chance < CHANCE && Math.abs(ratio.median - 1) >= SMALLEST;
    const grew = ratio.median > 1;
    const verdict = !real ? 'no change beyond the noise' : grew === (more === 'better') ? 'better' : 'worse';
    return [{ work, measure: METRICS[metric].title, ratio, chance, verdict }];
  });
}

/** The coalesced variants of a benchmark, in each of its cases that has the machine to itself. */
export function jobsOf({ cases, routes, title, variants }: Benchmark): Job[] {
  const ours = variants.filter((one) => /^cork|^coalesced/.test(one));
  const near = cases.filter(
    ({ environment = 'loopback', workload }) => environment === 'loopback' && workload.kind !== 'service',
  );
  return near.flatMap((one) =>
    ours.map((variant): Job => {
      const details = [...(cases.length > 1 ? [one.id] : []), ...(variant === 'coalesced' ? [] : [variant])];
      const route = routes?.[variant];
      return {
        work: [title, ...details].join(', '),
        case: one,
        open: async (bundle, { cleanup, server }) =>
          route === undefined
            ? VariantProcess.open(variant as VariantId, bundle, server)
            : (await routesOf({ bundle, cleanup, server }))(...route),
      };
    }),
  );
}

async function compareJob(job: Job, bundles: readonly Bundle[], rig: Rig): Promise<Change[]> {
  const { work, case: one } = job;
  const { server, progress, asked } = rig;
  const { workload } = one;
  const { rounds, rewarmSeconds, seconds, warmUpSeconds } = paceOf({}, asked);
  await server.seed(workload);
  const samples: [Sample[], Sample[]] = [[], []];
  const missing = await missingIn(job, bundles[0]!, rig);
  if (missing !== undefined) {
    rig.notes.add(`${work}: not compared, the old revision does not run it (${missing}).`);
    progress.show(work, 'not compared', rounds);
    return [];
  }
  for (let round = 0; round < rounds; round += 1) {
    progress.show(work, `round ${round + 1} of ${rounds}`, 1);
    // Which one goes first changes from round to round.
    for (const which of round % 2 === 0 ? [0, 1] : [1, 0]) {
      // A process keeps its luck with the layout of its memory, so rounds of one process are not independent.
      const opened = await job.open(bundles[which]!, rig);
      try {
        await opened.prepare(workload, warmUpSeconds, round === 0);
        const [sample] = await undisturbed(
          () => opened.measure(workload, seconds),
          () => opened.prepare(workload, rewarmSeconds, false),
        );
        samples[which]!.push(sample);
        await opened.close();
      } finally {
        opened.kill();
      }
    }
  }
  progress.show(work, 'done');
  return changes(work, ...samples);
}

/** @returns why that revision does not run it: an option, or a variant, may be newer */
async function missingIn(job: Job, bundle: Bundle, rig: Rig): Promise<string | undefined> {
  try {
    await (await job.open(bundle, rig)).close();
    return undefined;
  } catch (error) {
    return (error as Error).message.split('\n', 2).join(' ');
  }
}

function cells({ work, measure, ratio, chance, verdict }: Change): string[] {
  const range = `${say(ratio.median)}× (${say(ratio.min)}–${say(ratio.max)})`;
  return [work, measure, range, chance < 0.001 ? '< 0.001' : chance.toFixed(3), verdict];
}

function summary(found: readonly Change[]): string {
  const changed = found.filter(({ verdict }) => verdict !== 'no change beyond the noise');
  if (changed.length === 0) return 'Nothing changed beyond the noise.';
  const list = changed.map(({ work, measure, verdict }) => `${work}: ${measure} ${verdict}`);
  return `Changed beyond the noise: ${list.join('; ')}.`;
}
