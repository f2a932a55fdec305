import { writeFile } from 'node:fs/promises';
import { constants, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { startRedis } from '../../tools/redis-server.js';
import { type Measured, measure, stepsOf } from './measure.js';
import { startProgress } from './progress.js';
import { summarize } from './summary.js';
import { renderTable, renderVerdict } from './table.js';
import { CONNECTIONS, type Plan } from './types.js';

const HELP = `Runs the Fastify example once with a plain ioredis client and once with a coalesced one, the same handlers,
puts both under load, and prints one table.

  npm run demo                     about 75 seconds
  npm run demo -- --quick          about 15 seconds; rougher figures
  npm run demo -- --json FILE      every figure as JSON as well
  npm run demo -- --help

It starts a Redis of its own on a free loopback port (REDIS_SERVER names the binary), or uses the one at REDIS_URL,
under a key prefix of its own that it removes.`;

const FULL: Plan = {
  connections: CONNECTIONS,
  rounds: 5,
  seconds: 1.4,
  warmUpSeconds: 1,
  countedRequests: 1500,
};
const QUICK: Plan = {
  connections: CONNECTIONS,
  rounds: 2,
  seconds: 0.45,
  warmUpSeconds: 0.3,
  countedRequests: 600,
};

class UsageError extends Error {}

class InterruptedError extends Error {
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(`interrupted by ${signal}; processes and keys are cleaned up`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

interface Flags {
  quick: boolean;
  help: boolean;
  json?: string;
}

async function main(flags: Flags): Promise<void> {
  const plan = flags.quick ? QUICK : FULL;
  const interrupt = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => interrupt.abort(new InterruptedError(signal)));
  }
  try {
    await show(await run(plan, interrupt.signal), plan, flags.json);
  } catch (error) {
    // What fails after an interruption fails because of it.
    throw interrupt.signal.aborted ? interrupt.signal.reason : error;
  }
}

async function run(plan: Plan, signal: AbortSignal): Promise<Measured> {
  const given = process.env.REDIS_URL || undefined;
  const own = given === undefined ? await startRedis() : undefined;
  const redisUrl = given ?? own?.url ?? '';
  console.log(own ? `Started ${own.binary} ${own.version} on port ${own.port}.` : 'Using the Redis at REDIS_URL.');
  const progress = startProgress(stepsOf(plan));
  try {
    return await measure({ redisUrl, plan, signal, progress: (label) => progress.step(label) });
  } finally {
    progress.stop();
    await own?.stop();
  }
}

async function show({ rows, server }: Measured, plan: Plan, file: string | undefined): Promise<void> {
  const summary = summarize(rows);
  const processors = cpus();
  const settings = {
    ...plan,
    node: process.version,
    server,
    processor: processors[0]?.model ?? 'unknown',
    cores: processors.length,
    network: 'loopback',
    date: new Date().toISOString(),
  };
  console.log(`\n${renderTable(summary, process.stdout.isTTY)}\n`);
  console.log(
    `* per request. ${plan.connections} connections, medians of ${plan.rounds} runs of ${plan.seconds} s each, interleaved; ` +
      `Node ${settings.node}, ${server}, ${settings.cores} × ${settings.processor}, loopback.\n` +
      'Redis and the load share this machine with the service: on two cores the service has one, the load (autocannon)\n' +
      'and Redis the other. Read the ratios (coalesced divided by plain), not the absolute figures.\n',
  );
  if (file !== undefined) {
    await writeFile(file, `${JSON.stringify({ settings, summary, rows }, null, 2)}\n`);
    console.log(`Every figure: ${file}\n`);
  }
  console.log(renderVerdict(rows, summary));
  console.log('Next: README.md, to put it under your own service; "npm run bench" for every figure it promises.');
}

function readFlags(): Flags {
  try {
    const { values } = parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
        json: { type: 'string' },
      },
    });
    return values as Flags;
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : error}\n\n${HELP}`);
  }
}

async function start(): Promise<void> {
  const flags = readFlags();
  if (flags.help) {
    console.log(HELP);
    return;
  }
  await main(flags);
}

start().catch((error: unknown) => {
  console.error(`\n${error instanceof Error ? error.message : error}`);
  process.exitCode = error instanceof InterruptedError ? error.exitCode : error instanceof UsageError ? 2 : 1;
});
