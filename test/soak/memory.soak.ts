import { expect, it } from 'vitest';
import { growth, useMemory } from '../helpers/hostile/memory.js';
import { ioredis6 as host } from '../helpers/hosts.js';
import { soakScale } from './duration.js';

const COMMANDS = Math.ceil((10_000_000 * soakScale()) / 1_000) * 1_000;
const RECONNECTS = Math.max(40, Math.ceil(1_000 * soakScale()));

it(`the heap is flat over ${COMMANDS} commands and ${RECONNECTS} reconnects`, async () => {
  const { heaps, ...done } = await useMemory({
    host,
    commands: COMMANDS,
    reconnects: RECONNECTS,
    samples: 40,
    progress: (commands, reconnects, heap) =>
      console.log(`memory: ${commands} commands, ${reconnects} reconnects, heap ${(heap / 1024).toFixed(0)} KiB`),
  });
  console.log(`memory: grown by ${(growth(heaps) * 100).toFixed(2)}% from the second quarter to the last`);
  expect(done.commands).toBeGreaterThanOrEqual(COMMANDS);
  expect(done.reconnects).toBe(RECONNECTS);
  expect(growth(heaps)).toBeLessThan(0.03);
});
