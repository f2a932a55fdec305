import { expect, it } from 'vitest';
import { growth, useMemory } from '../helpers/hostile/memory.js';
import { ioredis6 as host } from '../helpers/hosts.js';

it('the heap is flat over commands and reconnects', { timeout: 120_000 }, async () => {
  const { heaps, ...done } = await useMemory({ host, commands: 120_000, reconnects: 60, samples: 20 });
  expect(done).toEqual({ commands: 120_000, reconnects: 60 });
  console.log(`heap in KiB after ${done.commands} commands: ${heaps.map((heap) => Math.round(heap / 1024)).join(' ')}`);
  // A leak of 20 bytes per command, or of 20 KiB per reconnect, would be more.
  expect(growth(heaps)).toBeLessThan(0.03);
});
