import { parseArgs } from 'node:util';
import { IDS, type Selection, select, shortened } from './row-selection.js';
import type { Pace } from './runner.js';

export interface BenchOptions extends Selection {
  readonly pace: Pace;
  readonly smoke: boolean;
  readonly check: boolean;
  /** A revision to compare this one with. */
  readonly compare?: string;
  /** Where the JSON goes; nowhere if absent. */
  readonly out?: string;
}

const LATEST = 'bench/results/latest.json';

export const HELP = `Usage: npm run bench -- [row …] [options]

Measures the clients side by side, each arm in its own process, all arms in each round, and prints ratios and bars.
Everything takes up to half an hour on two cores; the report is then written into the documents by
"npm run bench:report".
A row or an experiment is chosen by its id or the start of it:
${IDS.join(', ')}.

  --rounds N    timed rounds of each arm (5; 15 with --compare)
  --seconds S   length of a timed round (1; 0.5 with --compare)
  --compare REV builds that revision beside this one, runs both interleaved, and says what changed beyond the noise
  --smoke       one short round of everything: checks that it runs and that values are right; figures mean nothing
  --check       exit code 1 if a bar is not met
  --out FILE    where the JSON goes (${LATEST}; nowhere with --smoke or with rows chosen)
  --help

The server is the one at REDIS_URL, all keys under one prefix that is removed afterwards; else one is started.`;

/** @returns undefined where help was asked for */
export function parseOptions(args: readonly string[]): BenchOptions | undefined {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      smoke: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      compare: { type: 'string' },
      out: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const { smoke, check, compare } = values;
  if (smoke && check) throw new Error('--check judges figures, which mean nothing with --smoke: give one of them');
  const rounds = positive('rounds', values.rounds, compare !== undefined ? (smoke ? 3 : 15) : smoke ? 1 : 5);
  if (!Number.isInteger(rounds)) throw new RangeError(`--rounds must be a whole number, got ${rounds}`);
  const seconds = positive('seconds', values.seconds, smoke ? 0.03 : compare !== undefined ? 0.5 : 1);
  const out = values.out ?? (smoke || compare !== undefined || positionals.length > 0 ? undefined : LATEST);
  const pace = smoke
    ? { rounds, seconds, warmUpSeconds: 0.02, rewarmSeconds: 0.02, probeSeconds: 0.02 }
    : { rounds, seconds, warmUpSeconds: 1, rewarmSeconds: 0.25, probeSeconds: 0.5 };
  const { rows, experiments } = select(positionals);
  return {
    rows: smoke ? shortened(rows) : rows,
    experiments,
    pace,
    smoke,
    check,
    ...(compare === undefined ? {} : { compare }),
    ...(out === undefined ? {} : { out }),
  };
}

function positive(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value)))
    throw new RangeError(`--${name} must be a positive number, got "${text}"`);
  return value;
}
