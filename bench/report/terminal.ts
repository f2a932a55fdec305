import Table from 'cli-table3';
import { evaluate } from '../suite/evaluate.js';
import type { BenchReport } from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import { type Cells, figureCells, resultCells, targetCells } from './tables.js';

/** The figures of each benchmark, then the one table of targets, so that it is what is left on the screen. */
export function printReport(report: BenchReport): void {
  for (const result of report.benchmarks) console.log(`\n${result.title}\n${terminalTable(resultCells(result))}`);
  for (const experiment of report.experiments) {
    console.log(`\n${experiment.title.toUpperCase()}`);
    for (const figure of experiment.figures) {
      console.log(`\n${figure.title}, ${figure.y.title}\n${terminalTable(figureCells(figure))}`);
    }
  }
  const targets = evaluate(report.benchmarks);
  if (targets.length > 0) console.log(`\n${terminalTable(targetCells(targets))}`);
  console.log(`\n${describeMachine(report.settings)}\n${describeRun(report.settings)}`);
  for (const { text } of report.notes) console.log(`Note: ${text}`);
  const [set, further] = [targets.map(({ met }) => met), targets.map(({ furtherMet }) => furtherMet)];
  if (targets.length > 0)
    console.log(`${count(set)} targets met, and ${count(further)} of what would be better still.`);
}

export function terminalTable({ head, rows }: Cells, compact = true): string {
  const instance = new Table({ head: [...head], style: { head: [], border: [], compact } });
  instance.push(...rows.map((row) => [...row]));
  return instance.toString();
}

function count(met: readonly (boolean | undefined)[]): string {
  return `${met.filter((one) => one === true).length} of ${met.filter((one) => one !== undefined).length}`;
}
