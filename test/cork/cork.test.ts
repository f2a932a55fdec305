/** The cork of a client: of any release, since it knows only `stream`, `nodes()` and two events. */
import { execFile } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { type CorkFlushReason, cork } from 'ioredis-coalesce/cork';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bundled } from '../helpers/bundled.js';
import { type CoalescedClient, HOSTS, ioredis6, ready } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, startServer, uniquePrefix } from '../helpers/redis.js';
import { spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('cork');
const NAMES = Array.from({ length: 100 }, (_, index) => `${prefix}${index}`);

describe.each(HOSTS)('$name', (host) => {
  it('sends a turn in one write, or a few in a slow one, and each caller gets its reply', async () => {
    const client = await ready(host.create(redisUrl()));
    cork(client);
    const spy = spyOnSocket(client);
    const set = NAMES.map((name) => client.set(name, name));
    const got = NAMES.map((name) => client.get(name));
    const pipeline = client
      .pipeline()
      .strlen(NAMES[0] as string)
      .exec();
    expect(await Promise.all(set)).toEqual(NAMES.map(() => 'OK'));
    expect(await Promise.all(got)).toEqual(NAMES);
    expect(await pipeline).toEqual([[null, (NAMES[0] as string).length]]);
    // 201 writes of a plain client.
    expect(spy.writes.length).toBeLessThan(100);
    await client.unlink(NAMES);
  });

  it('holds for the next connection, and for a client that is not connected yet', async () => {
    const proxy = await startProxy(redisUrl());
    const client = host.create(proxy.url, { retryStrategy: () => 5, autoResendUnfulfilledCommands: true });
    cork(client);
    expect(await client.echo('first')).toBe('first');
    client.stream.destroy();
    await once(client, 'ready');
    const spy = spyOnSocket(client);
    await Promise.all([client.echo('c'), client.echo('d')]);
    expect(spy.writes.filter((bytes) => bytes.includes('echo')).length).toBeLessThan(4);
  });

  it('put on while the client connects, it hears the replies: a lone command leaves at once', async () => {
    const client = host.create(redisUrl());
    while (client.stream === undefined) await new Promise(process.nextTick);
    expect(client.stream.listenerCount('data')).toBe(0);
    const reasons: CorkFlushReason[] = [];
    const polls = { polledTurns: 0, polledTurnsAnswered: 0 };
    cork(client, {}, { polls, corked() {}, flushed: (_, reason) => void reasons.push(reason) });
    await ready(client);
    await client.echo('first');
    reasons.length = 0;
    await client.echo('alone');
    expect(reasons).toEqual(['idle']);
  });

  it('what was written before disconnect() is stored', async () => {
    const client = await ready(host.create(redisUrl()));
    cork(client);
    const name = `${prefix}last`;
    client.set(name, 'stored').catch(() => {});
    client.disconnect();
    const other = host.create(redisUrl());
    expect(await other.getdel(name)).toBe('stored');
  });

  it('subscribers get their messages', async () => {
    const [subscriber, publisher] = [await ready(host.create(redisUrl())), await ready(host.create(redisUrl()))];
    for (const client of [subscriber, publisher]) cork(client);
    const message = new Promise((resolve) => subscriber.once('message', (_, text) => resolve(text)));
    expect(await subscriber.subscribe(`${prefix}channel`)).toBe(1);
    expect(await publisher.publish(`${prefix}channel`, 'text')).toBe(1);
    expect(await message).toBe('text');
  });
});

describe('the handle', () => {
  it('undo() leaves the client as it was found, amid a turn, too', async () => {
    const client = await ready(ioredis6.create(redisUrl()));
    const before = [Reflect.ownKeys(client), client.listenerCount('connect'), client.stream.listenerCount('data')];
    const corked = cork(client);
    const spy = spyOnSocket(client);
    const early = client.echo('early');
    expect(spy.writes).toHaveLength(0);
    corked.undo();
    expect(spy.writes).toHaveLength(1);
    expect([Reflect.ownKeys(client), client.listenerCount('connect'), client.stream.listenerCount('data')]).toEqual(
      before,
    );
    expect(await Promise.all([early, client.echo('late')])).toEqual(['early', 'late']);
    expect(spy.writes).toHaveLength(2);
  });

  it('flush() sends at once; a client has one cork, however often it is corked', async () => {
    const client = await ready(ioredis6.create(redisUrl()));
    const corked = cork(client);
    expect(cork(client, { schedule: 'tick' })).toBe(corked);
    const spy = spyOnSocket(client);
    const reply = client.echo('a');
    corked.flush();
    expect(spy.writes).toHaveLength(1);
    expect(await reply).toBe('a');
  });

  it('after undo() in a listener of `connect` the new connection is plain', async () => {
    const client = ioredis6.create(redisUrl(), { lazyConnect: true });
    client.on('connect', () => corked.undo());
    const corked = cork(client);
    await client.connect();
    expect(Object.hasOwn(client.stream, 'write')).toBe(false);
  });

  it.each([undefined, null, 'client', {}])('is not available for %o', (value) => {
    const message = expect.stringContaining('cork() expects a client or a Cluster, got ');
    expect(() => cork(value as never)).toThrow(expect.objectContaining({ code: 'COALESCE_ERR_CLIENT', message }));
  });

  it('a wrapper that passes `on` to its client is corked', async () => {
    const client = ioredis6.create(redisUrl());
    class Wrapper extends EventEmitter {
      get stream() {
        return client.stream;
      }
      override on(event: string, listener: () => void): this {
        client.on(event, listener);
        return this;
      }
    }
    cork(new Wrapper());
    await ready(client);
    const spy = spyOnSocket(client);
    await Promise.all([client.echo('a'), client.echo('b'), client.echo('c')]);
    expect(spy.writes.length).toBeLessThan(3);
  });

  it('a frozen client is corked, and a value that only looks like a client does no harm', async () => {
    const client = await ready(ioredis6.create(redisUrl()));
    const looksLikeOne = Object.assign(new EventEmitter(), { stream: client.stream });
    cork(Object.preventExtensions(looksLikeOne));
    const spy = spyOnSocket(client);
    await Promise.all([client.echo('a'), client.echo('b')]);
    expect(spy.writes).toHaveLength(1);
  });
});

describe('coalesce()', () => {
  it('takes the cork off, and gives it to a client that was asked to have no fast path', async () => {
    const client = await ready(ioredis6.create(redisUrl()));
    cork(client);
    const coalesced = coalesce(client);
    await coalesced.get(prefix);
    await coalesced.get(prefix);
    expect(coalesced.coalescer.stats()).toMatchObject({ mode: 'fast', fallbacks: { patched: 0 } });
    expect(coalesced.coalescer.stats().fastCommands).toBeGreaterThan(0);
    coalesced.coalescer.detach();
    expect(coalesced.coalescer.stats().mode).toBe('plain');
    coalesce(client, { fastPath: false });
    expect(coalesced.coalescer.stats()).toMatchObject({ mode: 'cork', commands: 0 });
  });

  it('counts what the cork writes, and leaves the client plain after detach()', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { fastPath: false }));
    const { coalescer } = client;
    const before = coalescer.stats();
    await Promise.all([client.echo('a'), client.echo('b'), client.pipeline().echo('c').echo('d').exec()]);
    const { commands, batches, bytesWritten, fastCommands, flushReasons, enabled } = {
      ...coalescer.stats(),
      ...coalescer,
    };
    expect({ commands: commands - before.commands, fastCommands, enabled }).toEqual({
      commands: 3,
      fastCommands: 0,
      enabled: true,
    });
    expect(batches).toBe(flushReasons.schedule + flushReasons.idle + flushReasons.age);
    expect(bytesWritten - before.bytesWritten).toBe('*2\r\n$4\r\necho\r\n$1\r\na\r\n'.length * 4);
    coalescer.detach();
    expect([coalescer.enabled, coalescer.stats().mode, coalescer.stats().commands]).toEqual([false, 'plain', commands]);
    expect(Object.hasOwn(client, 'duplicate')).toBe(false);
    expect(await client.echo('plain')).toBe('plain');
    expect(coalesce(client).coalescer.options.fastPath).toBe(false);
  });

  it('gives copies of a corked client the cork, too, but not the one that monitors', async () => {
    // Host: a plain monitor of ioredis 6 is upset by lines of others that come too early.
    const server = await startServer();
    onTestFinished(() => server.stop());
    const client = await ready(ioredis6.createCoalesced(server.url, {}, { fastPath: false }));
    const copy = await ready(client.duplicate() as CoalescedClient);
    expect(copy.coalescer.stats().mode).toBe('cork');
    const monitor = await client.monitor();
    expect((monitor as unknown as Partial<CoalescedClient>).coalescer).toBe(undefined);
    for (const made of [copy, monitor]) made.disconnect();
  });

  it('a view of a corked client has its own timeout', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { fastPath: false }));
    const view = client.coalescer.withOptions({ timeout: 5 });
    await expect(view.blpop(`${prefix}none`, 1)).rejects.toThrow('Command timed out');
  });

  it.each([
    { cache: true },
    { shareReads: true },
    { fuseReads: true },
    { maxInFlight: 5 },
    { maxPending: 5 },
    { maxBatchSize: 5 },
  ])('refuses %o with fastPath: false', (options) => {
    const [name] = Object.keys(options);
    expect(() => ioredis6.createCoalesced(redisUrl(), { lazyConnect: true }, { fastPath: false, ...options })).toThrow(
      `options.${name} needs the fast path, which options.fastPath: false switches off`,
    );
  });
});

it('IOREDIS_COALESCE=cork gives every client the cork', async () => {
  const program = await bundled(fileURLToPath(new URL('programs/modes.ts', import.meta.url)));
  const env = { ...process.env, IOREDIS_COALESCE: 'cork' };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, redisUrl()], { env });
  expect(stdout).toBe('cork cork\n');
  expect(stderr).toContain('IOREDIS_COALESCE is cork; meanwhile');
  expect(stderr).toContain('ignored: maxPending');
});
