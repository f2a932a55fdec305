/** As `jest.mock('ioredis')` without a factory: every method is a mock that returns undefined. */
import { Redis } from 'ioredis-coalesce';
import { expect, it, vi } from 'vitest';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_TEST_DOUBLE');

vi.mock('ioredis');

it('the drop-in class over an automatic mock of ioredis is a mock too, with an idle coalescer', async () => {
  const redis = new Redis('redis://127.0.0.1:1');
  vi.mocked(redis.get).mockResolvedValue('mocked');
  expect(await redis.get('k')).toBe('mocked');
  expect(redis.get).toHaveBeenCalledWith('k');
  expect(redis.coalescer.enabled).toBe(false);
});
