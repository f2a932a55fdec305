/**
 * The functions of the host that the fast path stands in for (`STOOD_IN` in `src/host/functions.ts`): whoever replaces
 * one of them, before `coalesce()` or afterwards, gets what a plain client gives; and so when it is put back.
 */
import { CODES, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { exactDigest } from '../../src/host/digest.js';
import {
  type Holders,
  openNothing,
  reachClass,
  reachConnection,
  reachMade,
  reachModules,
  STOOD_IN,
  textOf,
} from '../../src/host/functions.js';
import { KNOWN_FUNCTIONS } from '../../src/host/known-releases.js';
import type { AnyFunction, HostCommandClass } from '../../src/host/types.js';
import { SCRIPTS, useEveryWay } from '../helpers/every-way.js';
import { type Client, type CoalescedClient, endWithTest, HOSTS, type Host, ready } from '../helpers/hosts.js';
import { type RedisServer, startServer, uniquePrefix } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings(CODES.UNKNOWN_CLIENT, CODES.REPLACED);

const keyPrefix = uniquePrefix('stood-in');
/** Its own, since SCRIPT FLUSH of others would make a command more. */
let server: RedisServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());
type Functions = Record<string, AnyFunction>;

/** The objects of a host that have these functions. */
function holdersOf({ Redis }: Host): Holders {
  const { prototype, Command } = Redis as unknown as { prototype: Functions; Command: HostCommandClass };
  const opened = openNothing(prototype, (prototype._connect ?? prototype.connect) as AnyFunction, { protocol: 3 });
  return {
    ...reachClass(prototype, Command, false),
    ...reachMade(prototype, false),
    ...reachModules(Command),
    ...reachConnection(opened),
  };
}

/** What a replacement does to the values that its function gets and gives, where that is text or a number. */
const changedText = (value: unknown): unknown => {
  if (typeof value === 'number') return value + 1000;
  return typeof value === 'string' && value.startsWith('value') ? `${value}, changed` : value;
};

/** Replaces a function by one that calls it; `changes` what it returns. */
function replace(holder: object, name: string, changes: boolean): { calls: number; restore(): void } {
  const own = Object.getOwnPropertyDescriptor(holder, name) as PropertyDescriptor;
  const original = own.value as AnyFunction;
  const replacement = {
    calls: 0,
    restore: () => void Object.defineProperty(holder, name, own),
  };
  const value = function (this: unknown, ...args: unknown[]) {
    replacement.calls += 1;
    const result = original.apply(this, args);
    return changes ? changedText(result) : result;
  };
  Object.defineProperty(holder, name, { ...own, value });
  onTestFinished(replacement.restore);
  return replacement;
}

const create = async (host: Host): Promise<Client> => {
  const client = await ready(endWithTest(new host.Redis(server.url, { keyPrefix, scripts: SCRIPTS })));
  await client.ping();
  return client;
};

const ENTRIES = Object.entries(STOOD_IN).flatMap(([place, names]) => names.map((name) => [place, name] as const));

describe.each(HOSTS)('$name', (host) => {
  const holders = holdersOf(host) as Record<string, object>;
  const entries = ENTRIES.filter(([place, name]) => Object.hasOwn(holders[place] ?? {}, name));

  it('has most of them', () => {
    expect(entries.length).toBeGreaterThan(25);
    expect(new Set(entries.map(([place]) => place))).toEqual(new Set(Object.keys(STOOD_IN)));
  });

  // Their normal form is made for bundles; making it costs the first client of a process milliseconds.
  it('has functions that are known by their published texts', () => {
    const { command, handler, decoder } = holders;
    for (const [place, holder] of Object.entries({ command, handler, decoder })) {
      for (const [name, digests] of Object.entries(KNOWN_FUNCTIONS[place] ?? {})) {
        const method = Object.getOwnPropertyDescriptor(holder, name)?.value as AnyFunction | undefined;
        if (method !== undefined) expect(digests.split(' ')).toContain(exactDigest(textOf(name, method)));
      }
    }
  });

  describe.each([false, true])('a replacement that changes values: %s', (changes) => {
    it.each(entries)('%s.%s, replaced afterwards', async (place, name) => {
      const [plain, unused] = [await create(host), await create(host)];
      const client = coalesce(unused) as CoalescedClient;
      await client.ping();
      // The first time a hash gets a field.
      await useEveryWay(plain);
      const before = await useEveryWay(plain);
      expect(await useEveryWay(client)).toEqual(before);
      const { fastCommands } = client.coalescer.stats();
      expect(fastCommands).toBeGreaterThan(12);
      const replaced = replace(holders[place] as object, name, changes);
      const expected = await useEveryWay(plain);
      const { calls } = replaced;
      replaced.calls = 0;
      expect(await useEveryWay(client)).toEqual(expected);
      // What splits bytes may be called more often, and what makes flags once.
      if (calls > 1) expect(replaced.calls).toBeGreaterThan(0);
      if (place === 'command' || place === 'pipeline') expect(replaced.calls).toBe(calls);
      const { fallbacks, fastCommands: now } = client.coalescer.stats();
      expect(now).toBe(fastCommands);
      expect(fallbacks.patched).toBeGreaterThan(10);
      replaced.restore();
      expect(await useEveryWay(client)).toEqual(before);
      expect(client.coalescer.stats().fastCommands).toBeGreaterThan(fastCommands + 12);
    });

    it.each(entries)('%s.%s, replaced before', async (place, name) => {
      const [plain, unused] = [await create(host), await create(host)];
      const before = await useEveryWay(plain);
      const replaced = replace(holders[place] as object, name, changes);
      const expected = await useEveryWay(plain);
      const client = coalesce(unused) as CoalescedClient;
      await client.ping();
      expect(await useEveryWay(client)).toEqual(expected);
      replaced.restore();
      expect(await useEveryWay(client)).toEqual(before);
      // A client that is coalesced now is fast.
      const later = coalesce(await create(host)) as CoalescedClient;
      await later.ping();
      expect(await useEveryWay(later)).toEqual(before);
      expect(later.coalescer.stats().fastCommands).toBeGreaterThan(12);
    });
  });
});
