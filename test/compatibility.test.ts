import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type Cell, compatibilityTable, type RunTimeCell, runTimeTable } from '../tools/matrix-report.js';

const read = (file: string) => readFile(new URL(`../${file}`, import.meta.url), 'utf8');
const cell = (node: string, server: string, failed: number): Cell => ({
  node,
  server,
  clients: 'ioredis 6.0.0',
  passed: 1_200,
  failed,
  seconds: 90,
});

describe('the compatibility table', () => {
  it('has versions of Node across, servers and clients down, and says what failed or was not run', () => {
    const cells = [cell('20.1.0', 'Redis 7', 0), cell('22.1.0', 'Redis 7', 2), cell('22.1.0', 'Valkey 9', 0)];
    expect(compatibilityTable({ date: '2026-01-01', quick: false, cells }).split('\n').slice(0, 4)).toEqual([
      '| server | clients | Node 20.1.0 | Node 22.1.0 |',
      '| --- | --- | --- | --- |',
      '| Redis 7 | ioredis 6.0.0 | 1,200 | 1,200, **2 failed** |',
      '| Valkey 9 | ioredis 6.0.0 |  | 1,200 |',
    ]);
  });

  it('in docs/compatibility.md agrees with the results', async () => {
    const results = JSON.parse(await read('docs/compatibility.json')) as {
      date: string;
      quick: boolean;
      cells: Cell[];
      runTimes: RunTimeCell[];
    };
    const document = await read('docs/compatibility.md');
    expect(document).toContain(compatibilityTable(results));
    expect(document).toContain(runTimeTable(results));
    expect(results.runTimes.map(({ runTime, failed }) => [runTime.split(' ')[0], failed])).toEqual([
      ['Bun', 0],
      ['Deno', 0],
    ]);
  });
});
