import { tracingChannel } from 'node:diagnostics_channel';
import { Cluster } from 'ioredis';
import { type BatchEvent, CHANNELS, coalesce } from 'ioredis-coalesce/coalesce';
import { collectMetrics } from 'ioredis-coalesce/prometheus';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { cold } from '../helpers/cold.js';
import { parseExposition } from './helpers/exposition.js';
import { inSpan, instrument, takeSpans } from './helpers/open-telemetry.js';

const KEYS = Array.from({ length: 60 }, (_, index) => `key:${index}`);

let nodes: RedisCluster;

beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 0 });
});

afterAll(() => nodes?.stop());

let plain: Cluster;
let client: ReturnType<typeof coalesce<Cluster>>;

beforeEach(async () => {
  plain = await connected();
  client = coalesce(await connected());
  await Promise.all(KEYS.map((key) => client.set(key, key)));
  takeSpans();
});

async function connected(): Promise<Cluster> {
  const cluster = new Cluster([...nodes.startupNodes]);
  cluster.on('error', () => {});
  onTestFinished(() => cluster.disconnect());
  await Promise.all(KEYS.map((key) => cluster.get(key)));
  return cluster;
}

async function use(cluster: Cluster): Promise<unknown> {
  const first = await Promise.all(KEYS.map((key) => cluster.set(key, `value of ${key}`)));
  const all = await Promise.all(
    KEYS.flatMap((key) => [cluster.get(key), cluster.strlen(key), cold(cluster, 'TTL', key)]),
  );
  const failed = await cluster.incr(KEYS[0] as string).catch((error: Error) => error.message);
  return [first, all, failed];
}

it('OpenTelemetry has a span for each command under its own request, as with a plain Cluster', async () => {
  const traced = async (cluster: Cluster) => {
    const results = await inSpan('request', () => use(cluster));
    const { commands, requests } = takeSpans();
    expect(new Set(commands.map((span) => span.parentSpanContext?.spanId))).toEqual(
      new Set(requests.map((span) => span.spanContext().spanId)),
    );
    const spans = commands.map(({ name, attributes, status }) => JSON.stringify([name, attributes, status])).toSorted();
    return { results, spans };
  };
  const tracing = instrument();
  try {
    const { fastCommands } = client.coalescer.stats();
    const expected = await traced(plain);
    expect(expected.spans).toHaveLength(4 * KEYS.length + 1);
    expect(await traced(client)).toEqual(expected);
    const watched = 3 * KEYS.length + 1;
    expect(client.coalescer.stats()).toMatchObject({ fastCommands: fastCommands + watched, observedCommands: watched });
  } finally {
    tracing.restore();
  }
  const { fastCommands } = client.coalescer.stats();
  await use(client);
  expect(client.coalescer.stats().fastCommands).toBe(fastCommands + 3 * KEYS.length + 1);
});

it('ioredis:command has one event for each command, as with a plain Cluster', async () => {
  const events: string[] = [];
  const see = (context: unknown) => void events.push(JSON.stringify(context));
  const channel = tracingChannel('ioredis:command');
  channel.start.subscribe(see);
  try {
    await use(plain);
    const expected = events.splice(0).toSorted();
    await use(client);
    expect(events.toSorted()).toEqual(expected);
    expect(expected).toHaveLength(4 * KEYS.length + 1);
  } finally {
    channel.start.unsubscribe(see);
  }
});

it('batches of each node are reported under its address, and add up to the counters', async () => {
  const events: BatchEvent[] = [];
  const see = (event: unknown) => void events.push(event as BatchEvent);
  const channel = tracingChannel(CHANNELS.BATCH);
  const before = client.coalescer.stats();
  channel.start.subscribe(see);
  await use(client);
  channel.start.unsubscribe(see);
  const after = client.coalescer.stats();
  expect(new Set(events.map(({ address }) => address))).toEqual(
    new Set(nodes.startupNodes.map(({ host, port }) => `${host}:${port}`)),
  );
  const sum = (key: 'size' | 'fastCommands' | 'bytes') => events.reduce((total, event) => total + event[key], 0);
  expect(sum('size')).toBe(after.commands - before.commands);
  expect(sum('fastCommands')).toBe(after.fastCommands - before.fastCommands);
  expect(sum('bytes')).toBe(after.bytesWritten - before.bytesWritten);
});

it('a Cluster is one client in Prometheus, with its nodes counted together', async () => {
  const register = new Registry();
  collectMetrics(client, { register, labels: { client: 'cluster' } });
  await use(client);
  const stats = client.coalescer.stats();
  const { values } = parseExposition(await register.metrics());
  expect(values('redis_coalesce_commands_total', { client: 'cluster', path: 'fast' })).toEqual([stats.fastCommands]);
  expect(values('redis_coalesce_batch_size_commands_count')).toEqual([stats.batches]);
  expect(values('redis_coalesce_in_flight_commands')).toEqual([0]);
});
