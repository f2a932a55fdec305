/**
 * `npm run test:apms [-- name …]`: the APMs of today, each with each client that it supports, plain and coalesced: what
 * they see is the same, and commands stay fast. They tell nobody: their servers are ports at which nobody listens.
 * Their packages come from npm. The table in docs/compatibility.md is what this prints.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startRedis } from './redis-server.js';

const execute = promisify(execFile);
const built = (file: string) => fileURLToPath(new URL(`../dist/${file}`, import.meta.url));
const FILES = ['agents.cjs', 'agents.mjs', 'play.cjs', 'application.cjs', 'application.mjs'];
const APPLICATION_MS = 180_000;

const CLIENTS = ['ioredis@6', 'ioredis@5.11', 'ioredis@5.10', 'iovalkey@0.4'];
const IOREDIS = CLIENTS.filter((client) => client.startsWith('ioredis'));

interface Apm {
  /** In agents.cjs. */
  readonly agent: string;
  /** The first names the version. */
  readonly packages: readonly string[];
  readonly clients: readonly string[];
}

const APMS: readonly Apm[] = [
  {
    agent: 'open-telemetry',
    packages: [
      '@opentelemetry/auto-instrumentations-node',
      '@opentelemetry/sdk-node',
      '@opentelemetry/sdk-trace-base',
      '@opentelemetry/api',
    ],
    clients: IOREDIS,
  },
  {
    agent: 'open-telemetry',
    packages: [
      '@opentelemetry/auto-instrumentations-node@0.57',
      '@opentelemetry/sdk-node@0.200',
      '@opentelemetry/sdk-trace-base@2.0.0',
      '@opentelemetry/api',
    ],
    clients: IOREDIS,
  },
  { agent: 'dd-trace', packages: ['dd-trace@5'], clients: CLIENTS },
  { agent: 'sentry', packages: ['@sentry/node@11'], clients: IOREDIS },
  { agent: 'sentry', packages: ['@sentry/node@9'], clients: IOREDIS },
  { agent: 'newrelic', packages: ['newrelic@13'], clients: CLIENTS },
  { agent: 'elastic', packages: ['elastic-apm-node@4'], clients: IOREDIS },
];

/** How an agent and a client are loaded, and who coalesces. */
const LOADS: Readonly<Record<string, { readonly args: readonly string[]; readonly register?: boolean }>> = {
  require: { args: ['--require', './agents.cjs', 'application.cjs'] },
  import: { args: ['--import', './agents.mjs', 'application.mjs'] },
  'require, register': {
    args: ['--require', './agents.cjs', '--import', built('register.js'), 'application.cjs'],
    register: true,
  },
  'register, import': {
    args: ['--import', built('register.js'), '--import', './agents.mjs', 'application.mjs'],
    register: true,
  },
};

const QUIET = {
  DD_TRACE_EXPERIMENTAL_EXPORTER: 'log',
  DD_REMOTE_CONFIGURATION_ENABLED: 'false',
  DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
  DD_TRACE_AGENT_URL: 'http://127.0.0.1:9',
  DD_TRACE_STARTUP_LOGS: 'false',
  NEW_RELIC_APP_NAME: 'application',
  NEW_RELIC_HOST: '127.0.0.1',
  NEW_RELIC_LICENSE_KEY: '0'.repeat(40),
  NEW_RELIC_LOG_ENABLED: 'false',
  NEW_RELIC_NO_CONFIG_FILE: 'true',
  OTEL_LOGS_EXPORTER: 'none',
  OTEL_METRICS_EXPORTER: 'none',
  OTEL_NODE_RESOURCE_DETECTORS: 'none',
};

interface Span {
  readonly id: string;
  readonly parent?: string;
  readonly name: string;
  readonly error?: string;
}

interface Printed {
  readonly answers: unknown;
  readonly spans: readonly Span[];
  readonly micros: number;
  readonly fast?: number;
  readonly unknown?: string;
}

interface DatadogSpan {
  readonly span_id: string;
  readonly parent_id: string;
  readonly resource: string;
  readonly meta: Readonly<Record<string, string>>;
}

/** What the application has printed last, and the spans that Datadog prints. */
function read(stdout: string): Printed {
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  const parsed = lines.map((line) => JSON.parse(line) as Partial<Printed> & { traces?: DatadogSpan[][] });
  const printed = parsed.find((line) => line.answers !== undefined) as Printed | undefined;
  if (printed === undefined) throw new Error(`the application has printed: ${stdout.slice(-500)}`);
  const more = parsed.flatMap(({ traces = [] }) =>
    traces.flat().map(({ span_id: id, parent_id: parent, resource: name, meta }) => ({
      id,
      parent,
      name,
      ...(meta['error.message'] === undefined ? {} : { error: meta['error.message'] }),
    })),
  );
  return { ...printed, spans: [...printed.spans, ...more] };
}

/**
 * A line for each command that was seen: in which request, its name, its error. Their order is that in which they end.
 */
function seenIn(spans: readonly Span[]): string[] {
  const requests = new Map(spans.filter(({ name }) => name.startsWith('request ')).map(({ id, name }) => [id, name]));
  return spans
    .flatMap(({ parent = '', name, error }) =>
      requests.has(parent) && !name.startsWith('request ') ? [`${requests.get(parent)}: ${name} ${error ?? ''}`] : [],
    )
    .sort();
}

async function run(folder: string, agent: string, client: string, load: string, coalesced: boolean): Promise<Printed> {
  const server = await startRedis();
  const { args = [], register = false } = LOADS[load] ?? {};
  const [host = ''] = client.split('@');
  const given = coalesced ? args : args.filter((arg, at) => ![arg, args[at + 1]].includes(built('register.js')));
  try {
    const { stdout } = await execute(process.execPath, given, {
      cwd: folder,
      timeout: APPLICATION_MS,
      maxBuffer: 2 ** 28,
      env: {
        ...process.env,
        ...QUIET,
        APM: agent,
        HOST: host,
        REDIS_URL: server.url,
        ...(coalesced && !register && { COALESCE: built('coalesce.cjs') }),
      },
    });
    return read(stdout);
  } finally {
    await server.stop();
  }
}

const versionOf = async (folder: string, name: string) =>
  (JSON.parse(await readFile(join(folder, 'node_modules', name, 'package.json'), 'utf8')) as { version: string })
    .version;

/** Packages without their version, `@scope/name@1`. */
const nameOf = (spec: string) => spec.replace(/(?<=.)@.*$/, '');

const install = (folder: string, packages: readonly string[]) =>
  execute('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], { cwd: folder });

/** Prints a row for each client and load; @returns whether all are as plain. */
async function check({ agent, packages, clients }: Apm): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), `apm-${agent}-`));
  let isRight = true;
  try {
    await writeFile(join(folder, 'package.json'), '{"private":true}');
    await install(folder, packages);
    for (const file of FILES) {
      await copyFile(fileURLToPath(new URL(`apms/${file}`, import.meta.url)), join(folder, file));
    }
    const name = nameOf(packages[0] ?? '');
    for (const client of clients) {
      await install(folder, [client]);
      const title = `${name} ${await versionOf(folder, name)} | ${nameOf(client)} ${await versionOf(folder, nameOf(client))}`;
      for (const load of Object.keys(LOADS)) {
        const plain = await run(folder, agent, client, load, false);
        const coalesced = await run(folder, agent, client, load, true);
        const [before, now] = [seenIn(plain.spans), seenIn(coalesced.spans)];
        const same = JSON.stringify([before, plain.answers]) === JSON.stringify([now, coalesced.answers]);
        const { fast = 0, unknown = '' } = coalesced;
        isRight &&= same && (fast > 0.99 || unknown !== '');
        const percent = `${Math.floor(fast * 100)} %`;
        const ratio = (coalesced.micros / plain.micros).toFixed(2);
        console.log(
          `| ${title} | ${load} | ${before.length} | ${same ? 'equal' : 'NOT EQUAL'} | ${percent} | ${ratio} | ${unknown}`,
        );
        if (same) continue;
        console.log(`  plain alone: ${before.filter((line) => !now.includes(line)).join('; ')}`);
        console.log(
          `  coalesced alone: ${now.filter((line) => !before.includes(line)).join('; ')} (${now.length} in all)`,
        );
        console.log(
          `  answers ${JSON.stringify(plain.answers) === JSON.stringify(coalesced.answers) ? 'equal' : 'NOT EQUAL'}`,
        );
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return isRight;
}

const chosen = process.argv.slice(2);
console.log(
  '| APM | client | loaded by | commands seen | as plain | fast | CPU per get, of plain |\n|---|---|---|---|---|---|---|',
);
for (const apm of APMS) {
  const [spec = ''] = apm.packages;
  if (chosen.length > 0 && !chosen.some((part) => spec.includes(part))) continue;
  try {
    if (!(await check(apm))) process.exitCode = 1;
  } catch (error) {
    process.exitCode = 1;
    console.log(`| ${spec} | could not be run: ${String(error).slice(0, 300)}`);
  }
}
