import Table from 'cli-table3';
import type { Row } from './run-both.js';

export function printTable(title: string, rows: readonly Row[]): void {
  const table = new Table({
    head: ['scenario', 'client', 'commands', 'replies', 'errors by kind', 'reconnects', 'open', 'twice', 'wrong'],
    style: { head: [], border: [], compact: true },
  });
  for (const { scenario, client, run } of rows) {
    const errors = [...run.errors].sort(([a], [b]) => a.localeCompare(b)).map(([kind, count]) => `${kind}: ${count}`);
    const figures = [run.reconnects, run.open, run.settledTwice, run.mismatches.length];
    table.push([scenario, client, run.commands, run.replies, errors.join('\n'), ...figures]);
  }
  console.log(`${title}\n${table.toString()}`);
}
