import fc from 'fast-check';
import { Redis as DropIn } from 'ioredis-coalesce';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connectAs, createAs, expectAsPlain, type Kind } from '../helpers/beside.js';
import {
  type Client,
  endWithTest,
  HOSTS,
  type Host,
  ioredis6,
  outcomes,
  ready,
  sleep,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { type RedisServer, startServer } from '../helpers/redis.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_AUTO_PIPELINING');

const BLOCKING = { blocking: { connections: 3 } };

let server: RedisServer;
let admin: Client;

beforeAll(async () => {
  server = await startServer({ args: ['--hz', '500'] });
  admin = new ioredis6.Redis(server.url, {});
});
afterAll(async () => {
  admin?.disconnect();
  await server?.stop();
});

async function blockedClients(): Promise<number> {
  return Number(/blocked_clients:(\d+)/.exec(await admin.info('clients'))?.[1]);
}

async function untilBlocked(count: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await blockedClients()) !== count) {
    if (performance.now() > deadline)
      throw new Error(`expected ${count} blocked clients, got ${await blockedClients()}`);
    await sleep(2);
  }
}

async function linesOfClientList(name: string): Promise<string[]> {
  return ((await admin.client('LIST')) as string).split('\n').filter((line) => line.includes(` name=${name} `));
}

function invoke(client: object, method: string, ...args: unknown[]): Promise<unknown> {
  return (client as Record<string, (...args: unknown[]) => Promise<unknown>>)[method]?.(...args) as Promise<unknown>;
}

/** A blocking command that finds something at once, after the writes that make it find that. */
type Found = readonly [writes: readonly (readonly unknown[])[], command: readonly unknown[]];

const FOUND: readonly Found[] = [
  [[['rpush', 'l', 'a', 'é']], ['blpop', 'l', 0]],
  [[['rpush', 'l', Buffer.from([255, 0])]], ['blpopBuffer', ['none', 'l'], 0]],
  [[['rpush', 'l', 1, 2]], ['brpop', 'none', 'l', 0]],
  [[['rpush', 'l', 1, 2]], ['brpoplpush', 'l', 'm', 0]],
  [[['rpush', 'l', 1, 2]], ['blmove', 'l', 'm', 'LEFT', 'RIGHT', 0]],
  [[['rpush', 'l', 1, 2, 3]], ['blmpop', 0, 1, 'l', 'LEFT', 'COUNT', 2]],
  [[['zadd', 'z', 1.5, 'a', 2, 'b']], ['bzpopmin', 'z', 0]],
  [[['zadd', 'z', 1.5, 'a', 2, 'b']], ['bzpopmax', ['z', 0]]],
  [[['zadd', 'z', 1.5, 'a', 2, 'b']], ['bzmpop', 0, 1, 'z', 'MIN']],
  [[['xadd', 's', '1-1', 'f', 'v']], ['xread', 'BLOCK', 0, 'STREAMS', 's', 0]],
  [[['xadd', 's', '1-1', 'f', 'v']], ['xreadBuffer', 'COUNT', 1, 'block', 0, 'STREAMS', 's', 0]],
  [
    [
      ['xgroup', 'CREATE', 's', 'block', 0, 'MKSTREAM'],
      ['xadd', 's', '1-1', 'f', 'v'],
    ],
    ['xreadgroup', 'GROUP', 'block', 'me', 'BLOCK', 0, 'STREAMS', 's', '>'],
  ],
  [[['rpush', 'l', 'a']], ['call', 'blpop', 'l', '0']],
  [[['rpush', 'l', 'a']], ['callBuffer', 'blpop', ['l', '0']]],
  [[['rpush', 'l', 'a']], ['send_command', 'brpop', 'l', '0']],
  [[], ['blpop', 'none', 0.001]],
  [[], ['blpop', 'l', 'soon']],
  [[['set', 'l', 'text']], ['blpop', 'l', 0]],
  [[], ['blpop']],
];

describe.each(HOSTS)('$name: the option blocking', (host: Host) => {
  const connect = (kind: Kind, options = {}) => connectAs(kind, host, server.url, options, BLOCKING);
  const coalesced = async (options = {}, coalesceOptions = {}) =>
    ready(host.createCoalesced(server.url, options, { ...BLOCKING, ...coalesceOptions }));

  it.each([
    ['', {}],
    [' with keyPrefix', { keyPrefix: 'p:' }],
    [' with stringNumbers and RESP2', { stringNumbers: true, ...(host === ioredis6 ? { protocol: 2 } : {}) }],
    [' with showFriendlyErrorStack', { showFriendlyErrorStack: true }],
  ] as const)(
    'own writes of the same tick come first; values and errors as on a plain client%s',
    async (_, options) => {
      await expectAsPlain(async (kind) => {
        const client = await connect(kind, options);
        const found: unknown[] = [];
        for (const [writes, [method, ...args]] of FOUND) {
          await admin.flushall();
          const issued = [...writes, [method, ...args]].map(([name, ...given]) =>
            invoke(client, String(name), ...given),
          );
          found.push(await outcomes(issued), await admin.keys('*'));
        }
        return found;
      });
    },
  );

  it('random programs: the same values and data as on a plain client', async () => {
    const clients = { plain: await connect('plain'), coalesced: await connect('coalesced', { db: 1 }) };
    await admin.flushall();
    const key = fc.constantFrom('a', 'b', 'c');
    const write = fc.oneof(
      fc.tuple(fc.constantFrom('rpush', 'lpush', 'append'), key, fc.constantFrom('v', 'é', 7, Buffer.from([200]))),
      fc.tuple(fc.constantFrom('del', 'get', 'llen', 'lpop'), key),
    );
    const wait = fc.oneof(
      fc.tuple(fc.constantFrom('blpop', 'brpopBuffer'), key, key, fc.constant(0.001)),
      fc.tuple(fc.constant('call'), fc.constant('blpop'), key, fc.constant('0.001')),
      fc.tuple(fc.constant('blmove'), key, key, fc.constant('LEFT'), fc.constant('RIGHT'), fc.constant(0.001)),
    );
    const turn = fc.tuple(fc.array(write, { maxLength: 6 }), wait);
    const run = async (client: Client, program: readonly (readonly [(readonly unknown[])[], readonly unknown[]])[]) => {
      const found: unknown[] = [];
      for (const [writes, command] of program) {
        found.push(
          await outcomes([...writes, command].map(([method, ...args]) => invoke(client, String(method), ...args))),
        );
      }
      return found;
    };
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 10 }), async (program) => {
        expect(await run(clients.coalesced, program)).toEqual(await run(clients.plain, program));
      }),
      { numRuns: 40 },
    );
    expect(await blockedClients()).toBe(0);
  });

  it('nobody waits behind a blocking command, and its caller gets what comes later', async () => {
    const client = await coalesced();
    await admin.flushall();
    const blocked = [client.blpop('l', 0), client.call('BLPOP', 'l', '0')];
    await untilBlocked(2);
    expect(await client.set('k', 'v')).toBe('OK');
    expect(await client.get('k')).toBe('v');
    await client.rpush('l', 'x', 'x');
    expect(await Promise.all(blocked)).toEqual([
      ['l', 'x'],
      ['l', 'x'],
    ]);
  });

  it('nor behind the first command of a client that was in use before', async () => {
    const client = await ready(host.create(server.url));
    await admin.flushall();
    coalesce(client, BLOCKING);
    const blocked = client.blpop('l', 0);
    expect(await client.rpush('l', 'x')).toBe(1);
    expect(await blocked).toEqual(['l', 'x']);
  });

  it('callbacks get the value', async () => {
    const client = await coalesced();
    await admin.del('l');
    const called = new Promise((resolve) => {
      client.blpop('l', 0, (...given: unknown[]) => resolve(given));
    });
    await client.rpush('l', 'x');
    expect(await called).toEqual([null, ['l', 'x']]);
  });

  it('connections are made when needed, kept, and no more than the option says; the others wait in order', async () => {
    const client = await coalesced({ connectionName: 'kept' });
    await admin.flushall();
    expect(client.coalescer.stats().blockingConnections).toBe(0);
    const order: string[] = [];
    const pops = ['a', 'b', 'c', 'd', 'e'].map(async (key) => {
      const popped = await client.blpop(key, 0);
      order.push(key);
      return popped;
    });
    await untilBlocked(3);
    expect(client.coalescer.stats().blockingConnections).toBe(3);
    expect(await linesOfClientList('kept')).toHaveLength(4);
    // A command that waits for a connection finds its value when it gets one.
    await admin.rpush('e', 'of e');
    await admin.rpush('d', 'of d');
    expect(order).toEqual([]);
    await admin.rpush('b', 'of b');
    await until(() => order.length === 3, 'three answers');
    expect(order).toEqual(['b', 'd', 'e']);
    await admin.rpush('a', 'of a');
    await admin.rpush('c', 'of c');
    expect(await Promise.all(pops)).toEqual(['a', 'b', 'c', 'd', 'e'].map((key) => [key, `of ${key}`]));
    await client.blpop('none', 0.001);
    expect(client.coalescer.stats().blockingConnections).toBe(3);
    expect(await linesOfClientList('kept')).toHaveLength(4);
  });

  it('runs in the database that was selected at the call, whichever its connection had', async () => {
    const client = await coalesced();
    await admin.flushall();
    const popped: Promise<unknown>[] = [];
    for (const db of [1, 2, 0, 2]) {
      void client.select(db);
      void client.rpush('l', `of ${db}`);
      popped.push(client.blpop('l', 0));
    }
    void client.select(0);
    expect(await Promise.all(popped)).toEqual([1, 2, 0, 2].map(() => ['l', expect.stringMatching(/^of/)]));
    expect((await Promise.all(popped)).map((pop) => (pop as string[])[1]).sort()).toEqual([
      'of 0',
      'of 1',
      'of 2',
      'of 2',
    ]);
    expect(await admin.info('keyspace')).not.toMatch(/^db\d/m);
  });

  it('after a SELECT that is refused it runs in the database that is still selected', async () => {
    await expectAsPlain(async (kind) => {
      const client = await connect(kind);
      await admin.flushall();
      await client.rpush('l', 'of 0');
      await client.select(5);
      await client.rpush('l', 'of 5');
      // Leaves a connection with this database.
      await client.blpop('none', 0.001);
      const found: unknown[] = [];
      for (const db of [0, 5]) {
        await client.select(db);
        found.push(await outcomes([client.select(999)]), await outcomes([client.blpop('l', 0)]));
      }
      return found;
    });
  });

  it.each([
    ['commandTimeout', 'Command timed out'],
    ['disconnect()', 'Connection is closed.'],
  ])('%s while its connection selects the database: rejected, and never sent', async (how, message) => {
    const proxy = await startProxy(server.url);
    const client = await ready(host.createCoalesced(proxy.url, {}, { blocking: { connections: 1 } }));
    await admin.flushall();
    await client.blpop('none', 0.001);
    await client.select(1);
    await client.rpush('l', 'x');
    proxy.stall();
    if (how === 'commandTimeout') client.options.commandTimeout = 50;
    const popped = outcomes([client.blpop('l', 0)]);
    await until(() => proxy.received().match(/select/g)?.length === 2, 'its SELECT on the wire');
    if (how === 'disconnect()') client.disconnect();
    expect(await popped).toMatchObject([{ error: `Error/Error: ${message}` }]);
    Reflect.deleteProperty(client.options, 'commandTimeout');
    proxy.resume();
    if (how === 'disconnect()') await client.connect();
    await client.select(1);
    expect(await client.blpop('l', 0)).toEqual(['l', 'x']);
  });

  it('in a transaction it stays there, and does not block', async () => {
    await expectAsPlain(async (kind) => {
      const client = await connect(kind);
      await admin.flushall();
      return outcomes([
        client.multi({ pipeline: false }),
        client.blpop('l', 0),
        client.rpush('l', 'x'),
        client.blpop('l', 0),
        client.exec(),
        client.blpop('l', 0.001),
      ] as Promise<unknown>[]);
    });
  });

  it('in a transaction that was begun before the connection is ready, too', async () => {
    await expectAsPlain(async (kind) => {
      const client = createAs(kind, host, server.url, {}, BLOCKING);
      return outcomes([
        client.multi({ pipeline: false }),
        client.blpop('none', 0),
        client.exec(),
        client.rpush('l', 'x'),
        client.blpop('l', 0),
      ] as Promise<unknown>[]);
    });
  });

  it.each([true, false])(
    'in a transaction that was begun on a lost connection, too, with autoResendUnfulfilledCommands: %s',
    async (autoResendUnfulfilledCommands) => {
      await expectAsPlain(async (kind) => {
        const proxy = await startProxy(server.url);
        const client = await connectAs(kind, host, proxy.url, { autoResendUnfulfilledCommands }, BLOCKING);
        await admin.flushall();
        await admin.rpush('l', 'x');
        void outcomes([client.multi({ pipeline: false }), client.echo('begun')] as Promise<unknown>[]);
        const closed = new Promise((resolve) => client.once('close', resolve));
        await proxy.loseRequests('begun');
        await closed;
        return outcomes([client.blpop('l', 0), client.exec()] as Promise<unknown>[]);
      });
    },
  );

  it('in a pipeline it stays there', async () => {
    const client = await coalesced();
    await admin.flushall();
    expect(await client.pipeline().rpush('l', 'x').blpop('l', 0).exec()).toEqual([
      [null, 1],
      [null, ['l', 'x']],
    ]);
    expect(client.coalescer.stats().blockingConnections).toBe(0);
  });

  it('WAIT, and reads without BLOCK, stay on the connection of the client', async () => {
    const client = await coalesced();
    await admin.flushall();
    const spy = spyOnSocket(client);
    await client.wait(0, 1);
    await client.xread('COUNT', 1, 'STREAMS', 'block', 0);
    await client.call('xread', 'STREAMS', 'block', '0');
    expect(commandNames(spy.text())).toEqual(['wait', 'xread', 'xread']);
    expect(client.coalescer.stats().blockingConnections).toBe(0);
  });

  it('reads without BLOCK overtake nothing that the client collects in its own pipeline', async () => {
    const client = await ready(host.createCoalesced(server.url, { enableAutoPipelining: true }, BLOCKING));
    await admin.flushall();
    const issued = [
      client.xadd('log', '1-1', 'f', 'v'),
      client.xread('STREAMS', 'log', '0'),
      client.call('xread', 'STREAMS', 'log', '0'),
    ];
    const read = [['log', [['1-1', ['f', 'v']]]]];
    expect(await Promise.all(issued)).toEqual(['1-1', read, read]);
  });

  it('a stub of sendCommand that returns nothing gets each command once', async () => {
    const client = await coalesced();
    const stub = vi.fn();
    (client as { sendCommand: unknown }).sendCommand = stub;
    void client.blpop('list', 0);
    void client.call('xread', ['STREAMS', 'BLOCK', '0']);
    expect(stub).toHaveBeenCalledTimes(2);
    Reflect.deleteProperty(client, 'sendCommand');
  });

  it('before the client is ready it waits for what was issued before; the client connects', async () => {
    await admin.flushall();
    const client = host.createCoalesced(server.url, { lazyConnect: true }, BLOCKING);
    expect(await client.blpop('none', 0.001)).toBeNull();
    await ready(client);
    const early = host.createCoalesced(server.url, {}, BLOCKING);
    const issued = [early.select(3), early.rpush('l', 'x'), early.blpop('l', 0)];
    expect(await Promise.all(issued)).toEqual(['OK', 1, ['l', 'x']]);
  });

  it.each([
    ['enableOfflineQueue off', { enableOfflineQueue: false }, async () => {}],
    ['disconnect() before', { lazyConnect: true }, async (client: Client) => client.disconnect()],
    ['quit() before', {}, (client: Client) => client.quit()],
  ] as const)('%s: refused as on a plain client', async (_, options, before) => {
    const [found] = await expectAsPlain(async (kind) => {
      const client = createAs(kind, host, server.url, options, BLOCKING);
      await before(client);
      return outcomes([client.blpop('l', 0)]);
    });
    expect(found).toHaveProperty('error');
  });

  it.each(['disconnect', 'quit'] as const)('%s() ends the blocked ones and those that wait', async (how) => {
    const ended = async (kind: Kind) => {
      const client = await connect(kind, { connectionName: `ended-${kind}` });
      const issued = outcomes(['a', 'b', 'c', 'd', 'e'].map((key) => client.blpop(key, 0)));
      await untilBlocked(kind === 'plain' ? 1 : 3);
      // On a plain client `quit()` would wait for the blocked one.
      if (kind === 'plain') client.disconnect();
      else await client[how]();
      return issued;
    };
    expect(await ended('coalesced')).toEqual(await ended('plain'));
    await untilBlocked(0);
    expect(await linesOfClientList('ended-coalesced')).toEqual([]);
  });

  it('after its end the client can connect again, and block again', async () => {
    const client = await coalesced();
    await client.blpop('none', 0.001);
    await client.quit();
    await until(() => client.coalescer.stats().blockingConnections === 0, 'no connection');
    await client.connect();
    await client.rpush('again', 'x');
    expect(await client.blpop('again', 0)).toEqual(['again', 'x']);
  });

  it('detach(): a blocked one is answered, then its connection closes; the others go to that of the client', async () => {
    const client = await coalesced({ connectionName: 'detached' });
    await admin.flushall();
    const pops = ['a', 'b', 'c', 'd'].map((key) => client.blpop(key, 0));
    await untilBlocked(3);
    client.coalescer.detach();
    await untilBlocked(4);
    for (const key of ['d', 'c', 'b', 'a']) await admin.rpush(key, 'x');
    expect(await Promise.all(pops)).toEqual(['a', 'b', 'c', 'd'].map((key) => [key, 'x']));
    await until(() => client.listenerCount('end') === 0, 'no listener left');
    let left: string[] = [];
    for (let round = 0; round < 100 && left.length !== 1; round += 1) left = await linesOfClientList('detached');
    expect(left).toHaveLength(1);
  });

  it('disconnect() after detach() ends the blocked ones', async () => {
    const client = await coalesced();
    const blocked = outcomes([client.blpop('none', 0)]);
    await untilBlocked(1);
    client.coalescer.detach();
    client.disconnect();
    expect(await blocked).toMatchObject([{ error: 'Error/Error: Connection is closed.' }]);
    await untilBlocked(0);
  });

  it('a lost connection while it waits: sent again on the next one, as on a plain client', async () => {
    const client = await coalesced({ connectionName: 'lost' });
    await admin.flushall();
    const blocked = client.blpop('l', 0);
    await untilBlocked(1);
    const [line = ''] = (await linesOfClientList('lost')).filter((text) => text.includes('cmd=blpop'));
    await admin.client('KILL', 'ID', /id=(\d+)/.exec(line)?.[1] as string);
    await untilBlocked(1);
    await admin.rpush('l', 'x');
    expect(await blocked).toEqual(['l', 'x']);
  });

  it('a lost connection without autoResendUnfulfilledCommands: left open, and its connection serves the next', async () => {
    const client = await coalesced(
      { connectionName: 'left', autoResendUnfulfilledCommands: false },
      { blocking: { connections: 1 } },
    );
    await admin.flushall();
    let settled = false;
    const blocked = client.blpop('l', 0);
    blocked.then(
      () => {
        settled = true;
      },
      () => {
        settled = true;
      },
    );
    await untilBlocked(1);
    const [line = ''] = (await linesOfClientList('left')).filter((text) => text.includes('cmd=blpop'));
    await admin.client('KILL', 'ID', /id=(\d+)/.exec(line)?.[1] as string);
    await client.rpush('m', 'x');
    expect(await client.blpop('m', 0)).toEqual(['m', 'x']);
    expect(settled).toBe(false);
  });

  it('… before it is sent: it waits for nothing that is left open', async () => {
    const proxy = await startProxy(server.url);
    const options = { autoResendUnfulfilledCommands: false, retryStrategy: () => 5 };
    const client = await ready(host.createCoalesced(proxy.url, options, BLOCKING));
    const earlier = vi.fn();
    client.get('left open').then(earlier, earlier);
    const first = client.blpop('left:first', 0);
    await proxy.loseReplies('left open');
    await admin.rpush('left:first', 'a');
    await admin.rpush('left:second', 'b');
    await expect(client.blpop('left:second', 0)).resolves.toEqual(['left:second', 'b']);
    await expect(first).resolves.toEqual(['left:first', 'a']);
    expect(earlier).not.toHaveBeenCalled();
  });

  it('a server that is killed while it waits: rejected after maxRetriesPerRequest, as on a plain client', async () => {
    await expectAsPlain(async (kind) => {
      const own = await startServer();
      const options = { maxRetriesPerRequest: 1, retryStrategy: () => 5 };
      const client = await connectAs(kind, host, own.url, options, BLOCKING);
      const blocked = outcomes([client.blpop('none', 0)]);
      const other = await connectAs('plain', host, own.url);
      while (!/blocked_clients:1/.test(await other.info('clients'))) await sleep(2);
      await own.kill();
      return blocked;
    });
  });

  it('disconnect() while the server is away ends them, too', async () => {
    const own = await startServer();
    const client = await ready(host.createCoalesced(own.url, { retryStrategy: () => 50 }, BLOCKING));
    await client.blpop('none', 0.001);
    const blocked = outcomes(['a', 'b', 'c', 'd'].map((key) => client.blpop(key, 0)));
    await own.kill();
    await until(() => client.status === 'reconnecting', 'a client between two connections');
    client.disconnect();
    expect(await blocked).toEqual(Array(4).fill({ error: 'Error/Error: Connection is closed.', command: undefined }));
    await until(() => client.coalescer.stats().blockingConnections === 0, 'no connection');
  });

  it('commandTimeout: rejected as on a plain client, and Redis takes no element for it later', async () => {
    const client = await coalesced({ commandTimeout: 100 }, { blocking: { connections: 1 } });
    await admin.flushall();
    const found = await outcomes([client.blpop('l', 0), client.blpop('l', 0)]);
    expect(found).toMatchObject([
      { error: 'Error/Error: Command timed out' },
      { error: 'Error/Error: Command timed out' },
    ]);
    await untilBlocked(0);
    await admin.rpush('l', 'x');
    expect(await admin.llen('l')).toBe(1);
    client.options.commandTimeout = 60_000;
    expect(await client.blpop('l', 0)).toEqual(['l', 'x']);
  });

  it('a subscriber of RESP2 refuses it, as a plain client does', async () => {
    await expectAsPlain(async (kind) => {
      const client = await connect(kind, host === ioredis6 ? { protocol: 2 } : {});
      await client.subscribe('channel');
      return outcomes([client.blpop('l', 0.001)]);
    });
  });

  it('waits for replies that are slow to come, and for nothing else', async () => {
    const proxy = await startProxy(server.url);
    const client = await ready(host.createCoalesced(proxy.url, {}, BLOCKING));
    await admin.flushall();
    // The connections for blocking commands are there already.
    await client.blpop('none', 0.001);
    proxy.stall();
    const pushed = client.rpush('l', 'x');
    const popped = client.blpop('l', 0);
    await until(() => proxy.received().includes('rpush'), 'the write on the wire');
    await sleep(20);
    expect(proxy.received().match(/blpop/gi)).toHaveLength(1);
    proxy.resume();
    expect(await Promise.all([pushed, popped])).toEqual([1, ['l', 'x']]);
  });

  it('without the option it stays on the connection of the client', async () => {
    const client = await ready(host.createCoalesced(server.url));
    const spy = spyOnSocket(client);
    await client.blpop('none', 0.001);
    expect(commandNames(spy.text())).toEqual(['blpop']);
    expect(client.coalescer.stats()).not.toHaveProperty('blockingConnections');
    expect(client.listenerCount('end')).toBe(0);
  });
});

describe('the drop-in class with the option blocking', () => {
  it('has the same, and its connections are plain clients', async () => {
    const client = endWithTest(
      new DropIn(server.url, { connectionName: 'drop-in', coalesce: BLOCKING }) as unknown as Client,
    );
    await ready(client);
    await admin.flushall();
    const popped = client.blpop('l', 0);
    await untilBlocked(1);
    expect(await linesOfClientList('drop-in')).toHaveLength(2);
    await client.rpush('l', 'x');
    expect(await popped).toEqual(['l', 'x']);
  });
});
