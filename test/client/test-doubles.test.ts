import { Redis as IORedis } from 'ioredis';
import { CODES, coalesce } from 'ioredis-coalesce';
import IORedisMock from 'ioredis-mock';
import { createClient, createCluster } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { endWithTest, sleep } from '../helpers/hosts.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings(CODES.TEST_DOUBLE);

let warnings: (Error & { code?: string })[] = [];
const onWarning = (warning: Error) => void warnings.push(warning);

beforeAll(() => void process.on('warning', onWarning));
afterAll(() => void process.off('warning', onWarning));
afterEach(() => {
  warnings = [];
});

function expectUntouched(client: object, properties: readonly PropertyKey[], prototype: unknown): void {
  expect(Reflect.ownKeys(client).filter((key) => key !== 'coalescer')).toEqual(properties);
  expect(Object.getPrototypeOf(client)).toBe(prototype);
}

describe('a test double for a client', () => {
  it('from ioredis-mock answers as before; one warning says that nothing is coalesced', async () => {
    for (const mock of [new IORedisMock(), new IORedisMock()]) {
      const properties = Reflect.ownKeys(mock);
      const prototype = Object.getPrototypeOf(mock) as object;
      const client = coalesce(mock, { maxBatchSize: 7 });
      expect(client).toBe(mock);
      expectUntouched(mock, properties, prototype);
      await client.set('k', '1');
      expect(await Promise.all([client.get('k'), client.incr('k')])).toEqual(['1', 2]);
      expect(await client.pipeline().get('k').exec()).toEqual([[null, '2']]);
      expect(client.coalescer.enabled).toBe(false);
      expect(client.coalescer.options.maxBatchSize).toBe(7);
      expect(client.coalescer.stats().commands).toBe(0);
      await client.flushall();
      mock.disconnect();
    }
    await sleep(5);
    expect(warnings.map(({ code }) => code)).toEqual([CODES.TEST_DOUBLE]);
    expect(warnings[0]?.message).toMatch(/^ioredis-coalesce: the client is a test double/);
  });

  it('from ioredis-mock’s Cluster is left unchanged', async () => {
    const cluster = coalesce(new IORedisMock.Cluster([{ host: '127.0.0.1', port: 1 }]));
    expect(await cluster.set('k', 'v')).toBe('OK');
    expect(cluster.coalescer.enabled).toBe(false);
  });

  it.each<[string, () => object]>([
    ['made by hand', () => ({ get: async () => 'v', set: async () => 'OK', quit: async () => 'OK' })],
    ['with mock functions', () => ({ get: vi.fn(async () => 'v') })],
    ['that is a mocked class', () => ({ sendCommand: vi.fn(), on: vi.fn(), get: vi.fn(async () => 'v') })],
    ['that is frozen', () => Object.freeze({ get: vi.fn(async () => 'v') })],
  ])('%s is left as it is', async (name, make) => {
    const fake = make() as { get(key: string): Promise<string> };
    const properties = Reflect.ownKeys(fake);
    const client = coalesce(fake);
    expect(client).toBe(fake);
    expectUntouched(fake, properties, Object.prototype);
    expect(await client.get('k')).toBe('v');
    if (name !== 'that is frozen') expect(client.coalescer.enabled).toBe(false);
  });

  it('does not include a client with a spy on it, which is coalesced', () => {
    const client = endWithTest(new IORedis({ lazyConnect: true }));
    vi.spyOn(client, 'get').mockResolvedValue('spied');
    vi.spyOn(client, 'sendCommand');
    expect(coalesce(client).coalescer.enabled).toBe(true);
  });

  it.each<[string, () => object]>([
    ['a client', () => createClient()],
    ['a cluster', () => createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] })],
  ])('is none: %s of node-redis, as the error says', (_, make) => {
    expect(() => coalesce(make())).toThrow(
      /, got an object that looks like a client of node-redis \(redis\), .*not supported$/,
    );
  });

  it.each<[string, () => object]>([
    ['a Map', () => new Map()],
    ['options', () => ({ host: '127.0.0.1' })],
  ])('is none: %s, which is refused', (_, make) => {
    expect(() => coalesce(make())).toThrow('coalesce() expects an ioredis or iovalkey client');
  });
});
