import { parseArgs } from 'node:util';
import { BENCHMARKS, GROUPS, select } from '../benchmarks/index.js';
import { type Asked, secondsOf } from './pace.js';
import { PRESENT, STANDARD } from './setup.js';

export const RESULTS = 'bench/results';

const minutes = Math.ceil(BENCHMARKS.reduce((sum, one) => sum + secondsOf(one, {}), 0) / 60);

export const HELP = `Usage: npm run bench -- [group or benchmark …] [options]

Measures clients side by side, each variant in its own process, all variants in each round, and prints ratios and targets.
Rounds follow each other until the 95 % intervals of the ratios are within ±5 % (throughput, CPU) or ±10 % (p99), 10 at most.
Everything takes at most about ${minutes} minutes on two cores.
Groups: ${Object.keys(GROUPS).join(', ')}.
Benchmarks, which may be named by the start of their ids:
${BENCHMARKS.map(({ id }) => id).join(', ')}.

  --node N      the Node that runs the clients: 20, 22, 24, 26 (from npm), or ${PRESENT.node} (${STANDARD.node})
  --server NAME the server: redis8, valkey9 (from PyPI), or ${PRESENT.server} (${STANDARD.server}; the one at REDIS_URL, where that is set)
  --publish     writes the results of each group when it is done, to ${RESULTS}; "npm run bench:report" writes the documents
  --out FOLDER  the same, to another folder
  --rounds N    timed rounds of each variant, however wide the intervals
  --seconds S   length of a timed round, instead of the benchmark's own
  --compare REV builds that revision beside this one, runs both interleaved, and says what changed beyond the noise
  --awake       keeps the processors of a virtual machine from halting (Linux)
  --smoke       one short round of everything, with what is here: checks that it runs and that values are right
  --check       exit code 1 if a target is not met
  --help

A server at REDIS_URL gets keys under one prefix, which are removed afterwards; else a server is started.`;

export type BenchOptions = Readonly<NonNullable<ReturnType<typeof parseOptions>>>;

/** @returns undefined where help was asked for */
export function parseOptions(args: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const;
  const text = { type: 'string' } as const;
  const { values, positionals: named } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      ...{ node: text, server: text, rounds: text, seconds: text, compare: text, out: text },
      ...{ smoke: flag, awake: flag, check: flag, publish: flag },
      help: { ...flag, short: 'h' },
    },
  });
  if (values.help) return undefined;
  const { awake, check, compare, publish, smoke } = values;
  if (smoke && check) throw new Error('--check reads figures, which mean nothing with --smoke: give one of them');
  if (smoke && publish) throw new Error('--publish keeps figures, which mean nothing with --smoke: give one of them');
  const rounds = values.rounds === undefined ? undefined : positive('rounds', values.rounds);
  if (rounds !== undefined && !Number.isInteger(rounds))
    throw new RangeError(`--rounds must be a whole number, got ${rounds}`);
  const seconds = values.seconds === undefined ? undefined : positive('seconds', values.seconds);
  const asked: Asked = { rounds, seconds, smoke };
  const out = publish ? RESULTS : values.out;
  const single = named.find((name) => !(name in GROUPS));
  if (out !== undefined && single !== undefined) {
    throw new Error(`results are kept by group: expected one of ${Object.keys(GROUPS).join(', ')}, got "${single}"`);
  }
  // Fails at once for a name that nothing has.
  select(named);
  const usual = smoke ? PRESENT : STANDARD;
  const setup = {
    node: values.node ?? usual.node,
    server: values.server ?? (process.env.REDIS_URL ? PRESENT.server : usual.server),
  };
  return { awake, asked, check, compare, named, out, setup };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value)))
    throw new RangeError(`--${name} must be a positive number, got "${text}"`);
  return value;
}
