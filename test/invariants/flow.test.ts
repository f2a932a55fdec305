/** The invariants 7 to 10 of docs/design.md. */

import type { Duplex } from 'node:stream';
import debug from 'debug';
import type { RedisOptions } from 'ioredis';
import type { Coalesced } from 'ioredis-coalesce';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { cold } from '../helpers/cold.js';
import { COMMANDS } from '../helpers/fidelity/counting-transformers.js';
import {
  type Client,
  type CoalescedClient,
  HOSTS,
  ioredis5,
  ioredis6,
  iovalkey,
  outcomes,
  outcomesWithin,
  ready,
  sleep,
  ticked,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';
import { collectUncaught } from '../helpers/uncaught.js';

const prefix = uniquePrefix('invariants-of-flow');

const create = (options: CoalesceOptions = {}, hostOptions: RedisOptions = {}): Promise<CoalescedClient> =>
  ready(ioredis6.createCoalesced(redisUrl(), hostOptions, options));

/** A schedule whose flushes the test runs by hand, once it has taken over. */
function handSchedule(): { schedule: (flush: () => void) => void; flushes: (() => void)[]; takeOver(): void } {
  const flushes: (() => void)[] = [];
  let byHand = false;
  return {
    flushes,
    schedule: (flush) => void (byHand ? flushes.push(flush) : setImmediate(flush)),
    takeOver: () => {
      byHand = true;
    },
  };
}

describe('Invariant 7: user code never unwinds the reader', () => {
  it('a log function of DEBUG that sends commands runs when the batch and its commands are queued', async () => {
    const client = await create({ maxBatchSize: 2 });
    const { log } = debug;
    onTestFinished(() => {
      debug.disable();
      debug.log = log;
    });
    debug.enable('ioredis-coalesce:flush');
    const logged: Promise<unknown>[] = [];
    let logs = 0;
    debug.log = () => {
      logs += 1;
      if (logs === 2) logged.push(client.echo('fast'), cold(client, 'ECHO', 'cold'));
      if (logs === 3) throw new Error('by the log function');
    };
    const uncaught = collectUncaught();
    const replies = ['a', 'b', 'c', 'd'].flatMap((text) => [client.echo(text), cold(client, 'ECHO', text)]);
    expect(await Promise.all(replies)).toEqual(['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd']);
    await until(() => uncaught.length > 0, 'the error to surface');
    expect(await Promise.all(logged)).toEqual(['fast', 'cold']);
  });

  it('every caller gets its reply when a message listener throws', async () => {
    const uncaught = collectUncaught();
    const client = await create({}, { protocol: 3 });
    client.on('message', (_channel: string, message: string) => {
      throw new Error(`by the listener of ${message}`);
    });
    await client.subscribe(`${prefix}thrown`);
    const replies = [
      client.echo('a'),
      client.publish(`${prefix}thrown`, '1'),
      client.echo('b'),
      client.publish(`${prefix}thrown`, '2'),
      cold(client, 'ECHO', 'c'),
      client.echo('d'),
    ];
    expect(await Promise.all(replies)).toEqual(['a', 1, 'b', 1, 'c', 'd']);
    await until(() => uncaught.length === 2, 'both errors to surface');
    expect(uncaught.map(({ message }) => message)).toEqual(['by the listener of 1', 'by the listener of 2']);
  });

  it.each(HOSTS.map((host) => [host.name, host] as const))('when a callback throws: %s', async (_, host) => {
    const uncaught = collectUncaught();
    const client = await ready(host.createCoalesced(redisUrl()));
    const behind = [client.echo('a')];
    client.echo('x', () => {
      throw new Error('by the callback');
    });
    behind.push(client.echo('b'), client.echo('c'));
    expect(await Promise.all(behind)).toEqual(['a', 'b', 'c']);
    await until(() => uncaught.length === 1, 'the error to surface');
    expect(await client.echo('still')).toBe('still');
  });

  it.each(HOSTS.map((host) => [host.name, host] as const))('when a tracer’s resolve() throws: %s', async (_, host) => {
    const uncaught = collectUncaught();
    const client = await ready(host.createCoalesced(redisUrl()));
    const replies = [client.echo('a'), cold(client, 'ECHO', 'x'), client.echo('b'), cold(client, 'ECHO', 'c')];
    const command = client.commandQueue.peekAt(1)?.command as unknown as { resolve: (value: unknown) => void };
    command.resolve = () => {
      throw new Error('by resolve');
    };
    expect(await Promise.all([replies[0], replies[2], replies[3]])).toEqual(['a', 'b', 'c']);
    await until(() => uncaught.length === 1, 'the error to surface');
    expect(await client.echo('still')).toBe('still');
  });

  it.each([
    ['ioredis6', ioredis6],
    ['ioredis5', ioredis5],
    ['iovalkey', iovalkey],
  ] as const)('when a reply transformer sends commands that the host writes: %s', async (name, host) => {
    const commands = COMMANDS[name];
    onTestFinished(() => void delete commands._transformer.reply.get);
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      const key = `${prefix}${kind}`;
      let closes = 0;
      client.on('close', () => void closes++);
      const sent: Promise<unknown>[] = [];
      commands.setReplyTransformer('get', (value) => {
        sent.push(cold(client, 'ECHO', 'x'), cold(client, 'ECHO', 'y'));
        return value;
      });
      const values = await Promise.all([client.get(key), client.get(key), client.incr(key)]);
      delete commands._transformer.reply.get;
      await client.del(key);
      return [values, await Promise.all(sent), closes];
    });
  });
});

describe('Invariant 8: every flush that is scheduled happens once, or its batch is discarded with its connection', () => {
  it('schedules one flush per batch, and a second flush writes nothing', async () => {
    const { schedule, flushes, takeOver } = handSchedule();
    const client = await create({ schedule });
    takeOver();
    const spy = spyOnSocket(client);
    const replies = [client.echo('a'), cold(client, 'ECHO', 'b'), client.multi().echo('c').exec()];
    await ticked();
    expect(flushes).toHaveLength(1);
    flushes[0]?.();
    flushes[0]?.();
    expect(spy.writes).toHaveLength(1);
    await Promise.all(replies);
    const later = client.echo('d');
    await ticked();
    expect(flushes).toHaveLength(2);
    flushes[1]?.();
    expect(await later).toBe('d');
    expect(spy.writes).toHaveLength(2);
  });

  it('flushes commands that are issued after a flush by size', async () => {
    const client = await create({ maxBatchSize: 4 });
    const texts = Array.from({ length: 23 }, (_, n) => String(n));
    expect(await Promise.all(texts.map((text) => client.echo(text)))).toEqual(texts);
    const { flushReasons } = client.coalescer.stats();
    expect(flushReasons.size).toBe(5);
    for (const text of texts) expect(await client.echo(text)).toBe(text);
  });

  it('loses no command when the user’s schedule throws', async () => {
    const uncaught = collectUncaught();
    let throwing = false;
    const schedule = (flush: () => void): void => {
      if (throwing) throw new Error('by the schedule');
      setImmediate(flush);
    };
    const client = await create({ schedule });
    throwing = true;
    expect(await Promise.all([client.echo('a'), cold(client, 'ECHO', 'b')])).toEqual(['a', 'b']);
    await until(() => uncaught.length === 1, 'the error to surface');
  });

  it('a flush scheduled on a lost connection sends the open batches once, and no lost command', async () => {
    const { schedule, flushes, takeOver } = handSchedule();
    const proxy = await startProxy(redisUrl());
    const client = await ready(ioredis6.createCoalesced(proxy.url, { retryStrategy: () => 5 }, { schedule }));
    takeOver();
    const replies = [client.echo('a'), cold(client, 'ECHO', 'b')];
    await ticked();
    const late = flushes.splice(0);
    expect(late).toHaveLength(1);
    proxy.reset();
    await until(() => client.status !== 'ready', 'the lost connection to be noticed');
    while (client.status !== 'ready') {
      for (const flush of flushes.splice(0)) flush();
      await sleep(1);
    }
    const spy = spyOnSocket(client);
    const { batches } = client.coalescer.stats();
    // A throttle may have forgotten the flushes of this connection for it.
    for (const flush of [...late, ...late, ...flushes.splice(0)]) flush();
    expect(spy.writes).toHaveLength(1);
    expect(client.coalescer.stats().batches).toBe(batches + 1);
    expect(await Promise.all(replies)).toEqual(['a', 'b']);
    expect(proxy.received().split('\r\na\r\n')).toHaveLength(2);
  });
});

describe('Invariant 9: when the host drops its data listener, our reader stops at once', () => {
  const ADDED: Readonly<Record<string, (client: Client) => void>> = {
    none: () => {},
    "the host's, of socketTimeout": () => {},
    'that of detach()': (client) => (client as Partial<Coalesced>).coalescer?.detach(),
    "the user's": (client) => (client as unknown as { stream: Duplex }).stream.on('data', () => {}),
  };

  it.each(
    HOSTS.flatMap((host) =>
      (host === ioredis6 ? ['?\r\n'] : ['?\r\n', '_\r\n']).flatMap((bad) =>
        Object.keys(ADDED).map((added) => [host.name, bad, added, host] as const),
      ),
    ),
  )(
    'a command of an error listener is not answered from the rest of the chunk: %s, %j, another listener: %s',
    async (...[, bad, added, host]) => {
      const plain = await expectAsPlain(async (kind) => {
        const server = await startScriptedServer((command, connection) => {
          if (handshake(command) !== undefined) return handshake(command);
          if (connection > 1) return bulk(`resent ${command[1]}`);
          return `${bulk('own')}${bad}${bulk('wrong').repeat(5)}`;
        });
        const options: RedisOptions = host === ioredis6 ? { protocol: 2 } : {};
        options.retryStrategy = () => 5;
        if (added !== 'none') options.socketTimeout = 60_000;
        const client = await connectAs(kind, host, server.url, options);
        const issued: Promise<unknown>[] = [];
        client.once('error', () => {
          ADDED[added]?.(client);
          issued.push(cold(client, 'ECHO', 'cold from the listener'), client.echo('fast from the listener'));
        });
        const settled = await outcomes([client.echo('a'), client.echo('b'), client.echo('c')]);
        return [settled, await outcomesWithin(100, issued), await outcomes([client.echo('later')])];
      });
      expect(JSON.stringify(plain)).not.toContain('wrong');
    },
  );

  it('reads no more of the chunk after removeAllListeners("data"), and encodes nothing', async () => {
    const client = await create({}, { protocol: 3, retryStrategy: null as never });
    await client.subscribe(`${prefix}dropped`);
    const { stream } = client;
    client.on('message', () => stream.removeAllListeners('data'));
    const replies = [
      client.echo('before'),
      client.publish(`${prefix}dropped`, 'x'),
      client.echo('a'),
      client.echo('b'),
    ];
    const settled = await outcomesWithin(60, replies);
    expect(settled[0]).toEqual({ value: 'before' });
    expect(settled.slice(2)).toEqual(['open', 'open']);
    const { fastCommands } = client.coalescer.stats();
    const after = outcomes([client.echo('after')]);
    expect(client.coalescer.stats().fastCommands).toBe(fastCommands);
    stream.destroy();
    expect((await after)[0]).toHaveProperty('error');
  });
});

describe('Invariant 10: commands in the backlog are in the host’s queue', () => {
  async function stalled(options: RedisOptions = {}) {
    const proxy = await startProxy(redisUrl());
    const client = await ready(ioredis6.createCoalesced(proxy.url, options, { maxInFlight: 3 }));
    const spy = spyOnSocket(client);
    proxy.stall();
    return { proxy, client, spy };
  }

  it('queues entries at once, and holds only their bytes back', async () => {
    const { proxy, client, spy } = await stalled();
    const replies: Promise<unknown>[] = [];
    for (let n = 0; n < 12; n += 1)
      replies.push(n % 2 === 0 ? client.echo(String(n)) : cold(client, 'ECHO', String(n)));
    replies.push(client.pipeline().echo('12').echo('13').exec());
    await sleep(10);
    expect(client.commandQueue.length).toBe(14);
    expect(commandNames(spy.text())).toHaveLength(3);
    expect(client.coalescer.stats()).toMatchObject({ inFlight: 14, queued: 11 });
    proxy.resume();
    expect((await Promise.all(replies)).flat(2).filter((value) => value !== null)).toEqual(
      Array.from({ length: 14 }, (_, n) => String(n)),
    );
  });

  it('select, re-send and maxRetriesPerRequest see every held command', async () => {
    const { proxy, client } = await stalled({ retryStrategy: () => 5 });
    const k = `${prefix}selected`;
    const replies: Promise<unknown>[] = [];
    for (const db of [6, 7, 8]) {
      replies.push(client.select(db), client.set(k, `in ${db}`), cold(client, 'GET', k), client.get(k), client.del(k));
    }
    await sleep(10);
    proxy.reset();
    proxy.resume();
    const expected = [6, 7, 8].flatMap((db) => ['OK', 'OK', `in ${db}`, `in ${db}`, 1]);
    expect(await Promise.all(replies)).toEqual(expected);
    expect(client.options.db).toBe(0);

    const settle = async (maxInFlight: number) => {
      const other = await startProxy(redisUrl());
      const options = { maxRetriesPerRequest: 0, retryStrategy: () => 5 };
      const limited = await ready(ioredis6.createCoalesced(other.url, options, { maxInFlight }));
      other.stall();
      const asked = Array.from({ length: 10 }, (_, n) =>
        n % 3 === 0 ? cold(limited, 'ECHO', 'x') : limited.echo('x'),
      );
      await sleep(10);
      other.reset();
      return outcomes(asked);
    };
    const flushed = await settle(2);
    expect(flushed).toEqual(await settle(1_000));
    expect(flushed[9]).toMatchObject({ error: expect.stringContaining('MaxRetriesPerRequestError') });
  });

  it('a transaction that is sent command by command is not interrupted by maxInFlight', async () => {
    const { proxy, client, spy } = await stalled();
    const replies = [client.multi({ pipeline: false }), client.get(prefix), cold(client, 'ECHO', 'x')];
    for (let n = 0; n < 5; n += 1) replies.push(n % 2 === 0 ? client.echo('y') : cold(client, 'ECHO', 'z'));
    replies.push(client.exec(), client.echo('behind it'));
    await sleep(10);
    expect(commandNames(spy.text()).join(' ')).toBe('multi get echo echo echo echo echo echo exec');
    proxy.resume();
    expect((await Promise.all(replies)).slice(-2)).toEqual([expect.any(Array), 'behind it']);
  });

  it('maxInFlight never splits a transaction or a pipeline', async () => {
    const { proxy, client, spy } = await stalled();
    const replies = [
      client.echo('a'),
      client.echo('b'),
      client.multi().echo('c').exec(),
      client.pipeline().echo('d').echo('e').exec(),
      client.multi().echo('f').echo('g').echo('h').echo('i').exec(),
      client.echo('j'),
    ];
    await sleep(10);
    expect(commandNames(spy.text())).toEqual(['echo', 'echo']);
    proxy.resume();
    await Promise.all(replies);
    const withMulti = spy.writes.map((bytes) => commandNames(bytes.toString()));
    for (const names of withMulti) {
      expect(names.filter((name) => name === 'multi')).toHaveLength(names.filter((name) => name === 'exec').length);
    }
    expect(withMulti.flat()).toHaveLength(2 + 3 + 2 + 6 + 1);
  });
});
