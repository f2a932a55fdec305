import Table from 'cli-table3';
import { figures, panelCells, VERDICT_HEAD, verdictCells } from './format.js';
import type { BenchReport } from './results.js';
import { describeMachine, describeRun } from './settings.js';

/** The absolute figures of each row, then the one table of bars, so that the verdict is what is left on the screen. */
export function printReport(report: BenchReport): void {
  for (const row of report.rows) {
    const { head, rows } = figures(row);
    console.log(
      `\n${row.title} (figures per ${row.id.startsWith('fastify') ? 'request' : 'command'})\n${table(head, rows)}`,
    );
  }
  for (const experiment of report.experiments ?? []) {
    console.log(`\n${experiment.title.toUpperCase()}`);
    for (const panel of [...experiment.publishedPanels, ...experiment.panels]) {
      const { head, rows } = panelCells(panel);
      console.log(`\n${panel.title}, ${panel.y.title}\n${table(head, rows)}`);
    }
    for (const finding of experiment.findings) console.log(`- ${finding}`);
  }
  const verdicts = report.rows.flatMap(verdictCells);
  if (verdicts.length > 0) console.log(`\n${table(VERDICT_HEAD, verdicts)}`);
  console.log(`\n${describeMachine(report.settings)}\n${describeRun(report.settings)}`);
  for (const note of report.notes) console.log(`Note: ${note}`);
  if (verdicts.length > 0) console.log(summary(report));
}

export function barsMissed(report: BenchReport): number {
  return report.rows.flatMap((row) => row.verdicts).filter(({ holds }) => holds === false).length;
}

export function table(head: readonly string[], rows: readonly string[][]): string {
  const instance = new Table({ head: [...head], style: { head: [], border: [], compact: true } });
  instance.push(...rows);
  return instance.toString();
}

function summary(report: BenchReport): string {
  const judged = report.rows.flatMap((row) => row.verdicts);
  const bars = judged.filter(({ holds }) => holds !== undefined).length;
  const stretches = judged.filter(({ stretchHolds }) => stretchHolds !== undefined);
  const reached = stretches.filter(({ stretchHolds }) => stretchHolds).length;
  return `${bars - barsMissed(report)} of ${bars} bars hold, ${reached} of ${stretches.length} stretch goals.`;
}
