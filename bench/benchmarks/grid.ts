/** Every burst size at every value size, read and written, by one loop: is any of them slower than plain? */

import { type Benchmark, benchmark, burst } from './benchmark.js';

export const BURSTS = [1, 3, 5, 8, 20, 50, 200, 1000];
export const VALUES = {
  '16 B': 16,
  '1 KiB': 2 ** 10,
  '16 KiB': 2 ** 14,
  '64 KiB': 2 ** 16,
  '1 MiB': 2 ** 20,
};
export const COMMANDS = ['GET', 'SET'] as const;
const MOST_BYTES = 64 * 2 ** 20;
const MOST_KEYS = 200;
const KEYS_BYTES = 16 * 2 ** 20;

export function gridCase(command: (typeof COMMANDS)[number], value: string, size: number): string {
  return `${command} ${size} × ${value}`;
}

const cases = COMMANDS.flatMap((command) =>
  Object.entries(VALUES).flatMap(([value, valueBytes]) =>
    BURSTS.filter((size) => size * valueBytes <= MOST_BYTES).map((size) => {
      const data = { keys: Math.min(MOST_KEYS, KEYS_BYTES / valueBytes), valueBytes };
      return burst(gridCase(command, value, size), size, command === 'GET' ? 'get' : 'set', data);
    }),
  ),
);

export const GRID: readonly Benchmark[] = [
  benchmark('grid', 'Bursts by size and value', ['plain', 'coalesced'], cases, {
    // For a picture.
    seconds: 0.3,
    most: 6,
    smokeCases: 1,
  }),
];
