import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectAs, createAs, expectAsPlain, KINDS } from '../helpers/beside.js';
import { cold } from '../helpers/cold.js';
import {
  type Client,
  HOSTS,
  type Host,
  ioredis6,
  outcomes,
  outcomesWithin,
  ready,
  sleep,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, startServer, uniquePrefix } from '../helpers/redis.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';

const prefix = uniquePrefix('lifecycle');
const run = promisify(execFile);

/** Waits until the server holds the value, since a client that ends does not tell when it was stored. */
async function expectStored(host: Host, key: string, value: string): Promise<void> {
  const admin = await ready(host.create(redisUrl()));
  await until(async () => (await admin.get(key)) === value, `${key} to be stored`);
  await admin.del(key);
}

const ENDINGS: Record<string, (client: Client) => unknown> = {
  'disconnect()': (client) => client.disconnect(),
  'disconnect(true)': (client) => client.disconnect(true),
  'quit()': (client) => client.quit().catch(() => {}),
  'end()': (client) => client.end(),
  'stream.end()': (client) => client.stream.end(),
  'stream.destroy()': (client) => client.stream.destroy(),
};

describe.each(HOSTS)('$name: a write and an end in one tick', (host) => {
  describe.each(KINDS)('%s', (kind) => {
    it.each(Object.keys(ENDINGS))('a set before %s is stored', async (ending) => {
      const client = await connectAs(kind, host, redisUrl());
      const keys = ['fast', 'cold', 'é', 'last'].map((name) => `${prefix}${kind}:${ending}:${name}`);
      void outcomes([
        client.set(keys[0] as string, '1'),
        cold(client, 'SET', keys[1] as string, '2'),
        client.set(keys[2] as string, '3€'),
        client.set(keys[3] as string, Buffer.from('4')),
      ]);
      ENDINGS[ending]?.(client);
      for (const [index, value] of ['1', '2', '3€', '4'].entries()) {
        await expectStored(host, keys[index] as string, value);
      }
    });
  });

  it('the backlog of maxInFlight is sent, too', async () => {
    const client = await connectAs('coalesced', host, redisUrl(), {}, { maxInFlight: 2 });
    const keys = Array.from({ length: 9 }, (_, index) => `${prefix}window:${index}`);
    void outcomes(keys.map((key, index) => (index % 3 === 1 ? cold(client, 'SET', key, 'v') : client.set(key, 'v'))));
    client.disconnect();
    for (const key of keys) await expectStored(host, key, 'v');
  });

  it.each(Object.keys(ENDINGS))('%s: callers get the same outcomes as with a plain client', async (ending) => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), { retryStrategy: null as never });
      const replies = [client.echo('a'), cold(client, 'ECHO', 'b'), client.echo('c')];
      ENDINGS[ending]?.(client);
      // Behind quit(), a plain client's writes race with the server's closing.
      if (ending !== 'quit()') replies.push(client.echo('behind the end'));
      return outcomesWithin(100, replies);
    });
  });

  it('commands issued before quit() are answered, those issued after it in the tick are rejected', async () => {
    const client = await connectAs('coalesced', host, redisUrl(), { retryStrategy: null as never });
    const replies = [client.echo('a'), cold(client, 'ECHO', 'b'), client.quit(), client.echo('c'), client.echo('d')];
    const [a, b, ok, ...behind] = await outcomes(replies);
    expect([a, b, ok]).toEqual([{ value: 'a' }, { value: 'b' }, { value: 'OK' }]);
    for (const one of behind) expect(one).toMatchObject({ error: expect.stringContaining('Connection is closed') });
  });
});

it.each(['', '.call'])('process.exit() in the same tick as a set: stores the value: redis%s', async (method) => {
  const key = `${prefix}exit${method}`;
  const index = new URL('../../src/index.ts', import.meta.url).href;
  const program = `
      import { Redis } from '${index}';
      const redis = new Redis(process.env.TEST_URL);
      redis.once('ready', () => {
        ${method === '' ? 'redis.set(' : "redis.call('SET', "}process.env.TEST_KEY, 'stored');
        process.exit(0);
      });`;
  await run(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
    env: { ...process.env, TEST_URL: redisUrl(), TEST_KEY: key },
  });
  await expectStored(ioredis6, key, 'stored');
});

describe.each(HOSTS)('$name: coalesce()', (host) => {
  it('a client is coalesced before it is ready', async () => {
    const client = host.createCoalesced(redisUrl());
    expect(client.status).toBe('connecting');
    expect(await Promise.all([client.echo('a'), cold(client, 'ECHO', 'b'), client.echo('c')])).toEqual(['a', 'b', 'c']);
    expect(await client.echo('fast')).toBe('fast');
    expect(client.coalescer.stats().fastCommands).toBe(1);
  });

  it('a lazy client is coalesced, and the first command connects it', async () => {
    const client = host.createCoalesced(redisUrl(), { lazyConnect: true });
    expect(client.status).toBe('wait');
    expect(await client.echo('first')).toBe('first');
    expect(await client.echo('fast')).toBe('fast');
    expect(client.coalescer.stats().fastCommands).toBe(1);
  });

  it('a client is coalesced during its handshake', async () => {
    const client = host.create(redisUrl());
    await new Promise((resolve) => client.once('connect', resolve));
    const coalesced = coalesce(client);
    expect(await coalesced.echo('first')).toBe('first');
    expect(await coalesced.echo('fast')).toBe('fast');
    expect(coalesced.coalescer.stats().fastCommands).toBeGreaterThan(0);
  });

  it('a client is coalesced with commands in flight', async () => {
    const client = await ready(host.create(redisUrl()));
    const before = [client.echo('1'), client.echo('2'), client.pipeline().echo('3').exec()];
    const coalesced = coalesce(client);
    const behind = [coalesced.echo('4'), cold(coalesced, 'ECHO', '5')];
    expect(await Promise.all([...before, ...behind])).toEqual(['1', '2', [[null, '3']], '4', '5']);
    expect(await coalesced.echo('6')).toBe('6');
    expect(coalesced.coalescer.stats().fastCommands).toBeGreaterThan(0);
  });

  it('a client is coalesced when it has received a partial reply', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.create(proxy.url));
    proxy.cutRepliesInto(3);
    const text = '\r\n$3\r\nfoo\r\n:1\r\n'.repeat(40);
    const before = [client.echo(text), client.echo('2')];
    await sleep(3);
    const coalesced = coalesce(client);
    expect(await Promise.all([...before, coalesced.echo('3')])).toEqual([text, '2', '3']);
    expect(await Promise.all([coalesced.echo('4'), coalesced.echo('5')])).toEqual(['4', '5']);
  });

  it('a client is coalesced after its connection was lost', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.create(proxy.url, { retryStrategy: () => 30 }));
    proxy.reset();
    await until(() => client.status === 'reconnecting', 'the lost connection to be noticed');
    const coalesced = coalesce(client);
    expect(await coalesced.echo('queued')).toBe('queued');
    expect(await coalesced.echo('fast')).toBe('fast');
    expect(coalesced.coalescer.stats().fastCommands).toBe(1);
  });

  it('a client is coalesced after its end, and connects again', async () => {
    const client = await ready(host.create(redisUrl()));
    client.disconnect();
    await until(() => client.status === 'end', 'the end');
    const coalesced = coalesce(client);
    expect(await outcomes([coalesced.echo('ended')])).toEqual([
      { error: 'Error/Error: Connection is closed.', command: undefined },
    ]);
    await coalesced.connect();
    expect(await coalesced.echo('again')).toBe('again');
    expect(coalesced.coalescer.stats().fastCommands).toBe(1);
  });
});

describe('handshakes', () => {
  it('a server that refuses RESP3 is used with RESP2, as by a plain client', async () => {
    const script = (command: readonly string[]) => handshake(command) ?? bulk(command[1] ?? '');
    await expectAsPlain(async (kind) => {
      const server = await startScriptedServer(script);
      const client = createAs(kind, ioredis6, server.url, { protocol: 3 });
      const replies = [client.echo('a'), cold(client, 'ECHO', 'b'), client.echo('c')];
      return [await outcomes(replies), await outcomes([client.echo('d')])];
    });
  });

  it('every command is answered by a server that closes during the first handshakes, then accepts', async () => {
    const server = await startScriptedServer((command, connection) =>
      connection < 3 ? 'close' : (handshake(command) ?? bulk(command[1] ?? '')),
    );
    const client = createAs('coalesced', ioredis6, server.url, { protocol: 2, retryStrategy: () => 5 });
    expect(await Promise.all([client.echo('a'), cold(client, 'ECHO', 'b')])).toEqual(['a', 'b']);
    expect(await client.echo('c')).toBe('c');
  });

  it.each(HOSTS.map((host) => [host.name, host] as const))('AUTH failure: %s', async (_, host) => {
    const server = await startServer({ args: ['--requirepass', 'right'] });
    onTestFinished(() => server.stop());
    await expectAsPlain(async (kind) => {
      const client = createAs(kind, host, server.url, { password: 'wrong', retryStrategy: null as never });
      const errors: string[] = [];
      client.on('error', (error: Error) => errors.push(error.message));
      const settled = await outcomesWithin(300, [client.get('k'), cold(client, 'ECHO', 'x')]);
      return [errors, settled, client.status];
    });
    const client = await connectAs('coalesced', host, server.url, { password: 'right' });
    expect(await client.echo('in')).toBe('in');
  });
});
