import { createRequire } from 'node:module';
import { describe, expect, it, vi } from 'vitest';
import { type Client, ready, sleep, until } from '../helpers/hosts.js';
import { uniquePrefix } from '../helpers/redis.js';
import { CLIENT_KINDS, expectTookPart } from './helpers/clients.js';

// Its `exports` name no types, so an import by name would have none.
type RedlockModule = typeof import('../../node_modules/redlock/dist/index.js');
const { default: Redlock, ExecutionError } = createRequire(import.meta.url)('redlock') as RedlockModule;

const MINUTE = 60_000;
const WORKERS = 25;

describe.each(CLIENT_KINDS)('redlock with $name', (kind) => {
  it('lets only one of many workers at a time into the critical section', async () => {
    const client = await ready(kind.create());
    const redlock = new Redlock([client], { retryCount: -1, retryDelay: 5, retryJitter: 5 });
    const prefix = uniquePrefix('redlock');
    let inside = 0;
    let mostInside = 0;
    const work = async () => {
      const lock = await redlock.acquire([`${prefix}lock`], MINUTE);
      inside += 1;
      mostInside = Math.max(mostInside, inside);
      // Lost, if two are at it at once.
      const seen = Number(await client.get(`${prefix}counter`));
      await sleep(1);
      await client.set(`${prefix}counter`, seen + 1);
      inside -= 1;
      await lock.release();
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
    expect(mostInside).toBe(1);
    expect(await client.get(`${prefix}counter`)).toBe(String(WORKERS));
    expect(await client.exists(`${prefix}lock`)).toBe(0);
    expectTookPart(kind, client, { batched: true, fast: true });
  });

  it('extends a lock, refuses a second holder, and frees the resource', async () => {
    const client = await ready(kind.create());
    const redlock = new Redlock([client], { retryCount: 1, retryDelay: 1, retryJitter: 0 });
    const resource = `${uniquePrefix('redlock')}lock`;
    const lock = await redlock.acquire([resource], MINUTE);
    expect(await client.get(resource)).toBe(lock.value);
    await expect(redlock.acquire([resource], MINUTE)).rejects.toBeInstanceOf(ExecutionError);

    const extended = await lock.extend(10 * MINUTE);
    expect(await client.pttl(resource)).toBeGreaterThan(5 * MINUTE);
    await extended.release();
    expect(await client.exists(resource)).toBe(0);
    await expect(extended.release()).rejects.toBeInstanceOf(ExecutionError);
    expectTookPart(kind, client, { batched: false, fast: true });
  });

  it('extends the lock while using() runs, and frees it after', async () => {
    const client = await ready(kind.create());
    const redlock = new Redlock([client], { driftFactor: 0, automaticExtensionThreshold: MINUTE - 200 });
    const resource = `${uniquePrefix('redlock')}lock`;
    const extend = vi.spyOn(redlock, 'extend');
    const result = await redlock.using([resource], MINUTE, async (signal) => {
      await until(() => extend.mock.settledResults.length > 0, 'an extension of the lock', 10_000);
      const held = await client.exists(resource);
      return { held, aborted: signal.aborted };
    });
    expect(result).toEqual({ held: 1, aborted: false });
    expect(extend.mock.settledResults[0]?.type).toBe('fulfilled');
    expect(await client.exists(resource)).toBe(0);
    expectTookPart(kind, client, { batched: false, fast: true });
  });

  it('needs only a majority of its servers', async () => {
    // Three databases stand for three servers.
    const clients = await Promise.all([1, 2, 3].map((db) => ready(kind.create({ db }))));
    const redlock = new Redlock(clients, { retryCount: 0 });
    const resource = `${uniquePrefix('redlock')}lock`;
    const [first, second] = clients as [Client, Client, Client];
    await first.set(resource, 'taken');
    const lock = await redlock.acquire([resource], MINUTE);
    await lock.release();

    await second.set(resource, 'taken');
    await expect(redlock.acquire([resource], MINUTE)).rejects.toBeInstanceOf(ExecutionError);
    expect(await Promise.all(clients.map((client) => client.get(resource)))).toEqual(['taken', 'taken', null]);
    await Promise.all(clients.map((client) => client.del(resource)));
    for (const client of clients) expectTookPart(kind, client, { batched: false, fast: true });
  });
});
