#!/usr/bin/env node
/** `npx ioredis-coalesce`: measures what coalescing would gain on the user's own Redis. */
import manifest from '../package.json' with { type: 'json' };
import { BENCH_HELP, CliError, parseBenchArguments, usageError } from './cli/arguments.js';
import { runBench } from './cli/bench.js';

const HELP = `Usage: ioredis-coalesce <command> [options]

Commands:
  bench        what would I gain on my Redis? plain, auto-pipelining and coalesced side by side

Options:
  --help       this text; after a command, its options
  --version    the version of ioredis-coalesce
`;

async function main(args: readonly string[]): Promise<void> {
  // `help bench` is `bench --help`.
  const [command, ...rest] = args[0] === 'help' ? [...args.slice(1), '--help'] : args;
  if (command === undefined || command === '--help' || command === '-h') {
    process.stdout.write(HELP);
  } else if (command === '--version' || command === '-v') {
    process.stdout.write(`${manifest.version}\n`);
  } else if (command === 'bench') {
    const settings = parseBenchArguments(rest, process.env);
    if (settings === 'help') process.stdout.write(BENCH_HELP);
    else await runBench(settings, manifest.version);
  } else {
    throw usageError(`expected the command "bench", got "${command}"`, 'ioredis-coalesce --help');
  }
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    const known = error instanceof CliError;
    process.exitCode = known ? error.exitCode : 1;
    // A bug of ours: the stack helps to find it.
    const text = known ? error.message : error instanceof Error ? error.stack : error;
    process.stderr.write(`ioredis-coalesce: ${text}\n`, () => process.exit());
  },
);
