/** What a test suite meets that puts something else in the place of the module `ioredis`, as jest.mock() does. */
import { Cluster, Redis } from 'ioredis-coalesce';
import { expect, it, vi } from 'vitest';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_TEST_DOUBLE');

vi.mock('ioredis', async () => {
  const { default: IORedisMock } = await import('ioredis-mock');
  return { default: IORedisMock, Redis: IORedisMock, Cluster: IORedisMock.Cluster };
});

it('the drop-in class over ioredis-mock answers from memory, with an idle coalescer', async () => {
  const redis = new Redis({ coalesce: { maxBatchSize: 7 } });
  expect(await redis.set('k', 'v')).toBe('OK');
  expect(await redis.get('k')).toBe('v');
  expect(redis.coalescer.enabled).toBe(false);
  expect(redis.coalescer.stats().commands).toBe(0);
  const copy = redis.duplicate();
  expect(await copy.get('k')).toBe('v');
  expect(copy.coalescer.enabled).toBe(false);
});

it('the drop-in Cluster over ioredis-mock answers from memory, with an idle coalescer', async () => {
  const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }]);
  expect(await cluster.set('c', 'v')).toBe('OK');
  expect(cluster.coalescer.enabled).toBe(false);
  expect(cluster.duplicate().coalescer.enabled).toBe(false);
});
