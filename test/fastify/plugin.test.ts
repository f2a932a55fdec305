import { once } from 'node:events';
import fastifyRedis from '@fastify/redis';
import { type FastifyInstance, type FastifyPluginCallback, fastify } from 'fastify';
import fp from 'fastify-plugin';
import { Redis } from 'ioredis';
import fastifyCoalesce, { fastifyRedis as sameName } from 'ioredis-coalesce/fastify';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { HOSTS, ioredis6, ready, until } from '../helpers/hosts.js';
import { redisUrl, startServer, uniquePrefix } from '../helpers/redis.js';

type AnyPlugin = FastifyPluginCallback<Record<string, unknown>>;

/** Whatever @fastify/redis does, ours does: each of these runs with both, under one expectation. */
const PLUGINS = [
  { name: '@fastify/redis', plugin: fastifyRedis as unknown as AnyPlugin },
  { name: 'ioredis-coalesce/fastify', plugin: fastifyCoalesce as unknown as AnyPlugin },
];

describe.each(PLUGINS)('as @fastify/redis documents it: $name', ({ plugin }) => {
  it('connects by url, takes every option of ioredis, and closes its client with the application', async () => {
    const prefix = uniquePrefix('plugin');
    const app = createApp();
    await app.register(plugin, {
      url: redisUrl(),
      keyPrefix: prefix,
      connectionName: 'of-the-app',
      closeClient: false,
    });
    await app.redis.set('k', 'v');
    expect(await app.redis.get('k')).toBe('v');
    expect(await plainGet(`${prefix}k`)).toBe('v');
    expect(await app.redis.client('GETNAME')).toBe('of-the-app');
    expect(await app.redis.client('INFO')).toMatch(/lib-name=ioredis\(fastify-redis_v9[\d.]+\)|^(?!.*lib-name)/s);
    expect(app.redis.options.clientInfoTag).toMatch(/^fastify-redis_v9\./);
    const client: Redis = app.redis;
    await app.close();
    await until(() => client.status === 'end', 'the client that the plugin made ends with the application');
  });

  it('connects by host and port', async () => {
    const { hostname: host, port } = new URL(redisUrl());
    const app = createApp();
    await app.register(plugin, { host, port: Number(port), clientInfoTag: 'mine' });
    expect(await app.redis.ping()).toBe('PONG');
    expect(app.redis.options.clientInfoTag).toBe('mine');
  });

  it('keeps clients under their namespaces', async () => {
    const app = createApp();
    await app.register(plugin, { url: redisUrl(), namespace: 'one' });
    await app.register(plugin, { url: redisUrl(), namespace: 'two', db: 1 });
    const { one, two } = app.redis;
    expect(await Promise.all([one!.ping(), two!.ping()])).toEqual(['PONG', 'PONG']);
    expect(one).not.toBe(two);
    expect(two!.options.db).toBe(1);
    await app.close();
    await until(() => one!.status === 'end' && two!.status === 'end', 'both clients end with the application');
  });

  it('refuses a second registration, and leaves no connection open', async () => {
    const server = await ownServer();
    const app = createApp();
    app.register(plugin, { url: server.url }).register(plugin, { url: server.url });
    await expect(app.ready()).rejects.toThrow(/^@fastify\/redis has already been registered$/);
    expect(await connections(server.url)).toBe(1);
  });

  it('refuses a second registration of a namespace, and leaves no connection open', async () => {
    const server = await ownServer();
    const app = createApp();
    const options = { url: server.url, namespace: 'same' };
    app.register(plugin, options).register(plugin, options);
    await expect(app.ready()).rejects.toThrow(/^Redis 'same' instance namespace has already been registered$/);
    expect(await connections(server.url)).toBe(1);
  });

  it('decorates only the context in which it is registered', async () => {
    const app = createApp();
    const inside: FastifyInstance[] = [];
    for (const options of [{}, { namespace: 'a' }]) {
      app.register(async (instance) => {
        await instance.register(plugin, { url: redisUrl(), ...options });
        inside.push(instance);
      });
    }
    await app.ready();
    expect(app.redis).toBeUndefined();
    expect(await inside[0]!.redis.ping()).toBe('PONG');
    expect(await inside[1]!.redis.a!.ping()).toBe('PONG');
  });

  it('takes a client that is ready, and closes it only when told to', async () => {
    for (const closeClient of [undefined, false, true]) {
      const client = await ready(ioredis6.create(redisUrl()));
      const app = createApp();
      await app.register(plugin, { client, ...(closeClient === undefined ? {} : { closeClient }) });
      expect(app.redis).toBe(client);
      await app.close();
      if (closeClient) await until(() => client.status === 'end', 'the client ends with the application');
      else expect(await client.ping()).toBe('PONG');
    }
  });

  it('fails to start when the client refuses its options', async () => {
    const app = createApp();
    app.register(plugin, { Connector: 'none' });
    await expect(app.ready()).rejects.toThrow('Connector is not a constructor');
  });

  it('fails to start on a wrong password', async () => {
    const server = await ownServer(['--requirepass', 'right']);
    const app = createApp();
    app.register(plugin, { url: server.url, password: 'wrong' });
    await expect(app.ready()).rejects.toThrow(/WRONGPASS|NOAUTH/);
  });

  it('fails to start on a host that does not exist', async () => {
    // @fastify/redis does not wait for this, which fails without a server, nor handles its error.
    const quit = vi.spyOn(Redis.prototype, 'quit').mockResolvedValue('OK');
    onTestFinished(() => quit.mockRestore());
    const app = createApp();
    app.register(plugin, { host: 'redis.invalid', namespace: 'nowhere' });
    await expect(app.ready()).rejects.toMatchObject({ code: 'ENOTFOUND' });
    expect(quit.mock.contexts).toEqual([app.redis.nowhere]);
    app.redis.nowhere!.disconnect();
  });

  it('waits at a port where no server listens, until Fastify gives up', async () => {
    const app = fastify({ pluginTimeout: 500 });
    app.register(plugin, { host: '127.0.0.1', port: 1, namespace: 'nobody' });
    await expect(app.ready()).rejects.toMatchObject({
      code: 'FST_ERR_PLUGIN_TIMEOUT',
      message: expect.stringContaining("'@fastify/redis'"),
    });
    // Not closed: a start that timed out waits for the client for ever, with either plugin.
    app.redis.nobody!.removeAllListeners('end').disconnect();
  });

  it('satisfies plugins that depend on @fastify/redis', async () => {
    const app = createApp();
    const dependent = fp(async () => {}, { name: 'dependent', dependencies: ['@fastify/redis'] });
    await app.register(plugin, { url: redisUrl() });
    await app.register(dependent);
    expect(app.hasPlugin('@fastify/redis')).toBe(true);
  });
});

describe('ioredis-coalesce/fastify', () => {
  it('is the default export, and also has the name that @fastify/redis exports', () => {
    expect(sameName).toBe(fastifyCoalesce);
  });

  it('coalesces the clients it makes, with the options at `coalesce`', async () => {
    const app = createApp();
    await app.register(fastifyCoalesce, { url: redisUrl(), namespace: 'one', coalesce: { maxBatchSize: 7 } });
    await app.register(fastifyCoalesce, { url: redisUrl(), namespace: 'two', coalesce: { schedule: 'immediate' } });
    const { one, two } = app.redis;
    expect(one!.coalescer.options.maxBatchSize).toBe(7);
    expect(one!.options).not.toHaveProperty('coalesce');
    const before = two!.coalescer.stats();
    await Promise.all(Array.from({ length: 20 }, () => two!.get('none')));
    const after = two!.coalescer.stats();
    expect(after.commands - before.commands).toBe(20);
    expect(after.batches - before.batches).toBe(1);
  });

  it.each(HOSTS)('coalesces a client of $name in place', async (host) => {
    const client = host.create(redisUrl());
    const app = createApp();
    await app.register(fastifyCoalesce, { client, coalesce: { maxBatchSize: 7 } });
    expect(app.redis).toBe(client);
    expect(app.redis.coalescer.options.maxBatchSize).toBe(7);
    expect(await app.redis.echo('☕')).toBe('☕');
  });

  it('makes a plain client with `coalesce: false`, and leaves one that it is given plain', async () => {
    const app = createApp();
    const client = ioredis6.create(redisUrl());
    await app.register(fastifyCoalesce, { url: redisUrl(), namespace: 'made', coalesce: false });
    await app.register(fastifyCoalesce, { client, namespace: 'given', coalesce: false });
    for (const redis of [app.redis.made!, app.redis.given!]) {
      expect(await redis.echo('plain')).toBe('plain');
      expect(redis.coalescer.enabled).toBe(false);
      expect(redis.coalescer.stats().commands).toBe(0);
    }
    expect(app.redis.given).toBe(client);
  });

  it('does not change a client whose registration is refused', async () => {
    const app = createApp();
    const client = ioredis6.create(redisUrl());
    app.register(fastifyCoalesce, { url: redisUrl() }).register(fastifyCoalesce, { client });
    await expect(app.ready()).rejects.toThrow('@fastify/redis has already been registered');
    expect(client).not.toHaveProperty('coalescer');
  });

  it('names a wrong option before it connects', async () => {
    const server = await ownServer();
    const app = createApp();
    app.register(fastifyCoalesce, { url: server.url, coalesce: { maxBatchSize: 0 } });
    await expect(app.ready()).rejects.toMatchObject({
      code: 'COALESCE_ERR_OPTION',
      message:
        'ioredis-coalesce: option coalesce.maxBatchSize must be a positive integer of at most 1000000, got 0 (number)',
    });
    expect(await connections(server.url)).toBe(0);
  });

  it.each([
    [{ client: { get: () => {} } }, 'coalesce() expects an ioredis or iovalkey client', 'COALESCE_ERR_CLIENT'],
    [
      { nodes: 'redis://127.0.0.1' },
      'options.nodes must be an array of Cluster nodes to start from, got "redis://127.0.0.1"',
      'COALESCE_ERR_OPTION',
    ],
    [
      { nodes: [], url: 'redis://127.0.0.1' },
      'the options "url" and "nodes" exclude each other',
      'COALESCE_ERR_OPTION',
    ],
  ])('names what is wrong with %o, with a code', async (options, message, code) => {
    const app = createApp();
    app.register(fastifyCoalesce as unknown as AnyPlugin, options);
    await expect(app.ready()).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it('starts a Cluster from its nodes, coalesced, and closes it with the application', async () => {
    const server = await clusterOfOne();
    const app = createApp();
    await app.register(fastifyCoalesce, {
      nodes: [{ host: server.host, port: server.port }],
      redisOptions: { connectionName: 'of-the-app' },
      coalesce: { maxBatchSize: 7, schedule: 'immediate' },
    });
    const cluster = app.redis;
    expect(cluster.isCluster).toBe(true);
    expect(cluster.coalescer.options.maxBatchSize).toBe(7);
    const keys = Array.from({ length: 50 }, (_, index) => `k${index}`);
    await Promise.all(keys.map((key) => cluster.set(key, key)));
    expect(await Promise.all(keys.map((key) => cluster.get(key)))).toEqual(keys);
    const { commands, batches } = cluster.coalescer.stats();
    expect(commands).toBeGreaterThanOrEqual(100);
    expect(batches).toBeLessThan(commands / 2);
    await app.close();
    await until(() => (cluster.status as string) === 'end', 'the Cluster ends with the application');
  });
});

function createApp(): FastifyInstance {
  const app = fastify();
  onTestFinished(() => app.close().catch(() => {}));
  return app;
}

async function plainGet(key: string): Promise<string | null> {
  return ioredis6.create(redisUrl()).get(key);
}

async function ownServer(args: readonly string[] = []) {
  const server = await startServer({ args });
  onTestFinished(() => server.stop());
  return server;
}

/** Connections to a server, without the one that asks. */
async function connections(url: string): Promise<number> {
  const list = (await ioredis6.create(url).client('LIST')) as string;
  return list.trim().split('\n').length - 1;
}

async function clusterOfOne() {
  const server = await ownServer(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
  const client = ioredis6.create(server.url);
  if (client.status !== 'ready') await once(client, 'ready');
  await client.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  let info = '';
  while (!info.includes('cluster_state:ok')) info = (await client.call('CLUSTER', 'INFO')) as string;
  return server;
}
