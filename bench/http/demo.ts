import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Benchmark, http } from '../benchmarks/benchmark.js';
import { FUSED_SERVICE } from '../benchmarks/fused.js';
import { CASCADE } from '../benchmarks/prefetch.js';
import { type BenchServer, openServer } from '../suite/bench-server.js';
import { type Cleanup, cleanly } from '../suite/cleanup.js';
import { samplesOf } from '../suite/pace.js';
import type { CaseResult } from '../suite/results.js';
import { openRig } from '../suite/rig.js';
import { Runner } from '../suite/runner.js';
import { readSettings } from '../suite/settings.js';
import { renderChart } from './demo-chart.js';
import {
  DEMO_CLIENTS,
  type DemoClient,
  type RouteResult,
  renderFused,
  renderTable,
  renderVerdict,
  summarize,
} from './demo-summary.js';
import { CONNECTIONS, ROUTE_IDS, ROUTES, type RouteId } from './example.js';
import { showLivePage } from './live-page.js';

const HELP = `Runs the Fastify example with a plain ioredis client, with a corked one, with a coalesced one, and with one that also caches
what it reads (on ioredis 6, and Redis 7 or Valkey): the same handlers, under the same load. Then one request that awaits
one read after the other, on a Redis 1 ms away, plain, coalesced and with prefetch. The first three lines that it prints are
the result in words; a table follows, and a chart.

  npm run demo                     about two minutes
  npm run demo -- --quick          about 40 seconds; rougher figures
  npm run demo -- --fuse           also a service of 8 GETs per request, as it is and with \`fuseReads\`
  npm run demo -- --page           no table: opens the live page, to see it happen; Ctrl-C ends it
  npm run demo -- --url URL        on your own Redis, as with REDIS_URL
  npm run demo -- --chart FILE     where the chart goes (SVG)
  npm run demo -- --json FILE      every figure as JSON as well
  npm run demo -- --help

Without a URL it starts a Redis of its own on a free loopback port (REDIS_SERVER names the binary). On yours, it writes
4000 small hashes under one prefix of its own, loads the server for as long as it runs, and removes the keys; the requests
of one read after the other, which take 240,000 keys, it leaves out.`;

const PREFIX = 'coalesce-demo:';
const FULL = { rounds: 3, seconds: 1, warmUpSeconds: 1 };
const QUICK = { rounds: 2, seconds: 0.4, warmUpSeconds: 0.25 };
/** Every route with every client, the one without Redis with one. */
const VARIANTS: Readonly<Record<string, readonly [RouteId, DemoClient]>> = Object.fromEntries(
  ROUTE_IDS.flatMap((route) =>
    DEMO_CLIENTS.filter((client) => route !== 'no-redis' || client === 'plain').map((client) => [
      `${ROUTES[route]}, ${client}`,
      [route, client],
    ]),
  ),
);

class UsageError extends Error {}

type Flags = ReturnType<typeof readFlags>;

/** The Redis that the user names, else one of our own. */
async function serverAt(given: string | undefined): Promise<BenchServer> {
  if (given !== undefined) {
    console.error(
      `Using the Redis at ${new URL(given).host}. The keys begin with "${PREFIX}", a random part follows; they are\n` +
        'removed at the end. Meanwhile the server is under load: not one that others depend on.',
    );
  }
  const server = await openServer(given, { prefix: PREFIX });
  if (given === undefined) console.error(`Started ${server.version} on port ${new URL(server.url).port}.`);
  return server;
}

async function measureAndShow(
  { quick, json, chart, fuse, url }: Flags,
  server: BenchServer,
  cleanup: Cleanup,
): Promise<void> {
  const pace = quick ? QUICK : FULL;
  const { warmUpSeconds, ...asked } = pace;
  const benchmark = http('demo', 'The example', VARIANTS, { warmUpSeconds, counted: true });
  const more = [...(url === undefined ? [CASCADE] : []), ...(fuse ? [FUSED_SERVICE] : [])];
  const wanted = [benchmark, ...more];
  const samples = wanted.reduce((sum, one) => sum + samplesOf(one, asked), 0);
  const rig = await openRig(cleanup, { asked, server, samples });
  const runner = new Runner(rig);
  const cases = new Map<Benchmark, CaseResult | undefined>();
  for (const one of wanted) cases.set(one, (await runner.run(one)).cases[0]);
  const [found, cascade, fused] = [benchmark, CASCADE, FUSED_SERVICE].map((one) => cases.get(one));
  rig.progress.stop();
  const results = found!.variants.map(({ variant, figures }): RouteResult => {
    const [route, client] = VARIANTS[variant]!;
    return { route, client, figures };
  });
  const summary = summarize(results);
  const settings = {
    ...{ ...pace, connections: CONNECTIONS },
    ...(await readSettings({ server, node: process.version })),
  };
  const { cores, cpu, node } = settings;
  const verdict = [renderVerdict(summary, cascade), ...(fused === undefined ? [] : [renderFused(fused)])].join('\n');
  console.log(`${verdict}\n\n${renderTable(summary)}\n`);
  const isLocal = /^(?:127\.|localhost$|\[::1\]$)/.test(new URL(server.url).hostname);
  const how =
    `${isLocal ? 'Loopback, as' : 'As'} fast as it goes; ${CONNECTIONS} connections, ` +
    `medians of ${pace.rounds} runs of ${pace.seconds} s each, interleaved; ` +
    `Node ${node}, ${server.version}, ${cores} × ${cpu}`;
  console.log(
    `* per request. ${how}.\n` +
      'The load (autocannon), and Redis if it is here, share this machine with the service: on two cores the service has\n' +
      'one, the others the other. Read the ratios, not the absolute figures.\n',
  );
  const picture = resolve(chart ?? join(tmpdir(), 'ioredis-coalesce-demo.svg'));
  await writeFile(picture, renderChart(summary, how));
  console.log(`The chart: ${picture}`);
  if (json !== undefined) {
    await writeFile(json, `${JSON.stringify({ settings, summary, results, cascade, fused }, null, 2)}\n`);
    console.log(`Every figure: ${resolve(json)}`);
  }
  console.log(
    '\nNext: "npm run demo -- --page" to see it live; README.md, to put it under your own service;\n' +
      '"npm run bench" for every figure it promises.',
  );
}

function readFlags() {
  try {
    const { values } = parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
        page: { type: 'boolean', default: false },
        fuse: { type: 'boolean', default: false },
        chart: { type: 'string' },
        json: { type: 'string' },
        url: { type: 'string' },
      },
    });
    const url = values.url ?? (process.env.REDIS_URL || undefined);
    if (url !== undefined && !(URL.canParse(url) && /^rediss?:$/.test(new URL(url).protocol))) {
      throw new Error(`--url must be a redis:// or rediss:// URL, got "${url}"`);
    }
    return { ...values, url };
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : error}\n\n${HELP}`);
  }
}

async function main(): Promise<void> {
  const flags = readFlags();
  if (flags.help) {
    console.log(HELP);
    return;
  }
  const run = async (cleanup: Cleanup) => {
    const server = await serverAt(flags.url);
    await cleanup.add(() => server.close());
    await (flags.page ? showLivePage(server, cleanup) : measureAndShow(flags, server, cleanup));
  };
  await cleanly(run, flags.page ? '\nEnded; processes and keys are cleaned up.' : undefined);
}

main().catch((error: unknown) => {
  console.error(`\n${error instanceof Error ? error.message : error}`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
