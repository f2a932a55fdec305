import { CODES } from 'ioredis-coalesce/coalesce';
import { expect } from 'vitest';

/** Of calls under `maxPending`: those that were refused, and how many were not. */
export async function refused(calls: readonly Promise<unknown>[]): Promise<{ refused: number; answered: number }> {
  const settled = await Promise.allSettled(calls);
  const rejections = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason as { code?: unknown }] : []));
  expect(rejections.filter(({ code }) => code !== CODES.PENDING)).toEqual([]);
  return { refused: rejections.length, answered: settled.length - rejections.length };
}
