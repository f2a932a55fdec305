#!/usr/bin/env node
/** `npx ioredis-coalesce bench`: measures what coalescing would gain on the user's own Redis. */
import manifest from '../package.json' with { type: 'json' };
import { CliError, HELP, parseBenchArguments, usageError } from './arguments.js';
import { runBench } from './bench.js';

async function main([command = 'help', ...args]: readonly string[]): Promise<void> {
  const settings = command === 'bench' ? parseBenchArguments(args, process.env) : 'help';
  if (settings !== 'help') await runBench(settings, manifest.version);
  else if (['--version', '-v'].includes(command)) process.stdout.write(`${manifest.version}\n`);
  else if (['bench', 'help', '--help', '-h'].includes(command)) process.stdout.write(HELP);
  else throw usageError('expected the command "bench"');
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    // Anything else is a bug of ours: the stack helps to find it.
    const { exitCode, message } = error instanceof CliError ? error : { exitCode: 1, message: (error as Error).stack };
    process.exitCode = exitCode;
    process.stderr.write(`ioredis-coalesce: ${message}\n`, () => process.exit());
  },
);
