import { writeFile } from 'node:fs/promises';
import { constants, cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BenchServer } from '../suite/bench-server.js';
import { Progress } from '../suite/progress.js';
import { renderChart } from './demo-chart.js';
import { DEMO_CLIENTS, renderTable, renderVerdict, summarize } from './demo-summary.js';
import { showLivePage } from './live-page.js';
import { CONNECTIONS, measureRoutes, type Plan, ROUTE_IDS, type RouteResult, stepsOf } from './routes.js';

const HELP = `Runs the Fastify example with a plain ioredis client, with a coalesced one, and with one that also caches what it reads
(on ioredis 6, and Redis 7 or Valkey): the same handlers, under the same load. Prints one table, and draws a chart.

  npm run demo                     about 90 seconds
  npm run demo -- --quick          about 20 seconds; rougher figures
  npm run demo -- --page           no table: opens the live page, to see it happen; Ctrl-C ends it
  npm run demo -- --url URL        on your own Redis, as with REDIS_URL
  npm run demo -- --chart FILE     where the chart goes (SVG)
  npm run demo -- --json FILE      every figure as JSON as well
  npm run demo -- --help

Without a URL it starts a Redis of its own on a free loopback port (REDIS_SERVER names the binary). On yours, it writes
4000 small hashes under one prefix of its own, loads the server for as long as it runs, and removes the keys.`;

const PREFIX = 'coalesce-demo:';
const FULL: Plan = { rounds: 5, seconds: 1, warmUpSeconds: 1, countedRequests: 1500 };
const QUICK: Plan = { rounds: 2, seconds: 0.4, warmUpSeconds: 0.25, countedRequests: 600 };

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
  page: boolean;
  chart?: string;
  json?: string;
  url?: string;
}

async function main(flags: Flags): Promise<void> {
  const interrupt = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => interrupt.abort(new InterruptedError(signal)));
  }
  try {
    const server = await openServer(flags.url);
    try {
      await (flags.page ? openPage(server, interrupt.signal) : measureAndShow(flags, server, interrupt.signal));
    } finally {
      await server.close();
    }
  } catch (error) {
    // What fails after an interruption fails because of it.
    throw interrupt.signal.aborted ? interrupt.signal.reason : error;
  }
}

/** The Redis that the user names, else one of our own. */
async function openServer(given: string | undefined): Promise<BenchServer> {
  if (given !== undefined) {
    console.log(
      `Using the Redis at ${new URL(given).host}. The keys begin with "${PREFIX}", a random part follows; they are\n` +
        'removed at the end. Meanwhile the server is under load: not one that others depend on.',
    );
  }
  const server = await BenchServer.open(given, { prefix: PREFIX });
  if (given === undefined) console.log(`Started ${server.version} on port ${new URL(server.url).port}.`);
  return server;
}

async function openPage(server: BenchServer, signal: AbortSignal): Promise<void> {
  await showLivePage({
    server,
    signal,
    ready: (url) => console.log(`\nThe live page: ${url}\nCtrl-C ends it.`),
  });
  console.log('\nEnded; processes and keys are cleaned up.');
}

async function measureAndShow(flags: Flags, server: BenchServer, signal: AbortSignal): Promise<void> {
  const plan = flags.quick ? QUICK : FULL;
  const progress = new Progress(stepsOf(plan, ROUTE_IDS.length, DEMO_CLIENTS.length));
  let results: RouteResult[];
  try {
    results = await measureRoutes({
      server,
      plan,
      clients: DEMO_CLIENTS,
      signal,
      started: () => server.expireAll(),
      progress: (label) => progress.show(label, '', 1),
    });
  } finally {
    progress.stop();
  }
  await show(results, plan, flags, server);
}

async function show(
  results: readonly RouteResult[],
  plan: Plan,
  { json, chart }: Flags,
  { url, version }: BenchServer,
) {
  const summary = summarize(results);
  const processors = cpus();
  const settings = {
    ...plan,
    connections: CONNECTIONS,
    node: process.version,
    server: version,
    processor: processors[0]?.model ?? 'unknown',
    cores: processors.length,
    network: networkOf(url),
    date: new Date().toISOString(),
  };
  console.log(`\n${renderTable(summary)}\n`);
  const how =
    `${CONNECTIONS} connections, medians of ${plan.rounds} runs of ${plan.seconds} s each, interleaved; ` +
    `Node ${settings.node}, ${version}, ${settings.cores} × ${settings.processor}, ${settings.network}`;
  console.log(
    `* per request. ${how}.\n` +
      'The load (autocannon), and Redis if it is here, share this machine with the service: on two cores the service has\n' +
      'one, the others the other. Read the ratios (coalesced divided by plain), not the absolute figures.\n',
  );
  const picture = resolve(chart ?? join(tmpdir(), 'ioredis-coalesce-demo.svg'));
  await writeFile(picture, renderChart(summary, how));
  console.log(`The chart: ${picture}`);
  if (json !== undefined) {
    await writeFile(json, `${JSON.stringify({ settings, summary, results }, null, 2)}\n`);
    console.log(`Every figure: ${resolve(json)}`);
  }
  console.log();
  console.log(renderVerdict(results));
  console.log(
    'Next: "npm run demo -- --page" to see it live; README.md, to put it under your own service;\n' +
      '"npm run bench" for every figure it promises.',
  );
}

function networkOf(redisUrl: string): string {
  const { hostname } = new URL(redisUrl);
  return /^(localhost|127\..*|\[::1\])$/.test(hostname) ? 'loopback' : 'Redis on another machine';
}

function readFlags(): Flags {
  try {
    const { values } = parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
        page: { type: 'boolean', default: false },
        chart: { type: 'string' },
        json: { type: 'string' },
        url: { type: 'string' },
      },
    });
    const url = values.url ?? (process.env.REDIS_URL || undefined);
    if (url !== undefined && !(URL.canParse(url) && /^rediss?:$/.test(new URL(url).protocol))) {
      throw new Error(`--url must be a redis:// or rediss:// URL, got "${url}"`);
    }
    return { ...values, ...(url === undefined ? {} : { url }) } as Flags;
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
