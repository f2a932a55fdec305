/** What being watched costs, as ratios; the figures themselves stand above them. */

import type { Metric } from '../benchmarks/benchmark.js';
import { WATCHED } from '../benchmarks/watching.js';
import { compare } from '../suite/evaluate.js';
import { type BenchmarkResult, variantOf } from '../suite/results.js';
import { type Cells, ranged } from './tables.js';

const HEAD = ['', 'CPU ÷ not watched', 'CPU ÷ ioredis, watched alike', 'throughput ÷ ioredis, watched alike'];

/** undefined where that was not measured */
export function watchedCells({ cases: [found], id }: BenchmarkResult): Cells | undefined {
  if (id !== 'watching' || found === undefined) return undefined;
  const rows = Object.entries(WATCHED).flatMap(([of, { text, plain }]) => {
    const alone = of.startsWith('plain') ? 'plain' : 'coalesced';
    if (of === 'plain' || variantOf(found, of) === undefined) return [];
    const ratio = (metric: Metric, versus: string) => {
      const spread = of === versus ? undefined : compare({ metric, of, versus }, found);
      return spread === undefined ? '' : ranged(spread);
    };
    return [[text, ratio('cpu', alone), ratio('cpu', plain), ratio('throughput', plain)]];
  });
  return { head: HEAD, rows };
}
