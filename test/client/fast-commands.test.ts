import { createRequire } from 'node:module';
import { setImmediate as turn } from 'node:timers/promises';
import { Command } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBlocking } from '../../src/calls/blocking-warning.js';
import { FAST_COMMANDS, type KeyRule } from '../../src/commands/fast-commands.js';
import { coalescedFake, connectFake, type FakeConnection, HOSTS } from '../helpers/fake-connection.js';
import type { HostName } from '../helpers/host-decoder.js';

const require = createRequire(import.meta.url);

interface CommandTable {
  readonly list: readonly string[];
  getKeyIndexes(name: string, args: readonly string[]): number[];
  hasFlag(name: string, flag: string): boolean;
}

const table = require('@ioredis/commands') as CommandTable;

const KEY_INDEXES: Record<Exclude<KeyRule, 'own'>, (count: number) => number[]> = {
  first: (count) => (count > 0 ? [0] : []),
  two: (count) => [0, 1].slice(0, count),
  all: (count) => Array.from({ length: count }, (_, index) => index),
  pairs: (count) => Array.from({ length: count / 2 }, (_, index) => index * 2),
  none: () => [],
};

const FLAGS = [
  'BLOCKING_COMMANDS',
  'ENTER_SUBSCRIBER_MODE',
  'EXIT_SUBSCRIBER_MODE',
  'WILL_DISCONNECT',
  'HANDSHAKE_COMMANDS',
] as const;

/** They change what their connection is, or answer with something else than one reply. */
const OF_THE_CONNECTION = `
  auth hello select swapdb client readonly readwrite asking reset quit monitor sync psync replconf shutdown
  multi exec discard watch unwatch subscribe unsubscribe psubscribe punsubscribe ssubscribe sunsubscribe
  wait waitaof failover debug`
  .trim()
  .split(/\s+/);

const RANDOM_OR_STATEFUL = `
  srandmember hrandfield zrandmember randomkey time spop scan hscan sscan zscan dbsize keys ping publish spublish
  eval evalsha object xpending`
  .trim()
  .split(/\s+/);

describe('fast commands', () => {
  it('are listed once each, in lower case', () => {
    const names = FAST_COMMANDS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z]+$/);
  });

  it('cover an everyday service', () => {
    const names = new Set(FAST_COMMANDS.map(({ name }) => name));
    const everyday = `get set mget mset incr decr del exists expire ttl hget hset hmget hgetall hincrby lpush rpush lpop
      rpop lrange llen sadd srem smembers sismember zadd zrem zrange zscore publish xadd eval evalsha ping`;
    for (const name of everyday.trim().split(/\s+/)) expect(names, name).toContain(name);
  });

  it('are known to every host', () => {
    for (const { name } of FAST_COMMANDS) {
      expect(table.list).toContain(name);
      expect(HOSTS.ioredis.prototype).toHaveProperty(name);
    }
  });

  it('neither block nor change their connection', () => {
    for (const { name } of FAST_COMMANDS) {
      expect(OF_THE_CONNECTION).not.toContain(name);
      expect(table.hasFlag(name, 'blocking'), name).toBe(false);
      for (const flag of FLAGS) expect(Command.checkFlag(flag, name), `${flag} of ${name}`).toBe(false);
    }
  });

  it('do not block the connection, and those that do are known', () => {
    const blocking = table.list.filter((name) => table.hasFlag(name, 'blocking'));
    expect(blocking).toContain('blpop');
    const unknown = blocking.filter((name) => !isBlocking({ name, args: ['BLOCK', '0', 'STREAMS'] }));
    expect(unknown).toEqual([]);
  });

  it('have their keys where the host has them', () => {
    for (const { name, keys } of FAST_COMMANDS) {
      if (keys === 'own') continue;
      for (const count of keys === 'pairs' ? [2, 4, 6] : [2, 3, 4, 5]) {
        const args = Array.from({ length: count }, (_, index) => `argument${index}`);
        expect(KEY_INDEXES[keys](count), `${count} arguments of ${name}`).toEqual(table.getKeyIndexes(name, args));
      }
    }
  });

  it('only read, where they may be shared', () => {
    for (const { name } of FAST_COMMANDS.filter(({ shareable }) => shareable)) {
      expect(RANDOM_OR_STATEFUL).not.toContain(name);
      expect(table.hasFlag(name, 'write'), name).toBe(false);
    }
  });

  describe.each(Object.keys(HOSTS) as HostName[])('with keyPrefix on %s', (hostName) => {
    let plain: FakeConnection;
    let coalesced: Awaited<ReturnType<typeof coalescedFake>>;

    beforeAll(async () => {
      plain = await connectFake({ hostName, keyPrefix: 'prefix:' });
      coalesced = await coalescedFake({}, { hostName, keyPrefix: 'prefix:' });
    });
    afterAll(() => {
      plain.client.disconnect();
      coalesced.client.disconnect();
    });

    async function written({ client, socket }: FakeConnection, name: string, calls: string[][]): Promise<string> {
      socket.writes.length = 0;
      for (const args of calls) {
        (client as unknown as Record<string, (...args: string[]) => Promise<unknown>>)[name]?.(...args).catch(() => {});
      }
      await turn();
      return socket.written.toString();
    }

    it('each is sent as by a plain client', async () => {
      for (const { name, keys } of FAST_COMMANDS) {
        if (!(name in HOSTS[hostName].prototype)) continue;
        const calls = (keys === 'pairs' ? [0, 2, 4] : [0, 1, 2, 3, 5]).map((count) =>
          Array.from({ length: count }, (_, index) => String(index)),
        );
        const expected = await written(plain, name, calls);
        expect(expected).toContain(name);
        expect(await written(coalesced, name, calls), name).toBe(expected);
      }
    });

    it('takes the fast path for most of them', () => {
      const { commands, fastCommands } = coalesced.client.coalescer.stats();
      expect(fastCommands / commands).toBeGreaterThan(0.7);
    });
  });
});
