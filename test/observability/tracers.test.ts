import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { SEED } from '../helpers/hostile/random.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { share } from '../helpers/share.js';

const run = promisify(execFile);
const program = fileURLToPath(new URL('./programs/traced-service.ts', import.meta.url));

interface Span {
  readonly id: string;
  readonly parent: string | undefined;
  readonly name: string;
  readonly statement: string | undefined;
  readonly error: string | undefined;
}

interface Run {
  readonly spans: readonly Span[];
  readonly counts: {
    readonly fastBefore: number;
    readonly fast: number;
    readonly watched: number;
    readonly patched: number;
  };
}

/** A span as Datadog's exporter `log` prints it. */
interface DatadogSpan {
  readonly span_id: string;
  readonly parent_id: string;
  readonly resource: string;
  readonly meta: Readonly<Record<string, string>>;
}

async function serviceTracedBy(tracer: string, order: string): Promise<Run> {
  const { stdout } = await run(process.execPath, ['--import', 'tsx', program, tracer, order], {
    maxBuffer: 2 ** 26,
    env: {
      ...process.env,
      TEST_URL: redisUrl(),
      TEST_PREFIX: uniquePrefix('traced'),
      DD_TRACE_EXPERIMENTAL_EXPORTER: 'log',
      // Nobody is asked for its configuration, or told anything.
      DD_REMOTE_CONFIGURATION_ENABLED: 'false',
      DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
    },
  });
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Run['counts'] & Printed);
  const counts = lines.find((line) => 'fastBefore' in line);
  if (counts === undefined) throw new Error(`expected the service to print its counts, got: ${stdout}`);
  return {
    counts,
    spans: lines.flatMap((line) => [...(line.spans ?? []), ...(line.traces ?? []).flat().map(fromDatadog)]),
  };
}

type Printed = { readonly spans?: readonly Span[]; readonly traces?: readonly (readonly DatadogSpan[])[] };

function fromDatadog({ span_id: id, parent_id: parent, resource: name, meta }: DatadogSpan): Span {
  return { id, parent, name, statement: meta['redis.raw_command'], error: meta['error.message'] };
}

/** What was seen below the requests of one client: a line for each command, under its request, in order. */
function requestsOf(client: string, spans: readonly Span[]): Record<string, string[]> {
  const requests = spans.filter(({ name }) => name.startsWith(`${client} `));
  return Object.fromEntries(
    requests.map(({ id, name }) => [
      name.slice(client.length + 1),
      spans
        .filter(({ parent }) => parent === id)
        .map(({ name: command, statement, error }) => `${command}: ${statement}${error ? ` -> ${error}` : ''}`),
    ]),
  );
}

const TRACERS = ['open-telemetry', 'dd-trace'];
const ORDERS = [
  ['before this package is loaded', 'before'],
  ['between loading it and coalesce()', 'between'],
  ['after coalesce()', 'after'],
] as const;

describe.concurrent.each(TRACERS)('%s, the package, in its own process', (tracer) => {
  // Each order with one of both.
  it.each(share(ORDERS, 2, SEED + TRACERS.indexOf(tracer)))(
    'that patches ioredis %s sees every command under its own request',
    async (_, order) => {
      const { spans, counts } = await serviceTracedBy(tracer, order);
      const plain = requestsOf('plain', spans);
      expect(Object.keys(plain)).toHaveLength(50);
      for (const commands of Object.values(plain)) {
        expect(commands).toHaveLength(7);
        expect(commands.filter((line) => line.includes('ERR value is not an integer'))).toHaveLength(1);
      }
      expect(requestsOf('coalesced', spans)).toEqual(plain);
      expect(counts.fastBefore > 0).toBe(order === 'after');
      // All but the pipelines, of which each counts once.
      expect(counts).toMatchObject({ fast: 5 * 50, watched: 5 * 50, patched: 50 });
    },
    60_000,
  );
});
