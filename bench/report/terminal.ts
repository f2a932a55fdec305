import Table from 'cli-table3';
import { evaluate, titleOf } from '../suite/evaluate.js';
import { type GroupResult, pacedText } from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import { type Cells, resultCells, targetCells } from './tables.js';

/** The figures of each benchmark of a group, then its targets, so that they are what is left on the screen. */
export function printResults({ group, settings, notes, benchmarks }: GroupResult): void {
  console.log(`\n${group.toUpperCase()}`);
  for (const result of benchmarks) {
    console.log(`\n${titleOf(result.id)} (${result.id}, ${pacedText(result)})\n${terminalTable(resultCells(result))}`);
  }
  const targets = evaluate(benchmarks);
  if (targets.length > 0) console.log(`\n${terminalTable(targetCells(targets))}`);
  console.log(`\n${describeMachine(settings)}\n${describeRun(settings)}`);
  for (const note of notes) console.log(`Note: ${note}`);
  if (targets.length > 0) console.log(`${targets.filter(({ met }) => met).length} of ${targets.length} targets met.`);
}

export function terminalTable({ head, rows }: Cells, compact = true): string {
  const instance = new Table({ head: [...head], style: { head: [], border: [], compact } });
  instance.push(...rows.map((row) => [...row]));
  return instance.toString();
}
