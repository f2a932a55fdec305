import type { Panel, Series } from '../panel.js';
import type { Figures } from '../workload.js';
import type { Cell, Readings } from './lab.js';

/** Measurements of some series at some places of an axis. */
export interface Grid {
  readonly xs: readonly string[];
  readonly series: readonly string[];
  /** undefined where a series has nothing at that place */
  run(series: string, x: string): (() => Promise<Figures>) | undefined;
}

const idOf = (series: string, x: string) => `${series}, ${x}`;

export function cellsOf(grid: Grid): Cell[] {
  return grid.series.flatMap((series) =>
    grid.xs.flatMap((x) => {
      const run = grid.run(series, x);
      return run === undefined ? [] : [{ id: idOf(series, x), run }];
    }),
  );
}

/** One figure of all the grid's cells. */
export function panelOf(
  grid: Pick<Grid, 'xs' | 'series'>,
  readings: ReadonlyMap<string, Readings>,
  figure: string,
  panel: Omit<Panel, 'x' | 'series'> & { readonly x: string },
): Panel {
  const series = grid.series.map((name): Series => {
    return { name, values: grid.xs.map((x) => readings.get(idOf(name, x))?.spread(figure) ?? null) };
  });
  return { ...panel, x: { title: panel.x, values: grid.xs }, series };
}

/** `12,345` or `1.23`; `–` where nothing was measured. */
export function say(value: number | undefined): string {
  if (value === undefined) return '–';
  return value >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

export function ratio(of: number | undefined, to: number | undefined): string {
  return of === undefined || to === undefined ? '–' : `${say(of / to)}×`;
}
