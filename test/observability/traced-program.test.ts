import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const run = promisify(execFile);
const program = fileURLToPath(new URL('./programs/traced-program.ts', import.meta.url));

/** Commands of the handshake after a reconnect, and the connection itself: whose span is active then is chance. */
const HANDSHAKE = /^(redis-)?(info|client|hello|connect|127\.0\.0\.1.*)$/;

/** What is left out of the comparison: it differs from run to run, or tells who made an error. */
const DIFFERENT = /^(_dd\.tags\.process|_dd\.p\..*|process_id|runtime-id|error\.stack)$/;

/** A span of any tracer: whose it is, everything that does not differ by chance, and how long it took. */
interface Span {
  readonly trace: string;
  readonly name: string;
  readonly isChild: boolean;
  readonly rest: object;
  readonly ms: number;
}

interface DatadogSpan {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_id: string;
  readonly resource: string;
  readonly start: number;
  readonly duration: number;
}

interface SentryTransaction {
  readonly transaction: string;
  readonly root: string;
  readonly spans: readonly {
    readonly span_id: string;
    readonly trace_id: string;
    readonly parent_span_id: string;
    readonly description: string;
    readonly start_timestamp: number;
    readonly timestamp: number;
  }[];
}

type Printed = Partial<SentryTransaction> & {
  readonly traces?: readonly (readonly DatadogSpan[])[];
  readonly observedCommands?: number;
};

const ofDatadog = ({
  trace_id: trace,
  span_id: _,
  parent_id,
  resource: name,
  start: __,
  duration,
  ...rest
}: DatadogSpan) => ({ trace, name, isChild: parent_id === trace, rest, ms: duration / 1e6 });

const ofSentry = ({ transaction, root, spans }: SentryTransaction): Span[] =>
  spans.map(({ span_id: _, trace_id: __, parent_span_id, description: name, start_timestamp, timestamp, ...rest }) => ({
    trace: transaction,
    name,
    isChild: parent_span_id === root,
    rest,
    ms: (timestamp - start_timestamp) * 1000,
  }));

/** The spans of the plain and the coalesced client's sixty commands, as one line each, and how many were fast. */
async function spansUnder(tracer: string) {
  const { stdout } = await run(process.execPath, ['--import', 'tsx', program, tracer], {
    maxBuffer: 2 ** 26,
    env: {
      ...process.env,
      TEST_URL: redisUrl(),
      TEST_PREFIX: uniquePrefix('traced-program'),
      DD_TRACE_EXPERIMENTAL_EXPORTER: 'log',
      // Nobody is asked for its configuration, or told anything.
      DD_REMOTE_CONFIGURATION_ENABLED: 'false',
      DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
    },
  });
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Printed);
  const spans = lines.flatMap(({ traces = [], ...line }) => [
    ...traces.flat().map(ofDatadog),
    ...(line.spans === undefined ? [] : ofSentry(line as SentryTransaction)),
  ]);
  const of = (client: string) => {
    const trace = spans.find(({ name }) => name === client)?.trace ?? client;
    return spans.filter((span) => span.trace === trace && span.name !== client && !HANDSHAKE.test(span.name));
  };
  const watched = lines.find(({ observedCommands }) => observedCommands !== undefined)?.observedCommands;
  return { plain: of('plain'), coalesced: of('coalesced'), watched };
}

/** How spans of fast commands and others alternate depends on where chunks of replies end. */
const asLines = (spans: readonly Span[]): string[] =>
  spans
    .map(({ name, isChild, rest }) =>
      JSON.stringify({ name, isChild, rest }, (key, value: unknown) => (DIFFERENT.test(key) ? undefined : value)),
    )
    .sort();

describe.concurrent.each(['dd-trace', 'sentry'])('%s, the package, in its own process', (tracer) => {
  it('sixty commands with errors, timeouts, a reconnect and aborts have the spans of a plain client', async () => {
    const { plain, coalesced, watched } = await spansUnder(tracer);
    expect(plain.length).toBeGreaterThanOrEqual(50);
    expect(asLines(coalesced)).toEqual(asLines(plain));
    expect(watched).toBeGreaterThan(40);
    // A span lasts until its command's outcome: four of them time out after 30 ms.
    const long = (spans: readonly Span[]) => spans.filter(({ ms }) => ms > 25).length;
    expect(long(plain)).toBeGreaterThanOrEqual(4);
    expect(long(coalesced)).toBeGreaterThanOrEqual(4);
  }, 60_000);
});
