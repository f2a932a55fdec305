#!/usr/bin/env node
/** `npx ioredis-coalesce bench`: measures what coalescing would gain on the user's own Redis. */
import manifest from '../package.json' with { type: 'json' };
import { CliError, HELP, parseBenchArguments, usageError } from './cli/arguments.js';
import { runBench } from './cli/bench.js';

async function main([command = '--help', ...args]: readonly string[]): Promise<void> {
  const isHelp = ['help', '--help', '-h'].includes(command);
  if (command === '--version' || command === '-v') process.stdout.write(`${manifest.version}\n`);
  else if (!isHelp && command !== 'bench') throw usageError('expected the command "bench"');
  else {
    const settings = isHelp ? 'help' : parseBenchArguments(args, process.env);
    if (settings === 'help') process.stdout.write(HELP);
    else await runBench(settings, manifest.version);
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
