/** Tracking while a full cache finds nothing: it is switched off, and on again when a key is read twice. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { Tracking } from '../../src/connection/tracking.js';
import { TransactionState } from '../../src/connection/transaction-state.js';
import type { HostClient } from '../../src/host/types.js';
import { type CoalescedClient, ioredis6, ready, sleep, until } from '../helpers/hosts.js';
import { startServer } from '../helpers/redis.js';
import { bulk, startScriptedServer } from '../helpers/scripted-server.js';

/** More than are needed to rest. */
const FRUITLESS_READS = 40_000;
const MORE_KEYS_THAN_ROOM = { maxEntries: 10 };

/** Reads keys once each, until the client's tracking rests. */
async function findNothing(client: CoalescedClient, prefix: string): Promise<void> {
  for (let read = 0; read < FRUITLESS_READS; read += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, index) => client.get(`${prefix}${read + index}`)));
  }
}

const entriesOf = (client: CoalescedClient) => client.coalescer.stats().cache?.entries;

async function hits(client: CoalescedClient, key: string): Promise<void> {
  const before = client.coalescer.stats().cache?.hits ?? 0;
  await until(() => {
    void client.get(key).catch(() => {});
    return (client.coalescer.stats().cache?.hits ?? 0) > before;
  }, `${key} is answered from memory`);
}

describe('on a server', () => {
  const start = async (cache: object) => {
    const server = await startServer();
    onTestFinished(() => server.stop());
    const client = await ready(ioredis6.createCoalesced(server.url, {}, { cache }));
    await hits(client, 'hot');
    return { client, url: server.url };
  };
  const isTracked = async (client: CoalescedClient) => /flags=\S*t/.test(String(await client.call('CLIENT', 'INFO')));

  it('is switched off when nothing has been found for long, and on again when a key is read twice', async () => {
    const { client, url } = await start(MORE_KEYS_THAN_ROOM);
    expect(await isTracked(client)).toBe(true);
    await findNothing(client, 'once:');
    expect(await isTracked(client)).toBe(false);
    expect(entriesOf(client)).toBe(0);
    const other = await ready(ioredis6.create(url));
    await other.set('hot', 'new');
    expect(await client.get('hot')).toBe('new');
    await hits(client, 'hot');
    expect(await isTracked(client)).toBe(true);
    await other.set('hot', 'newer');
    await sleep(50);
    expect(await client.get('hot')).toBe('newer');
  });

  it('counts the reads in between as misses', async () => {
    const { client } = await start(MORE_KEYS_THAN_ROOM);
    const before = client.coalescer.stats().cache?.misses ?? 0;
    await findNothing(client, 'once:');
    expect(client.coalescer.stats().cache?.misses).toBe(before + FRUITLESS_READS);
  });

  it('stays on with prefixes, where a read costs Redis nothing more', async () => {
    const { client } = await start({ ...MORE_KEYS_THAN_ROOM, prefixes: ['once:', 'hot'] });
    await findNothing(client, 'once:');
    expect(await isTracked(client)).toBe(true);
  });

  it.each([
    ['CLIENT TRACKING OFF', (client: CoalescedClient) => client.call('CLIENT', 'TRACKING', 'OFF')],
    ['RESET', (client: CoalescedClient) => client.call('RESET').then(() => client.call('HELLO', '3'))],
  ])('stays off on a connection after the user has sent %s', async (_, send) => {
    const { client } = await start(MORE_KEYS_THAN_ROOM);
    await findNothing(client, 'once:');
    await send(client);
    for (let round = 0; round < 100; round += 1) {
      await Promise.all(Array.from({ length: 100 }, () => client.get('hot')));
    }
    expect(await isTracked(client)).toBe(false);
    expect(entriesOf(client)).toBe(0);
  });
});

describe.each([
  ['before it was ready', true],
  ['when it was ready', false],
])('an OFF that was not answered is sent again on the next connection, %s', (_, enableReadyCheck) => {
  /** @param agrees - the server's reply to ON after that. */
  const start = async (agrees: string) => {
    const sent: string[] = [];
    const stored = { value: 'old' };
    const server = await startScriptedServer(([name = '', ...args], connection) => {
      if (name.toLowerCase() === 'hello')
        return `%2\r\n${bulk('server')}${bulk('redis')}${bulk('version')}${bulk('7.0.0')}`;
      if (name === 'info') return bulk('redis_version:7.0.0\r\nloading:0\r\n');
      if (name === 'get') return bulk(stored.value);
      if (args[0] !== 'TRACKING') return '+OK\r\n';
      sent.push(`${connection} ${args[1]}`);
      // The first connection is lost with the reply.
      if (sent.at(-1) === '1 OFF') return 'close';
      return sent.length === 5 ? agrees : '+OK\r\n';
    });
    const options = { retryStrategy: () => 1, enableReadyCheck };
    const client = await ready(ioredis6.createCoalesced(server.url, options, { cache: MORE_KEYS_THAN_ROOM }));
    await hits(client, 'hot');
    await findNothing(client, 'once:');
    await until(() => sent.length === 5, 'tracking is switched on again');
    expect(sent).toEqual(['1 ON', '1 OFF', '2 ON', '2 OFF', '2 ON']);
    return { client, stored };
  };

  it('and then ON, so that reads are answered from memory', async () => {
    const { client } = await start('+OK\r\n');
    await hits(client, 'hot');
  });

  it('and no read is answered from memory if the server refuses ON then', async () => {
    const { client, stored } = await start('-ERR no\r\n');
    for (let round = 0; round < 20; round += 1) {
      stored.value = `new ${round}`;
      expect(await client.get('hot')).toBe(stored.value);
    }
  });
});

describe('Tracking', () => {
  const start = async () => {
    const transaction = new TransactionState();
    const calls: string[] = [];
    const client = {
      status: 'ready',
      async call(name: string, ...args: string[]): Promise<unknown> {
        calls.push([name, ...args].join(' '));
        return args.length === 0 ? { version: '7.0.0' } : 'OK';
      },
    };
    const tracking = new Tracking(client as unknown as HostClient, [], transaction);
    await tracking.arm();
    calls.length = 0;
    return { tracking, transaction, client, calls };
  };

  it('does not rest within a transaction, whose EXEC would show the reply', async () => {
    const { tracking, transaction, calls } = await start();
    transaction.issued('multi');
    tracking.rest();
    expect([tracking.on, tracking.resting, calls]).toEqual([true, false, []]);
  });

  it('does not rest while the client is not ready: the command would reach another connection', async () => {
    const { tracking, client, calls } = await start();
    client.status = 'reconnecting';
    tracking.rest();
    expect([tracking.on, calls]).toEqual([true, []]);
  });

  it('is on again only when the server has agreed', async () => {
    const { tracking, calls } = await start();
    tracking.rest();
    expect([tracking.on, tracking.resting]).toEqual([false, true]);
    tracking.wake();
    tracking.wake();
    expect([tracking.on, tracking.resting]).toEqual([false, false]);
    expect(calls).toEqual(['CLIENT TRACKING OFF', 'CLIENT TRACKING ON']);
    await new Promise(setImmediate);
    expect(tracking.on).toBe(true);
  });

  it('an ON that was sent before OFF says nothing when it is answered', async () => {
    const { tracking, client } = await start();
    const answers: (() => void)[] = [];
    client.call = () => new Promise((resolve) => answers.push(() => resolve('OK')));
    tracking.rest();
    tracking.wake();
    tracking.switchesOff();
    await new Promise(setImmediate);
    expect(answers).toHaveLength(3);
    answers[1]?.();
    await new Promise(setImmediate);
    expect(tracking.on).toBe(false);
    answers[2]?.();
    await new Promise(setImmediate);
    expect(tracking.on).toBe(true);
  });

  it('never comes on again after its end', async () => {
    const { tracking, calls } = await start();
    tracking.rest();
    tracking.wake();
    tracking.end();
    await new Promise(setImmediate);
    expect(tracking.on).toBe(false);
    tracking.wake();
    tracking.rest();
    expect(calls).toEqual(['CLIENT TRACKING OFF', 'CLIENT TRACKING ON']);
  });
});
