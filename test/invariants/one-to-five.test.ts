/** The invariants 1 to 5 of docs/design.md. */
import type { RedisOptions } from 'ioredis';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { cold } from '../helpers/cold.js';
import {
  type Client,
  type CoalescedClient,
  HOSTS,
  ioredis6,
  LONG_ENOUGH,
  outcomes,
  outcomesWithin,
  ready,
  sleep,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('invariants');

const create = (options: CoalesceOptions = {}, hostOptions: RedisOptions = {}): Promise<CoalescedClient> =>
  ready(ioredis6.createCoalesced(redisUrl(), hostOptions, options));

/** A command of every way to the wire, with a text of its own in it. */
const everyWay = (client: Client, tag: string): Promise<unknown>[] => [
  client.echo(`${tag} ascii`),
  client.echo(`${tag} ä`),
  client.echo(`${tag} ascii again`),
  cold(client, 'ECHO', `${tag} cold`),
  client.echo(`${tag} é€😀`),
  client.echo(`${tag} large `.repeat(800)),
  client.echo(Buffer.from(`${tag} buffer`)),
  client.pipeline().echo(`${tag} piped é`).echo(`${tag} piped`).exec(),
  client.echo(`${tag} behind é`),
  cold(client, 'ECHO', Buffer.from(`${tag} cold buffer`)),
  client.multi().echo(`${tag} in multi`).exec(),
  client.echo(`${tag} last`),
];

/** Commands as their RESP, in the order of the queue. */
function queued(client: Client): string {
  const commands = client.commandQueue
    .toArray()
    .map(({ command }) => command as unknown as { toWritable(): string | Buffer });
  return commands.map((command) => String(command.toWritable())).join('');
}

describe('Invariant 1: queue order is wire order', () => {
  it.each([
    ['by default', {}],
    ['with a write per turn', { schedule: 'immediate' }],
    ['with small batches', { maxBatchSize: 3 }],
    ['with batches of few bytes', { maxBatchBytes: 64 }],
    ['with the cork alone', { fastPath: false }],
    ['within a tick', { schedule: 'tick' }],
  ] as const)('the bytes on the wire are in the order of the queue: %s', async (_, options) => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(ioredis6.createCoalesced(proxy.url, {}, options));
    const spy = spyOnSocket(client);
    proxy.stall();
    const settled = outcomes([...everyWay(client, '1'), ...everyWay(client, '2')]);
    await sleep(5);
    const more = outcomes(everyWay(client, '3'));
    const queue = queued(client);
    expect(client.commandQueue.length).toBe(3 * 15);
    await sleep(10);
    expect(spy.text()).toBe(queue);
    proxy.resume();
    expect((await settled).concat(await more).every((outcome) => 'value' in (outcome as object))).toBe(true);
  });
});

describe('Invariant 2: pending bytes go first', () => {
  it('they are written before any write by the host on the same stream', async () => {
    const client = await create({ schedule: 'immediate' });
    const spy = spyOnSocket(client);
    await Promise.all([
      client.echo('1'),
      cold(client, 'ECHO', '2'),
      client.echo('é3'),
      client.pipeline().echo('4').exec(),
    ]);
    expect([...spy.text().matchAll(/\r\n(?:é)?(\d)\r\n/g)].map(([, digit]) => digit).join('')).toMatch(/1.*2.*3.*4/);
    expect(spy.writes).toHaveLength(1);
  });

  it('they are written before a write by the user on the stream', async () => {
    const client = await create();
    const spy = spyOnSocket(client);
    const reply = client.echo('first');
    // Its reply has no caller, and ends the connection: after the one in front of it.
    client.on('error', () => {});
    client.stream.write('*1\r\n$4\r\nPING\r\n');
    expect(await reply).toBe('first');
    expect(commandNames(spy.text()).slice(0, 2)).toEqual(['echo', 'ping']);
  });

  it.each(['end', 'destroy'] as const)('they are written before stream.%s(), and nothing after it', async (method) => {
    const flushes: (() => void)[] = [];
    let byHand = false;
    const schedule = (flush: () => void) => void (byHand ? flushes.push(flush) : setImmediate(flush));
    const client = await create({ schedule }, { retryStrategy: null as never });
    byHand = true;
    const { stream } = client;
    const errors: Error[] = [];
    stream.on('error', (error: Error) => errors.push(error));
    const spy = spyOnSocket(client);
    const settled = outcomes([client.echo('a'), cold(client, 'ECHO', 'b'), client.echo('é')]);
    expect(spy.writes).toHaveLength(0);
    if (method === 'end') stream.end();
    else stream.destroy();
    expect(spy.writes).toHaveLength(1);
    expect(commandNames(spy.text())).toEqual(['echo', 'echo', 'echo']);
    void outcomes([client.echo('behind')]);
    for (const flush of flushes) flush();
    client.coalescer.flush();
    await settled;
    for (const flush of flushes) flush();
    await sleep(5);
    expect(errors).toEqual([]);
    expect(spy.writes).toHaveLength(1);
  });
});

describe('Invariant 3: each caller gets the reply to its own command, or an error, exactly once', () => {
  it('a reply that matches no entry fails the connection, as on a plain client', async () => {
    // An error of the host's that is thrown out of its listener ends up here, as with a plain client.
    await expectAsPlain(async (kind) => {
      const server = await startScriptedServer((command, connection) => {
        if (handshake(command) !== undefined) return handshake(command);
        if (connection === 1) return `${bulk('own')}${bulk('own')}!malformed\r\n${bulk('too many')}`;
        return bulk(`resent ${command[1]}`);
      });
      const options: RedisOptions = { protocol: 2, retryStrategy: () => 10 };
      const client = await connectAs(kind, ioredis6, server.url, options);
      return outcomesWithin(150, [client.echo('a'), client.echo('b'), client.echo('c')]);
    });
  });

  it('gives each callback and promise its own reply, once, despite timeouts, late replies and reconnects', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(ioredis6.createCoalesced(proxy.url, { retryStrategy: () => 5 }, { maxInFlight: 20 }));
    const called = new Map<number, number>();
    const answered = new Set<number>();
    const wrong: unknown[] = [];
    const asked: Promise<unknown>[] = [];
    for (let n = 0; n < 600; n += 1) {
      const text = `text ${n}`;
      // Those with time enough are answered, however slow the machine is.
      client.options.commandTimeout = n % 11 === 0 ? LONG_ENOUGH : 40;
      const settle = (error: unknown, value?: unknown) => {
        called.set(n, (called.get(n) ?? 0) + 1);
        if (error) return;
        answered.add(n);
        if (value !== text) wrong.push([n, value]);
      };
      // A callback's promise settles, too.
      const reply =
        n % 3 === 0
          ? client.echo(text, settle)
          : (n % 5 === 0 ? cold(client, 'ECHO', text) : client.echo(text)).then((value) => settle(null, value), settle);
      asked.push(reply.catch(() => {}));
      // The handshake of the next connection has it, too.
      client.options.commandTimeout = LONG_ENOUGH;
      if (n % 60 === 30) proxy.stall();
      if (n % 60 === 50) {
        if (n % 120 === 50) await sleep(20);
        else await until(() => called.has(n - 1), 'a stalled call to be late');
        proxy.resume();
        // Late replies, and some in time, before it stalls again.
        await sleep(10);
      }
      if (n % 200 === 199) proxy.reset();
    }
    await Promise.all(asked);
    await sleep(20);
    expect(wrong).toEqual([]);
    expect([...called.values()].filter((count) => count !== 1)).toEqual([]);
    expect(called.size).toBe(600);
    expect([...called.keys()].filter((n) => n % 11 === 0 && !answered.has(n))).toEqual([]);
    expect(answered.size).toBeLessThan(600);
    // And it goes on.
    expect(await client.echo('last')).toBe('last');
  });
});

it.each([1, 2, 3, 4, 5, 7, 11, 13, 64])('Invariant 4: a split reply has one owner, in chunks of %i', async (size) => {
  const proxy = await startProxy(redisUrl());
  for (const host of HOSTS) {
    const client = await ready(host.createCoalesced(proxy.url));
    proxy.cutRepliesInto(size);
    const lookalike = '$3\r\nfoo\r\n*1\r\n:1\r\n-ERR no\r\n';
    const texts = Array.from({ length: 30 }, (_, n) => `${n} ${n % 3 === 0 ? lookalike : 'é'}`);
    const replies = texts.map((text, n) => (n % 4 === 3 ? cold(client, 'ECHO', text) : client.echo(text)));
    const errors = outcomes([client.call('NO'), client.incr(`${prefix}none`, 'too many' as never), client.echo('own')]);
    expect(await Promise.all(replies)).toEqual(texts);
    expect((await errors)[2]).toEqual({ value: 'own' });
    proxy.cutRepliesInto(Number.POSITIVE_INFINITY);
  }
});

describe.each(HOSTS)('Invariant 5: an entry can always be re-sent: $name', (host) => {
  const k = `${prefix}resent:${host.name}`;

  const program = (client: Client): Promise<unknown>[] => [
    client.set(k, 'é€😀'),
    client.get(k),
    client.getBuffer(k),
    client.set(k, Buffer.from([0, 255, 13, 10])),
    client.getBuffer(k),
    client.set(k, 12.5),
    client.get(k),
    client.incr(k),
    client.hset(`${k}:h`, { a: '1', b: 'é', __proto__x: '' }),
    client.hgetall(`${k}:h`),
    client.hgetallBuffer(`${k}:h`),
    client.hmget(`${k}:h`, 'a', 'none', 'b'),
    client.mget([k, `${k}:none`]),
    client.zadd(`${k}:z`, 1.5, 'one', 2, 'two'),
    client.zscore(`${k}:z`, 'one'),
    client.zrange(`${k}:z`, '0', '-1', 'WITHSCORES'),
    client.xlen(`${k}:x`),
    client.echo('x'.repeat(20_000)),
    client.del(k, `${k}:h`, `${k}:z`),
  ];

  it.each([{}, { keyPrefix: `${prefix}keyPrefix:` }])('it gets what a plain client gets, with %o', async (options) => {
    const proxy = await startProxy(redisUrl());
    const plain = await outcomes(program(await ready(host.create(redisUrl(), options as RedisOptions))));
    const client = await ready(
      host.createCoalesced(proxy.url, { ...(options as RedisOptions), retryStrategy: () => 5 }),
    );
    const { fastCommands } = client.coalescer.stats();
    // The connection is lost before the commands are executed, so all values come from the second time.
    proxy.swallowRequests();
    const settled = outcomes(program(client));
    await sleep(5);
    // Host: iovalkey's argument transformers are of another kind, so what they apply to is left to it.
    expect(client.coalescer.stats().fastCommands).toBeGreaterThanOrEqual(fastCommands + plain.length - 1);
    proxy.reset();
    expect(await settled).toEqual(plain);
    expect(proxy.connections).toBe(2);
  });
});
