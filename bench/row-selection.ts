import { DESIGN_ROWS } from './design-rows.js';
import type { Experiment } from './experiments/experiment.js';
import { EXPERIMENTS } from './experiments/index.js';
import { PEER_ROWS } from './peer-rows.js';
import type { Case, ClientRow, Row } from './rows.js';

export const ROWS: readonly Row[] = [...DESIGN_ROWS, ...PEER_ROWS];

export interface Selection {
  readonly rows: readonly Row[];
  readonly experiments: readonly Experiment[];
}

export const IDS: readonly string[] = [...ROWS, ...EXPERIMENTS].map(({ id }) => id);

/**
 * The rows with one case from the middle, but for those of which each case is code of its own; of memory, which takes as
 * long as its commands are many, the smallest.
 */
export function shortened(rows: readonly Row[]): readonly Row[] {
  return rows.map((row) => (row.kind === 'client' ? { ...row, cases: casesInSmoke(row) } : row));
}

function casesInSmoke({ id, cases }: ClientRow): readonly Case[] {
  if (id === 'operations') return cases;
  // Read and written, of the smallest and the largest values.
  if (id === 'values') return [...cases.slice(0, 2), ...cases.slice(-2)];
  return [cases[id === 'memory' ? 0 : cases.length >> 1]!];
}

/** What has an id that starts with one of the filters; everything where there is no filter. */
export function select(filters: readonly string[]): Selection {
  for (const filter of filters) {
    if (IDS.some((id) => id.startsWith(filter))) continue;
    throw new Error(`nothing's id starts with "${filter}"; the ids are ${IDS.join(', ')}`);
  }
  const chosen = ({ id }: { readonly id: string }) => filters.length === 0 || filters.some((one) => id.startsWith(one));
  return { rows: ROWS.filter(chosen), experiments: EXPERIMENTS.filter(chosen) };
}
