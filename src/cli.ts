#!/usr/bin/env node
/** `npx ioredis-coalesce`: measures what coalescing would gain on the user's own Redis. */
import manifest from '../package.json' with { type: 'json' };
import { BENCH_HELP, parseBenchArguments, UsageError } from './cli/arguments.js';
import { runBench } from './cli/bench.js';
import { Failure, Interrupted, interruptSignal } from './cli/interrupt.js';

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
    else await runBench(settings, manifest.version, interruptSignal());
  } else {
    throw new UsageError(`expected the command "bench", got "${command}"`, 'ioredis-coalesce --help');
  }
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    process.exitCode = 1;
    if (error instanceof Interrupted) process.exitCode = 130;
    else if (error instanceof UsageError) process.exitCode = 2;
    const known = error instanceof Failure || error instanceof Interrupted || error instanceof UsageError;
    process.stderr.write(`ioredis-coalesce: ${known ? error.message : describeBug(error)}\n`, () => process.exit());
  },
);

/** A bug of ours, not an error of the user's: the stack helps to find it. */
function describeBug(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
