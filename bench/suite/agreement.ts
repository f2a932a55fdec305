/** `npx tsx bench/suite/agreement.ts FOLDER FOLDER`: headline ratios of two runs, and whether their intervals meet. */

import { HEADLINES } from '../report/headlines.js';
import { ranged } from '../report/tables.js';
import { terminalTable } from '../report/terminal.js';
import { METRICS } from '../variants/protocol.js';
import { compare } from './evaluate.js';
import { caseOf, readResults } from './results.js';

const runs = await Promise.all(
  process.argv.slice(2).map(async (folder) => (await readResults(folder)).flatMap(({ benchmarks }) => benchmarks)),
);
if (runs.length !== 2) throw new Error('expected the folders of two runs, each made with --out');
const rows = HEADLINES.flatMap(({ title, benchmark, id, of, versus }) =>
  (['cpu', 'serverCpu', 'p50', 'p99'] as const).flatMap((metric) => {
    const [one, other] = runs.map((all) => compare({ metric, of, versus }, caseOf(all, benchmark, id)));
    if (one === undefined || other === undefined) return [];
    const meets = one.low <= other.high && other.low <= one.high;
    return [[title, `${of} / ${versus}`, METRICS[metric].title, ranged(one), ranged(other), meets ? '' : 'differ']];
  }),
);
console.log(terminalTable({ head: ['work', 'clients', 'measure', 'first run', 'second run', ''], rows }));
console.log(`${rows.filter((row) => row.at(-1) === '').length} of ${rows.length} agree.`);
