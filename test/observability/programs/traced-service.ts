// Run as `traced-service.ts <tracer> <order>` by tracers.test.ts, in a process of its own: what is loaded first
// matters.
import { createRequire } from 'node:module';
import type { tracer as DatadogTracer } from 'dd-trace';
import type { Redis } from 'ioredis';
import type { Coalesced } from 'ioredis-coalesce';

const REQUESTS = 50;

const require = createRequire(import.meta.url);
const [, , tracerName = '', order = ''] = process.argv;
const url = process.env.TEST_URL as string;
const prefix = process.env.TEST_PREFIX as string;

type InSpan = (name: string, work: () => Promise<unknown>) => Promise<unknown>;

/** Loads a tracer as its manual says, which has it patch ioredis as soon as that is asked for. */
const tracers: Record<string, () => InSpan> = {
  'dd-trace': () => {
    // Its exporter "log" prints each trace, see the test.
    const tracer = require('dd-trace') as typeof DatadogTracer;
    tracer.init({ startupLogs: false });
    return (name, work) => tracer.trace(name, work);
  },
  'open-telemetry': () => {
    const { inSpan, instrument, takeSpans } =
      require('../helpers/open-telemetry.ts') as typeof import('../helpers/open-telemetry.js');
    instrument();
    process.on('exit', () => {
      const { commands, requests } = takeSpans();
      const spans = [...requests, ...commands].map((span) => ({
        id: span.spanContext().spanId,
        parent: span.parentSpanContext?.spanId,
        name: span.name,
        statement: span.attributes['db.query.text'],
        error: span.status.message,
      }));
      console.log(JSON.stringify({ spans }));
    });
    return inSpan;
  },
};

function startTracer(): InSpan {
  const inSpan = tracers[tracerName]?.();
  if (inSpan === undefined) throw new Error(`expected one of ${Object.keys(tracers)}, got ${tracerName}`);
  // A service asks for it here at the latest.
  require('ioredis');
  return inSpan;
}

const loadPackage = () => require('../../../src/index.ts') as typeof import('ioredis-coalesce');

async function connect<T extends Redis>(client: T): Promise<T> {
  await new Promise<void>((resolve) => void client.once('ready', resolve));
  return client;
}

async function serve(name: string, client: Redis, inSpan: InSpan): Promise<void> {
  const handle = (request: number) =>
    inSpan(`${name} ${request}`, async () => {
      const key = `${prefix}${request}`;
      await client.set(key, 'text');
      await Promise.all([client.get(key), client.getBuffer(key), client.call('STRLEN', key)]);
      await client.incr(key).catch(() => {});
      await client.pipeline().expire(key, 9).del(key).exec();
    });
  await Promise.all(Array.from({ length: REQUESTS }, (_, request) => handle(request)));
}

/** A coalesced client that has used its fast path, unless commands are traced already. */
async function warmed<T extends Redis & Coalesced>(client: T): Promise<T> {
  await client.echo('the reply that shows where the next one begins');
  await Promise.all([client.echo('warm'), client.echo('warm')]);
  return client;
}

async function coalescedIn(): Promise<{ client: Redis & Coalesced; inSpan: InSpan }> {
  if (order === 'before') {
    const inSpan = startTracer();
    const { Redis } = loadPackage();
    return { client: await warmed(await connect(new Redis(url))), inSpan };
  }
  const { Redis, coalesce } = loadPackage();
  if (order === 'after') {
    const client = await warmed(await connect(new Redis(url)));
    return { client, inSpan: startTracer() };
  }
  const inSpan = startTracer();
  const { Redis: IORedis } = require('ioredis') as typeof import('ioredis');
  return { client: await warmed(coalesce(await connect(new IORedis(url)))), inSpan };
}

async function main(): Promise<void> {
  const { client, inSpan } = await coalescedIn();
  const before = client.coalescer.stats();
  const { Redis: IORedis } = require('ioredis') as typeof import('ioredis');
  const plain = await connect(new IORedis(url));
  await serve('plain', plain, inSpan);
  await serve('coalesced', client, inSpan);
  const stats = client.coalescer.stats();
  console.log(
    JSON.stringify({
      fastBefore: before.fastCommands - before.observedCommands,
      fast: stats.fastCommands - before.fastCommands,
      watched: stats.observedCommands - before.observedCommands,
      patched: stats.fallbacks.patched,
    }),
  );
  plain.disconnect();
  client.disconnect();
}

await main();
