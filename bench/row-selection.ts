import { DESIGN_ROWS } from './design-rows.js';
import type { Experiment } from './experiments/experiment.js';
import { EXPERIMENTS } from './experiments/index.js';
import { PEER_ROWS } from './peer-rows.js';
import type { Row } from './rows.js';

export const ROWS: readonly Row[] = [...DESIGN_ROWS, ...PEER_ROWS];

export interface Selection {
  readonly rows: readonly Row[];
  readonly experiments: readonly Experiment[];
}

export const IDS: readonly string[] = [...ROWS, ...EXPERIMENTS].map(({ id }) => id);

/** How many cases of a row have to run where they only have to run. */
const SMOKE_CASES = 2;

/** The rows with their first case and one from the middle; kinds of commands are all kept: each is code of its own. */
export function shortened(rows: readonly Row[]): readonly Row[] {
  return rows.map((row) => {
    if (row.kind !== 'client' || row.cases.length <= SMOKE_CASES || row.id === 'operations') return row;
    const cases = row.id === 'memory' ? row.cases.slice(0, 1) : [row.cases[0]!, row.cases[row.cases.length >> 1]!];
    return { ...row, cases };
  });
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
