/** Replies that together exceed the server's `client-output-buffer-limit`: what is sent again at once has to shrink. */
import { setImmediate as immediate } from 'node:timers/promises';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InFlightBound } from '../../src/util/in-flight-bound.js';
import { type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { findServerBinary } from '../../tools/server-binary.js';
import { createCluster, ioredis6 as ioredis6Cluster, warm } from '../helpers/cluster/clients.js';
import { type Host, ioredis5, ioredis6, ready } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, startServer } from '../helpers/redis.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';

/** Valkey 9 sends large values without copying them into the output buffer. */
const COPIES_NOTHING = (await findServerBinary()).path.includes('valkey');

const LIMIT = ['--client-output-buffer-limit', 'normal 1mb 1mb 1'];
const LARGE = 'x'.repeat(300_000);
const times = <T>(count: number, make: () => T) => Array.from({ length: count }, make);

describe.each<[string, Host, object, CoalesceOptions?]>([
  ['ioredis 6, RESP2', ioredis6, { protocol: 2 }],
  ['ioredis 6, RESP3', ioredis6, { protocol: 3 }],
  ['ioredis 6, fused reads', ioredis6, {}, { fuseReads: true }],
  ['ioredis 5', ioredis5, {}],
])('%s: replies beyond client-output-buffer-limit', (_, host, options, coalesced) => {
  it('of commands: each gets its reply, after a few connections', async ({ skip }) => {
    skip(COPIES_NOTHING, 'Valkey does not count large values');
    const { url } = await startServer({ args: LIMIT });
    const client = await ready(host.createCoalesced(url, options, coalesced));
    await client.set('large', LARGE);
    // Reads are fused once a connection's first has been answered.
    await client.get('small');
    let lost = 0;
    client.on('close', () => void lost++);
    const values = await Promise.all(times(60, () => client.get('large')));
    expect(values.every((value) => value === LARGE)).toBe(true);
    expect(lost).toBeGreaterThan(1);
    expect(lost).toBeLessThan(20);
    expect(await client.get('large')).toBe(LARGE);
  });

  it('of pipelines, which are never split, and of commands issued without a connection', async ({ skip }) => {
    skip(COPIES_NOTHING, 'Valkey does not count large values');
    const { url } = await startServer({ args: LIMIT });
    const client = await ready(host.createCoalesced(url, options, coalesced));
    await client.set('large', LARGE);
    const pipelines = times(20, () => client.pipeline().get('large').set('small', 's').get('large').exec());
    // Not `once()` of node:events, which rejects when the client emits an error before it.
    const closed = new Promise((resolve) => client.once('close', resolve));
    const behind = closed.then(() => Promise.all(times(20, () => client.get('large'))));
    const lengths = (await Promise.all(pipelines)).map((results) => results?.map(([, value]) => String(value).length));
    expect((await behind).every((value) => value === LARGE)).toBe(true);
    // Host: one of which a part was answered is not sent again.
    const whole = lengths.filter((each) => String(each) === `${LARGE.length},2,${LARGE.length}`);
    expect(whole.length).toBeGreaterThan(10);
  });
});

describe('a Cluster', () => {
  let nodes: RedisCluster;
  beforeAll(async () => {
    nodes = await startCluster({ masters: 3, replicas: 0, args: LIMIT });
  });
  afterAll(() => nodes?.stop());

  it('a node’s replies beyond client-output-buffer-limit: each command gets its reply', async () => {
    const cluster = await warm(createCluster(ioredis6Cluster, 'coalesced', nodes));
    await cluster.set('large', LARGE);
    const values = await Promise.all(times(40, () => cluster.get('large')));
    expect(values.every((value) => value === LARGE)).toBe(true);
  });
});

it('a handshake that fails: does not bound what is sent at once afterwards', async () => {
  const server = await startScriptedServer((command, connection) => {
    if (connection < 4) return 'close';
    return command[0] === 'get' ? bulk('v') : handshake(command);
  });
  const client = await ready(ioredis6.createCoalesced(server.url, { retryStrategy: () => 1 }));
  const values = times(100, () => client.get('k'));
  expect(client.coalescer.stats().queued).toBe(0);
  expect(await Promise.all(values)).toEqual(times(100, () => 'v'));
});

it('a connection that has answered the host’s commands alone does not lower the bound when it is lost', async () => {
  const proxy = await startProxy(redisUrl());
  const client = await ready(ioredis6.createCoalesced(proxy.url, { retryStrategy: () => 1 }));
  const { inFlightBound } = client.coalescer as unknown as { inFlightBound: InFlightBound };
  for (let round = 0; round < 3; round += 1) {
    // `config` is left to the host, whose replies our reader forwards in one piece.
    await Promise.all(times(50, () => client.config('GET', 'maxmemory')));
    proxy.stall();
    const held = times(8, () => client.config('GET', 'maxmemory'));
    await immediate();
    client.stream.destroy(new Error('lost'));
    proxy.resume();
    expect(await Promise.all(held)).toHaveLength(8);
  }
  expect(inFlightBound.current).toBe(10_000);
});

it.each([
  ['ends', 10_000],
  ['destroys', 1],
] as const)('a client that %s connections without a reply leaves a bound of %i', async (how, bound) => {
  const server = await startScriptedServer(handshake);
  const client = await ready(
    ioredis6.createCoalesced(server.url, { retryStrategy: () => 1, maxRetriesPerRequest: null }),
  );
  const { inFlightBound } = client.coalescer as unknown as { inFlightBound: InFlightBound };
  const values = times(8, () => client.get('k'));
  for (let round = 0; round < 4; round += 1) {
    await immediate();
    const again = new Promise((resolve) => client.once('ready', resolve));
    if (how === 'ends') client.disconnect(true);
    else client.stream.destroy(new Error('lost'));
    await again;
  }
  expect(inFlightBound.current).toBe(bound);
  client.disconnect();
  await Promise.allSettled(values);
});

describe('InFlightBound', () => {
  it('is quartered by connections that are lost in a row without a reply, but for the first, and not by others', () => {
    const bound = new InFlightBound(10_000, 1);
    bound.lost(60, false);
    bound.lost(60, true);
    bound.lost(60, false);
    bound.lost(1, false);
    bound.lost(60, false);
    expect(bound.current).toBe(10_000);
    bound.lost(60, false);
    expect(bound.current).toBe(15);
    bound.lost(15, false);
    bound.lost(2, false);
    expect(bound.current).toBe(1);
  });

  it('grows again as replies come, up to maxInFlight', () => {
    const bound = new InFlightBound(100, 0);
    bound.lost(60, false);
    for (let replies = 0; replies < 16 * 15 - 1; replies += 1) bound.repliesCame(1);
    expect(bound.current).toBe(15);
    bound.repliesCame(1);
    expect(bound.current).toBe(30);
    bound.repliesCame(16 * 30);
    bound.repliesCame(16 * 60);
    expect(bound.current).toBe(100);
  });
});
