/** Headline ratios of two runs on one machine, and whether their intervals meet. */

import { markdownTable } from '../../tools/documents.js';
import { compare } from '../suite/evaluate.js';
import { type BenchmarkResult, caseOf } from '../suite/results.js';
import { METRICS } from '../variants/protocol.js';
import { labelOf } from './drawing.js';
import { HEADLINES, SHOWN } from './headlines.js';
import { ranged } from './tables.js';

const HEAD = ['', '', '', 'first run', 'second run', ''];

/** Of the benchmarks that both runs have; undefined if there are none. */
export function agreementText(first: readonly BenchmarkResult[], second: readonly BenchmarkResult[]) {
  const rows = HEADLINES.flatMap(({ title, benchmark, id, of, versus }) =>
    SHOWN.flatMap((metric) => {
      const [one, other] = [first, second].map((all) => compare({ metric, of, versus }, caseOf(all, benchmark, id)));
      if (one === undefined || other === undefined) return [];
      const meet = one.low <= other.high && other.low <= one.high;
      const clients = `${labelOf(of)} ÷ ${labelOf(versus)}`;
      return [[title, clients, METRICS[metric].title, ranged(one), ranged(other), meet ? '' : '**differ**']];
    }),
  );
  if (rows.length === 0) return undefined;
  const agreeing = rows.filter((row) => row.at(-1) === '').length;
  return `${agreeing} of ${rows.length} intervals meet.\n\n${markdownTable(HEAD, rows)}`;
}
