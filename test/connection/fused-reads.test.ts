import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type * as IORedis from 'ioredis';
import type { RedisOptions } from 'ioredis';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import {
  type Client,
  type CoalescedClient,
  HOSTS,
  type Host,
  ioredis6,
  LONG_ENOUGH,
  outcomes,
  outcomesWithin,
  ready,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';
import { commandNames, type SocketSpy, spyOnSocket } from '../helpers/sockets.js';
import { expectWarnings } from '../helpers/warnings.js';
import { around, following, type Layer, layer, replacing } from '../observability/helpers/layers.js';

const prefix = uniquePrefix('fused');
const key = (name: string | number) => `${prefix}${name}`;

const REPLIES: Record<string, string> = {
  get: bulk('1'),
  hget: bulk('1'),
  mget: '*1\r\n+1\r\n',
  hmget: '*1\r\n+1\r\n',
};

type Scene = { readonly client: CoalescedClient; readonly plain: Client; readonly spy: SocketSpy };

async function scene(host: Host, options: CoalesceOptions = {}, client: object = {}, url = redisUrl()): Promise<Scene> {
  const plain = await ready(host.create(redisUrl(), client));
  const coalesced = await ready(host.createCoalesced(url, client, { fuseReads: true, busyPoll: false, ...options }));
  await plain.mset(key('a'), '1', key('b'), 'zwei', key('ü'), 'ü€', key('bytes'), Buffer.from([0xff, 0x00]));
  await plain.hset(key('h'), { f: 'v', g: 'w', ü: 'ü' });
  await proven(coalesced);
  onTestFinished(async () => {
    const keys = await plain.keys(`${prefix}*`);
    if (keys.length > 0) await plain.del(...keys);
  });
  return { client: coalesced, plain, spy: spyOnSocket(coalesced) };
}

/** Reads are fused once the server has answered an MGET, and an HMGET. */
async function proven<T extends Client>(client: T): Promise<T> {
  await Promise.all([client.get(key('none')), client.hget(key('none'), 'f')]);
  return client;
}

describe.each(HOSTS)('$name: reads next to each other', (host) => {
  it('leave as one MGET, and each caller gets its own value', async () => {
    const { client, spy } = await scene(host);
    const values = await Promise.all([client.get(key('a')), client.get(key('none')), client.get(key('b'))]);
    expect(values).toEqual(['1', null, 'zwei']);
    expect(commandNames(spy.text())).toEqual(['mget']);
    expect(client.coalescer.stats()).toMatchObject({ fusedReads: 3, inFlight: 0 });
  });

  it('of one hash leave as one HMGET', async () => {
    const { client, spy } = await scene(host);
    const values = await Promise.all(['f', 'none', 'g', 'f'].map((field) => client.hget(key('h'), field)));
    expect(values).toEqual(['v', null, 'w', 'v']);
    expect(commandNames(spy.text())).toEqual(['hmget']);
  });

  it('a lone read is sent as it is', async () => {
    const { client, spy } = await scene(host);
    expect(await client.get(key('a'))).toBe('1');
    expect(await client.hget(key('h'), 'f')).toBe('v');
    expect(commandNames(spy.text())).toEqual(['get', 'hget']);
    expect(client.coalescer.stats().fusedReads).toBe(0);
  });

  it('other commands between them keep their place', async () => {
    const { client, spy } = await scene(host);
    const values = await Promise.all([
      client.get(key('a')),
      client.get(key('b')),
      client.set(key('a'), '2'),
      client.get(key('a')),
      client.get(key('b')),
      client.getBuffer(key('bytes')),
      client.getBuffer(key('a')),
      client.hget(key('h'), 'f'),
      client.hget(key('h'), 'g'),
      client.hget(key('other'), 'f'),
      client.hget(key('other'), 'g'),
      client.pipeline().set(key('b'), '3').exec(),
      client.get(key('b')),
      client.call('PING'),
      client.get(key('a')),
    ]);
    expect(values.slice(0, 11)).toEqual([
      ...['1', 'zwei', 'OK', '2', 'zwei'],
      Buffer.from([0xff, 0x00]),
      Buffer.from('2'),
      ...['v', 'w', null, null],
    ]);
    expect(values.slice(11)).toEqual([[[null, 'OK']], '3', 'PONG', '2']);
    expect(commandNames(spy.text()).join(' ')).toBe('mget set mget mget hmget hmget set get ping get');
  });

  it('at most 64 are one command; a part, a batch and the backlog hold as many as without', async () => {
    const { client, spy, plain } = await scene(host);
    await plain.mset(Array.from({ length: 200 }, (_, index) => [key(index), `${index}`]).flat());
    const read = (from: CoalescedClient) =>
      Promise.all(Array.from({ length: 200 }, (_, index) => from.get(key(index))));
    const expected = Array.from({ length: 200 }, (_, index) => `${index}`);
    expect(await read(client)).toEqual(expected);
    expect(commandNames(spy.text())).toEqual(['mget', 'mget', 'mget', 'mget']);
    for (const options of [{ maxBatchSize: 1 }, { maxBatchSize: 3 }, { maxBatchBytes: 1 }, { maxInFlight: 2 }]) {
      const limited = await scene(host, options);
      expect(await read(limited.client)).toEqual(expected);
      const largest = Math.max(...limited.spy.writes.map((write) => (write.toString().match(/\$/g) ?? []).length));
      if (options.maxBatchSize !== undefined) expect(largest).toBeLessThanOrEqual(options.maxBatchSize + 1);
    }
  });

  it('keys and values that are not ASCII, long keys and `keyPrefix` are as on a plain client', async () => {
    const { client, plain } = await scene(host, {}, { keyPrefix: prefix });
    const names = ['a', 'ü', 'none', 'b', 'x'.repeat(5_000), 'ü'.repeat(3_000), 'a'];
    for (const round of [1, 2]) {
      const read = (from: Client) => Promise.all([...names.map((name) => from.get(name)), from.hget('h', 'ü')]);
      expect({ round, values: await read(client) }).toEqual({ round, values: await read(plain) });
    }
  });

  it('are sent again one by one after a lost connection, each with its own value', async () => {
    const proxy = await startProxy(redisUrl());
    const { client } = await scene(host, {}, {}, proxy.url);
    const before = proxy.received().length;
    const reads = [client.get(key('a')), client.get(key('none')), client.get(key('b'))];
    await proxy.loseReplies('mget');
    expect(await Promise.all(reads)).toEqual(['1', null, 'zwei']);
    const sent = commandNames(proxy.received().slice(before));
    expect(sent.filter((name) => /get$/.test(name))).toEqual(['mget', 'get', 'get', 'mget']);
  });

  it.each<[string, (log: unknown[]) => Layer]>([
    ['replaces resolve and reject', replacing],
    ['follows the promise', following],
  ])('a tracer that %s and comes before they are sent again sees one command', async (_, tracer) => {
    const proxy = await startProxy(redisUrl());
    const { client } = await scene(host, {}, {}, proxy.url);
    const reads = [client.get(key('a')), client.get(key('none'))];
    client.coalescer.flush();
    const log: unknown[][] = [];
    layer(client, tracer(log));
    await proxy.loseReplies('mget');
    expect(await Promise.all(reads)).toEqual(['1', null]);
    const seen = log.filter(([event, name]) => event !== 'sent' && /get$/.test(String(name)));
    expect(seen.map(([event, name]) => `${event} ${name}`)).toEqual([
      expect.stringMatching(/^(resolved|fulfilled) mget$/),
    ]);
  });

  it('keep their place before a write when they are sent again through a layer that delays commands', async () => {
    const proxy = await startProxy(redisUrl());
    const { client } = await scene(host, {}, {}, proxy.url);
    const commands = [client.get(key('a')), client.get(key('b')), client.set(key('a'), 'new')];
    client.coalescer.flush();
    const delaying = around((send, { name, promise }) => {
      if (!/^(m?get|set)$/.test(name)) return send();
      setTimeout(send, 20);
      return promise;
    });
    layer(client, delaying);
    await proxy.loseRequests('mget');
    expect(await Promise.all(commands)).toEqual(['1', 'zwei', 'OK']);
  });

  it('a client that has ended leaves no timer of reads that were sent again', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const proxy = await startProxy(redisUrl());
    const { client } = await scene(host, {}, { commandTimeout: 60_000 }, proxy.url);
    const reads = [client.get(key('a')), client.get(key('b'))];
    await proxy.loseReplies('mget');
    expect(await Promise.all(reads)).toEqual(['1', 'zwei']);
    await client.quit();
    await until(() => timers() <= before, 'no timer to be left');
  });

  it('an error for one of them, from a proxy in front of servers, rejects its caller alone', async () => {
    const server = await startScriptedServer((command) => {
      if (command[0] === 'mget' && command.length > 2) return `*3\r\n${bulk('1')}-ERR upstream failure\r\n${bulk('3')}`;
      return handshake(command) ?? REPLIES[command[0] ?? ''];
    });
    const client = await proven(await ready(host.createCoalesced(server.url, {}, { fuseReads: true })));
    expect(await outcomes(['a', 'b', 'c'].map((name) => client.get(name)))).toEqual([
      { value: '1' },
      { error: expect.stringContaining('ERR upstream failure') as string, command: { name: 'get', args: ['b'] } },
      { value: '3' },
    ]);
  });

  it.each(['*-1\r\n', '*1\r\n$1\r\n1\r\n', '+OK\r\n', '$2\r\nOK\r\n'])('%j rejects all of them', async (reply) => {
    const server = await startScriptedServer((command) => {
      if (command[0] === 'mget' && command.length > 2) return reply;
      return handshake(command) ?? REPLIES[command[0] ?? ''];
    });
    const client = await proven(await ready(host.createCoalesced(server.url, {}, { fuseReads: true })));
    const found = await outcomes([client.get('a'), client.get('b')]);
    expect(found).toHaveLength(2);
    for (const one of found) expect(one).toMatchObject({ error: expect.stringContaining('MGET') as string });
  });

  it('each is rejected with its own error when the client is closed', async () => {
    const { client, plain } = await scene(host);
    await plain.client('PAUSE', 100, 'ALL' as never);
    const reads = [client.get(key('a')), client.get(key('b'))];
    client.disconnect();
    const settled = await Promise.allSettled(reads);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    const [first, second] = settled.map((one) => (one as PromiseRejectedResult).reason as Error);
    expect(first?.message).toBe('Connection is closed.');
    expect(second?.message).toBe(first?.message);
    expect(second).not.toBe(first);
  });

  it('a first HGET whose key is of another type does not mean that the server lacks HMGET', async () => {
    const plain = await ready(host.create(redisUrl()));
    await plain.set(key('text'), 'text');
    await plain.hset(key('h'), { f: 'v', g: 'w' });
    const client = await ready(host.createCoalesced(redisUrl(), {}, { fuseReads: true, busyPoll: false }));
    await expect(client.hget(key('text'), 'f')).rejects.toThrow('WRONGTYPE');
    expect(await Promise.all([client.hget(key('h'), 'f'), client.hget(key('h'), 'g')])).toEqual(['v', 'w']);
    expect(client.coalescer.stats().fusedReads).toBe(2);
    await plain.del(key('text'), key('h'));
  });

  it('WRONGTYPE of a hash is the answer of each, with its own command', async () => {
    const { client, plain } = await scene(host);
    const read = (from: Client) => outcomes([from.hget(key('a'), 'f'), from.hget(key('a'), 'g')]);
    expect(await read(client)).toEqual(await read(plain));
    expect(client.coalescer.stats().fusedReads).toBe(2);
  });

  it('a user without permission for MGET gets the replies of GET, and nothing more is fused on that connection', async () => {
    expectWarnings('COALESCE_WARN_FUSE');
    const { plain } = await scene(host);
    await plain.call('ACL', 'SETUSER', prefix, 'on', 'nopass', `~${prefix}*`, '+@all', '-mget');
    onTestFinished(() => void plain.call('ACL', 'DELUSER', prefix).catch(() => {}));
    const options = { username: prefix, password: 'any' };
    const client = await ready(host.createCoalesced(redisUrl(), options, { fuseReads: true }));
    const spy = spyOnSocket(client);
    expect(await Promise.all([client.get(key('a')), client.get(key('b')), client.get(key('none'))])).toEqual([
      ...['1', 'zwei', null],
    ]);
    expect(await Promise.all([client.get(key('a')), client.get(key('b'))])).toEqual(['1', 'zwei']);
    expect(commandNames(spy.text()).join(' ')).toBe('mget get get get get get');
  });

  it('a server that refuses several slots, and later MGET itself, ends fusing', async () => {
    expectWarnings('COALESCE_WARN_FUSE');
    const refusals = ['-CROSSSLOT not the same slot\r\n', '-NOPERM no permission\r\n'];
    const server = await startScriptedServer((command) => {
      const refusal = command[0] === 'mget' && command.length > 2 ? refusals.shift() : undefined;
      return refusal ?? handshake(command) ?? REPLIES[command[0] ?? ''];
    });
    const client = await ready(host.createCoalesced(server.url, {}, { fuseReads: true }));
    await client.get('proves MGET');
    for (const keys of [
      ['a', 'b'],
      ['{s}1', '{s}2'],
      ['{s}1', '{s}2'],
    ])
      expect(await Promise.all(keys.map((each) => client.get(each)))).toEqual(['1', '1']);
    expect(server.commands.map(([name]) => name).join(' ')).toBe('mget get mget get get mget get get get get');
  });

  it.each(['*-1\r\n', '+OK\r\n', '-ERR unknown command\r\n'])('are not fused: MGET has %j', async (reply) => {
    expectWarnings('COALESCE_WARN_FUSE');
    const server = await startScriptedServer((command) => {
      return command[0] === 'mget' ? reply : (handshake(command) ?? REPLIES[command[0] ?? '']);
    });
    const client = await ready(host.createCoalesced(server.url, {}, { fuseReads: true }));
    for (let round = 0; round < 2; round += 1)
      expect(await Promise.all([client.get('a'), client.get('b')])).toEqual(['1', '1']);
    expect(server.commands.map(([name]) => name).join(' ')).toBe('mget get get get get');
  });

  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['select', (client) => client.select(1)],
    ['RESET', (client) => client.call('RESET')],
    ['multi', (client) => client.multi({ pipeline: false }) as never],
    ['a write', (client) => client.set(key('a'), 'later')],
    ['quit', (client) => client.quit()],
    ['subscribe', (client) => client.subscribe(key('channel'))],
  ])('behind %s, the reads of a user who may not use MGET get what they get on a plain client', async (_, behind) => {
    expectWarnings('COALESCE_WARN_FUSE');
    const { plain } = await scene(host);
    const options = await userWithout(plain, '-mget');
    await expectAsPlain(async (kind) => {
      await plain.set(key('a'), '1');
      const client = await connectAs(kind, host, redisUrl(), options, { fuseReads: true });
      return outcomes([client.get(key('a')), client.get(key('b')), behind(client), client.echo('last')]);
    });
  });

  it('each is settled when a layer added since throws as it is sent again', async () => {
    expectWarnings('COALESCE_WARN_FUSE');
    const { client } = await whoMayNotUseMget();
    const reads = [client.get(key('a')), client.get(key('b'))];
    client.coalescer.flush();
    client.sendCommand = () => {
      throw new Error('thrown by a layer');
    };
    const thrown = expect.objectContaining({ error: expect.stringContaining('thrown by a layer') as string }) as object;
    expect(await outcomesWithin(LONG_ENOUGH, reads)).toEqual([thrown, thrown]);
  });

  it('are sent again one by one where the next connection refuses the MGET that was lost', async () => {
    expectWarnings('COALESCE_WARN_FUSE');
    const { client, asked } = await whoMayNotUseMget();
    client.stream.pause();
    const reads = asked();
    client.coalescer.flush();
    client.disconnect(true);
    expect(await reads).toEqual(['1', 'zwei']);
  });

  it.each(['LOADING', 'MASTERDOWN', 'BUSY'])('%s is the answer of each, and nothing is sent again', async (code) => {
    const server = await startScriptedServer((command) => {
      if (command[0] === 'mget' && command.length > 2) return `-${code} for now\r\n`;
      return handshake(command) ?? REPLIES[command[0] ?? ''];
    });
    const client = await proven(await ready(host.createCoalesced(server.url, {}, { fuseReads: true })));
    const failed = (...args: string[]) => ({
      error: expect.stringContaining(`${code} for now`) as string,
      command: { name: 'get', args },
    });
    for (const round of [1, 2]) {
      const reads = [client.get('a'), client.get('b')];
      expect({ round, found: await outcomes(reads) }).toEqual({ round, found: [failed('a'), failed('b')] });
    }
    expect(server.commands.slice(4).map((command) => command.join(' '))).toEqual(['mget a b', 'mget a b']);
  });

  // Sent again in another database, or by another user, the reads would get what is for that one.
  it.each<[string, RegExp, (client: CoalescedClient) => Promise<unknown>]>([
    ['select', /NOPERM/, (client) => client.select(1)],
    ['SELECT, which the client does not notice', /NOPERM/, (client) => client.call('SELECT', 1)],
    ['SELECT in a pipeline', /NOPERM/, (client) => client.pipeline().call('SELECT', 1).exec()],
    ['RESET, which selects another database', /NOPERM/, (client) => client.call('RESET')],
    ['auth', /NOPERM/, (client) => client.auth('default', 'any')],
    ['HELLO', /NOPERM/, (client) => client.call('HELLO', 2, 'AUTH', 'default', 'any')],
    ['SWAPDB', /NOPERM/, (client) => client.swapdb(14, 15)],
    ['multi', /NOPERM/, (client) => client.multi({ pipeline: false })],
    ['quit', /NOPERM/, (client) => client.quit()],
    ['subscribe', /allowed in this context/, (client) => client.subscribe(key('channel'))],
  ])('behind %s, reads whose MGET is refused are rejected', async (_, reason, behind) => {
    expectWarnings('COALESCE_WARN_FUSE');
    const { client } = await whoMayNotUseMget();
    const [first, second, last] = await outcomes([client.get(key('a')), client.get(key('b')), behind(client)]);
    expect(first).toMatchObject({ error: expect.stringMatching(reason) as string });
    expect(second).toMatchObject({ error: expect.stringMatching(reason) as string });
    expect(last).toEqual({ value: expect.anything() as unknown });
  });

  it.each([2, 1, true] as const)('reconnectOnError that returns %s is not asked about a refused MGET', async (wish) => {
    expectWarnings('COALESCE_WARN_FUSE');
    const { client, asked } = await whoMayNotUseMget({ reconnectOnError: () => wish });
    let closes = 0;
    client.on('close', () => void closes++);
    expect(await asked()).toEqual(['1', 'zwei']);
    expect(closes).toBe(0);
  });

  it('in a transaction that began after detach(), reads whose MGET is refused are no part of it', async () => {
    expectWarnings('COALESCE_WARN_FUSE');
    const { client, asked } = await whoMayNotUseMget();
    const reads = asked();
    client.coalescer.flush();
    client.coalescer.detach();
    const transaction = [client.multi({ pipeline: false }), client.set(key('a'), '3'), client.exec()];
    await expect(reads).rejects.toThrow('NOPERM');
    expect(await Promise.all(transaction)).toEqual(['OK', 'QUEUED', [[null, 'OK']]]);
  });

  it('none is taken for fused once the server was told to omit replies', async () => {
    const { client } = await scene(host);
    client.call('CLIENT', 'REPLY', 'SKIP').catch(() => {});
    const fusedBefore = client.coalescer.stats().fusedReads;
    client.get(key('a')).catch(() => {});
    client.get(key('b')).catch(() => {});
    client.disconnect();
    expect(client.coalescer.stats().fusedReads).toBe(fusedBefore);
  });

  it.each<[string, (client: Client) => Promise<unknown>, string]>([
    ['by itself', (c) => c.call('CLIENT', 'CACHING', 'YES'), 'client get mget time mget'],
    [
      'behind which comes another CLIENT, which does not use it up',
      (c) => Promise.all([c.call('CLIENT', 'CACHING', 'YES'), c.call('CLIENT', 'ID')]),
      'client client get mget time mget',
    ],
    [
      'at the end of a pipeline',
      (c) => c.pipeline().set(key('c'), '3').call('CLIENT', 'CACHING', 'YES').exec(),
      'set client get mget time mget',
    ],
    [
      'in a pipeline whose next command uses it up',
      (c) => c.pipeline().call('client', 'caching', 'yes').get(key('c')).exec(),
      'client get mget time mget',
    ],
  ])('CLIENT CACHING %s is about the next read, which is left alone', async (_, caching, wire) => {
    const { client, plain, spy } = await scene(host);
    await client.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', Number(await plain.client('ID')), 'OPTIN');
    const before = spy.text().length;
    const reads = () => [client.get(key('a')), client.get(key('b')), client.get(key('ü'))];
    const calls = [caching(client), ...reads(), client.time(), ...reads()];
    expect((await Promise.all(calls)).slice(1, 4)).toEqual(['1', 'zwei', 'ü€']);
    expect(commandNames(spy.text().slice(before)).join(' ')).toBe(wire);
  });

  it('are not put together over a pipeline that is being queued: no command of it gets lost', async () => {
    const { Command } = host.Redis as unknown as { Command: typeof IORedis.Command };
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), {}, { fuseReads: true });
      let within: Promise<unknown> | undefined;
      class Meddling extends Command {
        override toWritable(socket: object) {
          within ??= client.get(key('none'));
          return super.toWritable(socket);
        }
      }
      const first = client.get(key('none'));
      // Ours would be encoded before any of it is queued; the client itself sends one that has SELECT.
      const pipeline = client.pipeline().echo('one').select(0);
      (pipeline as never as Client).sendCommand(new Meddling('echo', ['two'], { replyEncoding: 'utf8' }));
      const sent = pipeline.exec();
      return [await outcomesWithin(LONG_ENOUGH, [first, sent, within as never]), await client.echo('in step')];
    });
  });

  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['DISCARD', (client) => client.call('DISCARD', 'x')],
    ['EXEC', (client) => client.call('EXEC', 'x')],
    ['MULTI', (client) => client.call('MULTI', 'x')],
    ['RESET', (client) => client.call('RESET', 'x')],
  ])('are queued, each by itself, where %s with an argument is refused and MULTI is open', async (_, refused) => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), {}, { fuseReads: true });
      const read = () => client.get(key('none'));
      return outcomes([client.multi({ pipeline: false }) as never, refused(client), read(), read(), client.exec()]);
    });
  });

  async function userWithout(plain: Client, ...rules: string[]) {
    await plain.call('ACL', 'SETUSER', prefix, 'on', 'nopass', `~${prefix}*`, '&*', '+@all', ...rules);
    onTestFinished(() => void plain.call('ACL', 'DELUSER', prefix).catch(() => {}));
    return { username: prefix, password: 'any', protocol: 2 } as const;
  }

  /** From now on: the server has answered an MGET before. */
  async function whoMayNotUseMget(options: RedisOptions = {}) {
    const { plain } = await scene(host);
    const all = { ...(await userWithout(plain)), ...options };
    const client = await proven(await ready(host.createCoalesced(redisUrl(), all, { fuseReads: true })));
    await plain.call('ACL', 'SETUSER', prefix, '-mget');
    return { client, asked: () => Promise.all([client.get(key('a')), client.get(key('b'))]) };
  }
});

describe('one difference to plain clients', () => {
  it('GET of a key of another type gives null beside others, and WRONGTYPE alone', async () => {
    const { client } = await scene(ioredis6);
    expect(await Promise.all([client.get(key('h')), client.get(key('a'))])).toEqual([null, '1']);
    await expect(client.get(key('h'))).rejects.toThrow('WRONGTYPE');
  });
});

function subscribeToCommands(): void {
  const channel = 'tracing:ioredis:command:start';
  const subscriber = () => {};
  subscribe(channel, subscriber);
  onTestFinished(() => void unsubscribe(channel, subscriber));
}

describe('reads are not fused', () => {
  it.each<[string, CoalesceOptions, (client: CoalescedClient) => Promise<unknown>]>([
    ['without the option', { fuseReads: false }, async () => {}],
    ['while keys are watched', {}, (client) => client.watch(key('a'))],
    ['with `cache`', { cache: true }, async () => {}],
    ['under a tracer, which sees each', {}, async (client) => layer(client, replacing([]))],
    ['while the channel of commands has a subscriber, which sees each', {}, async () => subscribeToCommands()],
  ])('%s', async (_, options, before) => {
    const { client, spy } = await scene(ioredis6, options, { protocol: 3 });
    await before(client);
    await Promise.all([
      client.get(key('a')),
      client.get(key('b')),
      client.hget(key('h'), 'f'),
      client.hget(key('h'), 'g'),
    ]);
    expect(commandNames(spy.text())).not.toContain('mget');
    expect(commandNames(spy.text())).not.toContain('hmget');
  });

  it('in a transaction', async () => {
    const { client, spy } = await scene(ioredis6);
    const queued = [client.multi({ pipeline: false }), client.get(key('a')), client.get(key('b')), client.exec()];
    expect((await Promise.all(queued)).at(-1)).toEqual([
      [null, '1'],
      [null, 'zwei'],
    ]);
    expect(commandNames(spy.text()).join(' ')).toBe('multi get get exec');
  });
});

describe('of single members', () => {
  it('a repeated key is requested once with `shareReads`', async () => {
    const { client, spy } = await scene(ioredis6, { shareReads: true });
    const values = await Promise.all(['a', 'b', 'a', 'a', 'none'].map((name) => client.get(key(name))));
    expect(values).toEqual(['1', 'zwei', '1', '1', null]);
    expect(spy.text()).toContain('*4\r\n$4\r\nmget');
  });

  it('an aborted one and one that has timed out are rejected alone', async () => {
    const proxy = await startProxy(redisUrl());
    const { client } = await scene(ioredis6, {}, {}, proxy.url);
    const controller = new AbortController();
    proxy.stall();
    const reads = [
      client.get(key('a')),
      client.coalescer.withOptions({ signal: controller.signal }).get(key('a')),
      client.coalescer.withOptions({ timeout: 5 }).get(key('b')),
      client.get(key('b')),
    ] as const;
    setImmediate(() => controller.abort(new Error('enough')));
    await outcomes([reads[1], reads[2]]);
    proxy.resume();
    expect(await outcomes(reads)).toEqual([
      { value: '1' },
      expect.objectContaining({ error: 'Error/Error: enough' }),
      expect.objectContaining({ error: 'Error/Error: Command timed out' }),
      { value: 'zwei' },
    ]);
  });

  it('a reply transformer of GET sees each value, one of MGET sees none', async () => {
    const { client } = await scene(ioredis6);
    const { Command } = ioredis6.Redis as unknown as {
      Command: {
        setReplyTransformer(name: string, by: (reply: unknown) => unknown): void;
        _transformer: { reply: object };
      };
    };
    Command.setReplyTransformer('get', (reply) => `<${reply}>`);
    Command.setReplyTransformer('mget', () => 'never');
    onTestFinished(() => {
      const { reply } = Command._transformer as { reply: Record<string, unknown> };
      reply.get = undefined;
      reply.mget = undefined;
    });
    expect(await Promise.all([client.get(key('a')), client.get(key('b'))])).toEqual(['<1>', '<zwei>']);
  });

  it('a client detached while they are on their way answers all', async () => {
    const { client } = await scene(ioredis6);
    const reads = [
      client.get(key('a')),
      client.get(key('none')),
      client.getBuffer(key('b')),
      client.getBuffer(key('a')),
    ];
    client.coalescer.flush();
    client.coalescer.detach();
    expect(await Promise.all(reads)).toEqual(['1', null, Buffer.from('zwei'), Buffer.from('1')]);
  });
});
