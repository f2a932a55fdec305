import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const read = (file: string) => readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8');

interface Result {
  readonly commands: number;
  readonly failed: number;
  readonly heapMiB: number;
  readonly heapGrowth: number;
  readonly lastRssMiB: number;
  readonly connections: number;
}

it('the figures of an hour in docs/performance.md are those of the run', () => {
  const { results } = JSON.parse(read('bench/soak.json')) as { results: readonly Result[] };
  const document = read('docs/performance.md');
  for (const { commands, failed, heapMiB, heapGrowth, lastRssMiB, connections } of results) {
    const cells = [
      commands.toLocaleString('en-US'),
      `${heapMiB} MiB`,
      `${heapGrowth}×`,
      `${lastRssMiB} MiB`,
      connections,
    ];
    expect(document).toContain(` | ${cells.join(' | ')} |`);
    expect(failed).toBe(0);
  }
});
