import { parseArgs } from 'node:util';
import type { Benchmark } from '../benchmarks/benchmark.js';
import { GROUPS } from '../benchmarks/index.js';
import type { Pace } from './rig.js';
import { IDS, select, shortened } from './selection.js';

export const LATEST = 'bench/results/latest.json';

export const HELP = `Usage: npm run bench -- [group or benchmark …] [options]

Measures clients side by side, each variant in its own process, all variants in each round, and prints ratios and targets.
Everything takes about an hour on two cores; "npm run bench:report" then writes the results into the documents.
Groups: ${Object.keys(GROUPS).join(', ')}.
Benchmarks and experiments, which may be named by the start of their ids:
${IDS.join(', ')}.

  --quick       3 rounds of 0.3 s: rougher figures
  --rounds N    timed rounds of each variant (5; of brief benchmarks 3, of fine ones 15; 15 with --compare)
  --seconds S   length of a timed round (1; of brief benchmarks 0.5, of fine ones 0.1; 0.5 with --compare)
  --until-clear up to four times the rounds where they do not tell whether a target is met (sign test, 5 %)
  --compare REV builds that revision beside this one, runs both interleaved, and says what changed beyond the noise
  --awake       keeps the processors of a virtual machine from halting (Linux)
  --smoke       one short round of everything: checks that it runs and that values are right; figures mean nothing
  --check       exit code 1 if a target is not met
  --out FILE    where the results go (${LATEST}; nowhere with --smoke or where benchmarks are named)
  --merge       puts the named benchmarks' results into that file and keeps the others
  --help

The server is the one at REDIS_URL, all keys under one prefix that is removed afterwards; else one is started.`;

export type BenchOptions = Readonly<NonNullable<ReturnType<typeof parseOptions>>>;

/** @returns undefined where help was asked for */
export function parseOptions(args: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const;
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: text,
      seconds: text,
      quick: flag,
      smoke: flag,
      awake: flag,
      'until-clear': flag,
      check: flag,
      merge: flag,
      compare: text,
      out: text,
      help: { ...flag, short: 'h' },
    },
  });
  if (values.help) return undefined;
  const { smoke, check, compare, merge, quick, 'until-clear': untilClear } = values;
  if (smoke && check) throw new Error('--check reads figures, which mean nothing with --smoke: give one of them');
  if (untilClear && (smoke || compare !== undefined)) {
    throw new Error('--until-clear asks for rounds by targets, which --smoke and --compare do not have: leave one out');
  }
  if (smoke && merge) throw new Error('--merge keeps figures, which mean nothing with --smoke: give one of them');
  const [usualRounds, usualSeconds] = quick ? [3, 0.3] : compare === undefined ? [5, 1] : [15, 0.5];
  const rounds = positive('rounds', values.rounds, smoke ? (compare === undefined ? 1 : 3) : usualRounds);
  if (!Number.isInteger(rounds)) throw new RangeError(`--rounds must be a whole number, got ${rounds}`);
  const seconds = positive('seconds', values.seconds, smoke ? 0.03 : usualSeconds);
  const nowhere = smoke || quick || compare !== undefined || positionals.length > 0;
  const out = values.out ?? (nowhere && !merge ? undefined : LATEST);
  const { benchmarks, experiments } = select(positionals);
  const pace: Pace = smoke
    ? { rounds, seconds, warmUpSeconds: 0.02, rewarmSeconds: 0.02, probeSeconds: 0.02 }
    : { rounds, seconds, warmUpSeconds: seconds, rewarmSeconds: seconds / 4, probeSeconds: seconds / 2 };
  // What is asked for holds for all.
  const paced: readonly Benchmark[] = (values.rounds ?? values.seconds) ? unpaced(benchmarks) : benchmarks;
  return { ...values, untilClear, out, pace, experiments, benchmarks: smoke ? shortened(unpaced(benchmarks)) : paced };
}

function unpaced(benchmarks: readonly Benchmark[]): Benchmark[] {
  return benchmarks.map(({ pace: _, ...one }) => one);
}

function positive(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value)))
    throw new RangeError(`--${name} must be a positive number, got "${text}"`);
  return value;
}
