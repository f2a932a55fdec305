import { CODES, coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cold } from '../helpers/cold.js';
import { type Client, type CoalescedClient, HOSTS, ioredis6, outcomes, ready, until } from '../helpers/hosts.js';
import { redisUrl, startServer, uniquePrefix } from '../helpers/redis.js';
import { refused } from '../helpers/refused.js';
import { expectWarnings } from '../helpers/warnings.js';
import { instrument } from '../observability/helpers/open-telemetry.js';

const prefix = uniquePrefix('pending');
const REFUSED = { code: CODES.PENDING };

const gets = (client: CoalescedClient, count: number) =>
  Array.from({ length: count }, (_, index) => client.get(`${prefix}${index}`));

/** Calls the defined script of this name. */
const one = (client: unknown, ...args: unknown[]) =>
  (client as { one(...args: unknown[]): Promise<unknown> }).one(...args);

/** A server that does not answer while it is stopped. */
async function stoppableServer(): Promise<{ url: string; stop(): void; go(): void; kill(): Promise<void> }> {
  const server = await startServer();
  const go = () => process.kill(server.pid, 'SIGCONT');
  onTestFinished(async () => {
    go();
    await server.stop();
  });
  return { url: server.url, stop: () => process.kill(server.pid, 'SIGSTOP'), go, kill: () => server.kill() };
}

describe.each(HOSTS)('maxPending, $name', (host) => {
  it('the call that would exceed it is rejected at once, and calls are taken again when there is room', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxPending: 10 }));
    const calls = gets(client, 25);
    await expect(calls[10]).rejects.toMatchObject({
      ...REFUSED,
      message: 'ioredis-coalesce: a call of 1 command, with 10 awaiting their reply, exceeds maxPending: 10',
    });
    expect(client.commandQueue.length).toBe(10);
    expect(await refused(calls)).toEqual({ answered: 10, refused: 15 });
    expect(await refused(gets(client, 10))).toEqual({ answered: 10, refused: 0 });
    expect(client.coalescer.stats().refusedCalls).toBe(15);
    const pipeline = client.pipeline(Array.from({ length: 20 }, () => ['get', 'a']));
    const tooLong = 'ioredis-coalesce: a call of 20 commands, with 0 awaiting their reply, exceeds maxPending: 10';
    await expect(pipeline.exec()).rejects.toMatchObject({ ...REFUSED, message: tooLong });
    const transaction = client.multi(Array.from({ length: 9 }, () => ['get', 'a']));
    const tooLongToo = expect.stringContaining('a call of 11 commands, with 0 ');
    await expect(transaction.exec()).rejects.toMatchObject({ ...REFUSED, message: tooLongToo });
  });

  it.each([
    ['commands that the host sends', (client: CoalescedClient) => cold(client, 'ECHO', 'a')],
    ['call()', (client: CoalescedClient) => client.call('echo', 'a')],
    ['commands without a fast form', (client: CoalescedClient) => client.time()],
    ['a view', (client: CoalescedClient) => client.coalescer.withOptions({ timeout: 5_000 }).get('a')],
    ['a view, of a command without a fast form', (client: CoalescedClient) => client.coalescer.withOptions({}).time()],
    ['a defined script', one],
    ['a script with an argument that the host encodes', (client: CoalescedClient) => one(client, new Date())],
    [
      'a callback',
      (client: CoalescedClient) =>
        new Promise((resolve, reject) => {
          client.get('a', (error, value) => (error ? reject(error) : resolve(value)));
        }),
    ],
  ])('counts and refuses %s', async (_, call) => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxPending: 3 }));
    client.defineCommand('one', { numberOfKeys: 0, lua: 'return 1' });
    expect(await refused([call(client), call(client), call(client), call(client)])).toEqual({
      answered: 3,
      refused: 1,
    });
    expect(await refused([...gets(client, 3), call(client)])).toEqual({ answered: 3, refused: 1 });
    expect(await refused([call(client), ...gets(client, 3)])).toEqual({ answered: 3, refused: 1 });
  });

  it('a script that was refused counts as not loaded', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxPending: 1 }));
    const text = `${prefix}${host.name}`;
    client.defineCommand('two', { numberOfKeys: 0, lua: `return '${text}'` });
    const two = () => (client as never as { two(): Promise<unknown> }).two();
    expect(await refused([client.get('a'), two()])).toEqual({ answered: 1, refused: 1 });
    const { commands } = client.coalescer.stats();
    expect(await two()).toBe(text);
    // EVAL; otherwise EVALSHA, which the server refuses, and EVAL.
    expect(client.coalescer.stats().commands - commands).toBe(1);
  });

  it.each([
    ['', {}, one],
    [
      ' in a pipeline',
      {},
      async (client: CoalescedClient) => {
        const pipeline = client.pipeline();
        void one(pipeline);
        return (await pipeline.exec())?.[0]?.[1];
      },
    ],
  ])('a script%s that is sent again after NOSCRIPT is not refused', async (_, options, call) => {
    // Its own, for SCRIPT FLUSH.
    const server = await stoppableServer();
    const client = await ready(host.createCoalesced(server.url, {}, { maxPending: 2, ...options }));
    client.defineCommand('one', { numberOfKeys: 0, lua: 'return 1' });
    await one(client);
    await client.script('FLUSH');
    let full: Promise<unknown>[] = [];
    const before = client.get('a').then(() => {
      full = gets(client, 2);
    });
    expect(await Promise.all([call(client), before])).toEqual([1, undefined]);
    expect(await refused([...full, ...gets(client, 1)])).toEqual({ answered: 3, refused: 0 });
  });

  it.each([
    ['pipeline', (client: CoalescedClient) => client.pipeline().incr(`${prefix}p`).incr(`${prefix}p`)],
    [
      'pipeline that the host sends',
      (client: CoalescedClient) => client.pipeline().incr(`${prefix}p`).time().select(0),
    ],
    ['transaction', (client: CoalescedClient) => client.multi().incr(`${prefix}p`)],
    ['batch', (client: CoalescedClient) => client.multi([['incr', `${prefix}p`]])],
  ])('a %s is refused whole: exec() rejects, and can be called again', async (_, make) => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxPending: 4 }));
    await client.del(`${prefix}p`);
    const waiting = gets(client, 3);
    const made = make(client);
    await expect(made.exec()).rejects.toMatchObject(REFUSED);
    let told: unknown;
    made
      .exec((error) => {
        told = error;
      })
      .catch(() => {});
    await Promise.all(waiting);
    expect(told).toMatchObject(REFUSED);
    expect(await client.get(`${prefix}p`)).toBe(null);
    const results = await made.exec();
    expect(results?.[0]).toEqual([null, 1]);
    expect(client.coalescer.stats().refusedCalls).toBe(2);
  });

  it('a transaction is taken whole, MULTI included: without it, what follows would run outside one', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxPending: 2 }));
    const begun = [client.get('a'), client.multi({ pipeline: false }), client.time(), client.set(`${prefix}t`, 1)];
    expect(await refused([...begun, client.exec()])).toEqual({ answered: 5, refused: 0 });
    const full = gets(client, 3);
    const late = [client.call('multi'), client.set(`${prefix}t`, 2)];
    expect(await refused([...full, ...late])).toEqual({ answered: 4, refused: 1 });
    expect(await client.get(`${prefix}t`)).toBe('QUEUED');
    const last = [client.time(), client.time(), client.exec(), client.time()];
    expect(await refused(last)).toEqual({ answered: 3, refused: 1 });
    expect(await client.get(`${prefix}t`)).toBe('2');
  });

  it('a transaction that waits because the stream ends is taken whole, while calls before it are answered', async () => {
    const server = await stoppableServer();
    const client = await ready(host.createCoalesced(server.url, { maxRetriesPerRequest: null }, { maxPending: 3 }));
    server.stop();
    const before = gets(client, 2);
    // Host: its status stays `ready` until the stream is closed.
    client.disconnect(true);
    const calls = [client.multi({ pipeline: false }), client.set('whole', '1'), client.incr('whole'), client.exec()];
    server.go();
    expect(await refused([...before, ...calls])).toEqual({ answered: 6, refused: 0 });
    expect(await client.get('whole')).toBe('2');
  });

  it('a transaction whose commands an asynchronous layer holds back is taken whole', async () => {
    const plain = await ready(host.create(redisUrl()));
    const { sendCommand } = plain;
    const held: (() => void)[] = [];
    plain.sendCommand = function (this: unknown, ...args: Parameters<typeof sendCommand>) {
      held.push(() => void sendCommand.apply(plain, args));
      return args[0].promise as Promise<unknown>;
    } as typeof sendCommand;
    const client = coalesce(plain, { maxPending: 2 });
    const calls: Promise<unknown>[] = [...gets(client, 2), client.multi({ pipeline: false })];
    for (const send of held.splice(0, 2)) send();
    calls.push(client.set(`${prefix}held`, '1'));
    for (const send of held.splice(0)) send();
    calls.push(client.exec());
    for (const send of held.splice(0)) send();
    expect(await refused(calls)).toEqual({ answered: 5, refused: 0 });
  });

  it('a command name that is not text fails as on a plain client', async () => {
    const outcome = (client: Client, name: unknown) => outcomes([(async () => client.call(name as string))()]);
    const plain = await ready(host.create(redisUrl()));
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxPending: 9 }));
    for (const name of [123, null]) expect(await outcome(client, name)).toEqual(await outcome(plain, name));
  });

  it('after a transaction whose MULTI was rejected, calls are refused again', async () => {
    const server = await stoppableServer();
    const options = { retryStrategy: null, disconnectTimeout: 50 };
    const client = await ready(host.createCoalesced(server.url, options, { maxPending: 2 }));
    server.stop();
    const multi = client.multi({ pipeline: false });
    client.disconnect();
    await expect(multi).rejects.toThrow('Connection is closed');
    server.go();
    await client.connect();
    expect(await refused(gets(client, 3))).toEqual({ answered: 2, refused: 1 });
  });

  it('counts commands that wait for a connection, and a transaction among them is complete', async () => {
    const client = host.createCoalesced(redisUrl(), { lazyConnect: true }, { maxPending: 3 });
    const calls = [client.get('a'), client.get('a'), client.multi({ pipeline: false }), client.set(`${prefix}o`, 1)];
    const more = [client.exec(), client.get('a'), client.pipeline().get('a').exec()];
    expect(await refused([...calls, ...more])).toEqual({ answered: 5, refused: 2 });
    expect(await refused(gets(client, 3))).toEqual({ answered: 3, refused: 0 });
  });

  it('while Redis is stopped, calls are refused, and what was accepted is answered when it goes on', async () => {
    const server = await stoppableServer();
    const client = await ready(host.createCoalesced(server.url, {}, { maxPending: 50, maxInFlight: 10 }));
    server.stop();
    const first = gets(client, 100);
    await expect(first[99]).rejects.toMatchObject(REFUSED);
    expect(client.coalescer.stats()).toMatchObject({ inFlight: 50, queued: 40, refusedCalls: 50 });
    server.go();
    expect(await refused(first)).toEqual({ answered: 50, refused: 50 });
    expect(await refused(gets(client, 50))).toEqual({ answered: 50, refused: 0 });
  });

  it('a new connection: its handshake, subscriptions and what is sent again are not refused', async () => {
    const server = await stoppableServer();
    const options = {
      db: 2,
      connectionName: 'pending',
      autoResendUnfulfilledCommands: true,
      maxRetriesPerRequest: null,
    };
    const client = await ready(host.createCoalesced(server.url, options, { maxPending: 4 }));
    const other = await ready(host.create(server.url));
    await client.select(1);
    server.stop();
    // The host selects the database again before it sends these again, so there is one more than the limit.
    const sent = [cold(client, 'ECHO', 'a'), client.set('in', '1'), client.time(), client.pipeline().get('in').exec()];
    const kill = other.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    server.go();
    await kill;
    await until(() => client.status !== 'ready', 'the connection is lost');
    const offline = gets(client, 5);
    expect((await refused(offline)).refused).toBeGreaterThanOrEqual(0);
    const settled = await Promise.allSettled(sent);
    expect(settled.map(({ status }) => status)).toEqual(Array(4).fill('fulfilled'));
    expect(await client.get('in')).toBe('1');
    expect((await other.call('CLIENT', 'LIST')) as string).toContain('name=pending');
  });

  it('calls before coalesce() are not refused, waiting for a connection or sent', async () => {
    const early = host.create(redisUrl());
    const waiting = Array.from({ length: 9 }, (_, index) => early.get(`${prefix}${index}`));
    coalesce(early, { maxPending: 5 });
    expect(await refused(waiting)).toEqual({ answered: 9, refused: 0 });
    const server = await stoppableServer();
    const client = await ready(host.create(server.url, { maxRetriesPerRequest: null }));
    server.stop();
    const sent = Array.from({ length: 9 }, (_, index) => client.get(`${prefix}${index}`));
    coalesce(client, { maxPending: 5 });
    client.stream.destroy();
    server.go();
    expect(await refused(sent)).toEqual({ answered: 9, refused: 0 });
  });

  it('the rest of a transaction whose MULTI will be sent again is taken', async () => {
    const server = await stoppableServer();
    const options = { maxRetriesPerRequest: null, disconnectTimeout: 50 };
    const client = await ready(host.createCoalesced(server.url, options, { maxPending: 2 }));
    server.stop();
    const calls: Promise<unknown>[] = [client.multi({ pipeline: false })];
    client.disconnect(true);
    await until(() => client.status !== 'ready', 'the connection is lost');
    calls.push(client.set('again', '1'), client.get('again'), client.exec(), client.get('again'));
    server.go();
    expect(await refused(calls)).toEqual({ answered: 4, refused: 1 });
    expect(await client.get('again')).toBe('1');
  });

  it('with enableAutoPipelining, calls that do not fit are refused one by one', async () => {
    expectWarnings(CODES.AUTO_PIPELINING);
    const options = { enableAutoPipelining: true, autoPipeliningIgnoredCommands: ['blpop'] };
    const client = await ready(host.createCoalesced(redisUrl(), options, { maxPending: 3 }));
    const other = await ready(host.create(redisUrl()));
    const numbers = Array.from({ length: 8 }, (_, index) => `${index}`);
    const settled = await Promise.allSettled(numbers.map((number) => client.echo(number)));
    expect(settled.slice(0, 3).map((each) => (each as PromiseFulfilledResult<unknown>).value)).toEqual(['0', '1', '2']);
    for (const each of settled.slice(3)) expect(each).toMatchObject({ reason: REFUSED });
    const blocked = Array.from({ length: 3 }, () => client.blpop(`${prefix}list`, 0));
    expect(await refused(gets(client, 2))).toEqual({ answered: 0, refused: 2 });
    await other.rpush(`${prefix}list`, 'a', 'b', 'c');
    await Promise.all(blocked);
    expect(client.coalescer.stats().refusedCalls).toBe(7);
    expect(await client.echo('late')).toBe('late');
  });

  it('comes before a sendCommand that the client already had, which is its own again after detach()', async () => {
    const plain = await ready(host.create(redisUrl()));
    const { sendCommand } = plain;
    let sent = 0;
    const own = function (this: unknown, ...args: Parameters<typeof sendCommand>) {
      sent += 1;
      return sendCommand.apply(this as typeof plain, args);
    };
    plain.sendCommand = own;
    const client = coalesce(plain, { maxPending: 2 });
    expect(await refused([...gets(client, 3), client.time()])).toEqual({ answered: 2, refused: 2 });
    expect(sent).toBe(2);
    client.coalescer.detach();
    expect(client.sendCommand).toBe(own);
    expect(await refused(gets(client, 3))).toEqual({ answered: 3, refused: 0 });
  });

  it('quit() and disconnect() work while calls are refused', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxPending: 2 }));
    const calls = [...gets(client, 3), client.quit()];
    expect(await refused(calls)).toEqual({ answered: 3, refused: 1 });
    const server = await stoppableServer();
    const second = await ready(host.createCoalesced(server.url, { disconnectTimeout: 50 }, { maxPending: 2 }));
    server.stop();
    const stuck = gets(second, 3);
    await expect(stuck[2]).rejects.toMatchObject(REFUSED);
    second.disconnect();
    const settled = await Promise.allSettled(stuck);
    expect(settled.map((each) => String((each as PromiseRejectedResult).reason))).toEqual([
      ...Array(2).fill('Error: Connection is closed.'),
      expect.stringContaining('maxPending'),
    ]);
  });
});

describe('maxPending', () => {
  it('counts reads that share a reply as one, and answers reads from memory while it is full', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { maxPending: 4, shareReads: true }));
    const shared = Array.from({ length: 6 }, () => client.get(prefix));
    expect(await refused([...shared, ...gets(client, 4)])).toEqual({ answered: 9, refused: 1 });
    const cached = await ready(ioredis6.createCoalesced(redisUrl(), {}, { maxPending: 2, cache: true }));
    const key = `${prefix}cached`;
    for (let hits = 0; hits === 0; hits = cached.coalescer.stats().cache?.hits ?? 0) await cached.get(key);
    const full = [cached.echo('a'), cached.echo('a'), cached.get(key), cached.echo('a')];
    expect((await Promise.allSettled(full)).map(({ status }) => status)).toEqual([
      ...Array(3).fill('fulfilled'),
      'rejected',
    ]);
  });

  it('a traced client refuses the same calls, and stays fast', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { maxPending: 3 }));
    await client.echo('fast');
    expect(await refused(gets(client, 5))).toEqual({ answered: 3, refused: 2 });
    expect(client.coalescer.stats().fastCommands).toBeGreaterThanOrEqual(3);
    const { restore } = instrument('ioredis');
    onTestFinished(restore);
    expect(await refused(gets(client, 5))).toEqual({ answered: 3, refused: 2 });
    expect(client.coalescer.stats().observedCommands).toBeGreaterThan(0);
  });

  it('leaves other clients and the class as they are, and goes with detach()', async () => {
    const plain = ioredis6.create(redisUrl());
    const unbound = ioredis6.createCoalesced(redisUrl());
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { maxPending: 1 }));
    expect(unbound.sendCommand).toBe(plain.sendCommand);
    expect(client.sendCommand).not.toBe(plain.sendCommand);
    const pipeline = client.pipeline().get('a').get('b').get('c');
    client.coalescer.detach();
    expect(client.sendCommand).toBe(plain.sendCommand);
    expect(await pipeline.exec()).toHaveLength(3);
    expect(await refused(gets(coalesce(client), 1))).toEqual({ answered: 1, refused: 0 });
    expect(client.coalescer.options.maxPending).toBe(1);
    expect(await refused(gets(client, 3))).toEqual({ answered: 1, refused: 2 });
  });
});
