/** Pipelines of more than V8's longest string: nothing is joined without a limit. */
import { describe, expect, it } from 'vitest';
import type { PipelineEntry } from '../../src/pipelines/pipeline-entry.js';
import { encodePipeline } from '../../src/pipelines/send-pipeline.js';
import { appendParts, type Part } from '../../src/resp/encoder.js';
import { createAs } from '../helpers/beside.js';
import { ioredis6, ready } from '../helpers/hosts.js';
import { redisUrl } from '../helpers/redis.js';

/** Far below the longest string, 2^29 characters. */
const LONGEST = 1024 * 1024;

function longest(parts: readonly Part[]): number {
  return Math.max(...parts.map((part) => part.length));
}

describe('a pipeline of many values', () => {
  it.each([
    ['Buffers', Buffer.alloc(4_096, 'b')],
    ['text that is not ASCII', 'é'.repeat(2_000)],
    ['text that is', 'x'.repeat(4_000)],
  ])('of %s is encoded in pieces', async (_, value) => {
    const client = await ready(createAs('coalesced', ioredis6, redisUrl()));
    const pipeline = client.pipeline();
    for (let index = 0; index < 2_000; index += 1) pipeline.set('k', value);
    const commands = (pipeline as unknown as { _queue: PipelineEntry[] })._queue;
    const parts = encodePipeline(commands, client as never);
    expect(parts.reduce((sum, part) => sum + part.length, 0)).toBeGreaterThan(2_000 * 4_000);
    expect(longest(parts)).toBeLessThan(LONGEST);
  });

  it('appended to others, piece by piece', () => {
    const parts: Part[] = [];
    for (let index = 0; index < 100; index += 1) appendParts(parts, ['x'.repeat(50_000)]);
    expect(longest(parts)).toBeLessThan(LONGEST);
    expect(parts.join('')).toHaveLength(5_000_000);
  });
});
