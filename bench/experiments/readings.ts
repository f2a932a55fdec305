import type { Figure, FigureValue } from '../report/figure.js';
import { spread } from '../suite/stats.js';
import type { Measurements } from '../variants/protocol.js';

/** Measurements of some series at some places of an axis. */
export interface Grid {
  readonly x: readonly [title: string, places: readonly string[]];
  readonly series: readonly string[];
  /** undefined where a series has nothing at that place */
  run(series: string, place: string): (() => Promise<Measurements>) | undefined;
}

export interface Cell {
  readonly id: string;
  run(): Promise<Measurements>;
}

const idOf = (series: string, place: string) => `${series}, ${place}`;

export function cellsOf({ x: [, places], series, run }: Grid): Cell[] {
  return series.flatMap((one) =>
    places.flatMap((place) => {
      const measure = run(one, place);
      return measure === undefined ? [] : [{ id: idOf(one, place), run: measure }];
    }),
  );
}

/** What was measured on a grid, over the rounds. */
export class Readings {
  readonly #grid: Grid;
  readonly #rounds: ReadonlyMap<string, readonly Measurements[]>;

  constructor(grid: Grid, rounds: ReadonlyMap<string, readonly Measurements[]>) {
    this.#grid = grid;
    this.#rounds = rounds;
  }

  at(series: string, place: string, name: string): FigureValue {
    const values = this.#of(series, place).flatMap((measured) => {
      const value = measured[name];
      return typeof value === 'number' && Number.isFinite(value) ? [value] : [];
    });
    return spread(values) ?? null;
  }

  /** Of a measurement that is a list: element by element. */
  listAt(series: string, place: string, name: string): FigureValue[] {
    const lists = this.#of(series, place).flatMap((measured) => {
      const value = measured[name];
      return typeof value === 'object' ? [value] : [];
    });
    return (lists[0] ?? []).map((_, index) => spread(lists.flatMap((list) => list[index] ?? [])) ?? null);
  }

  /** One measurement of all the grid. */
  figure(
    id: string,
    title: string,
    measurement: string,
    unit: string,
    { chart, log }: { readonly chart?: Figure['chart']; readonly log?: true } = {},
  ): Figure {
    const [x, values] = this.#grid.x;
    const series = this.#grid.series.map((name) => {
      return { name, values: values.map((place) => this.at(name, place, measurement)) };
    });
    const y = { title: unit, ...(log === undefined ? {} : { log }) };
    return { id, title, ...(chart === undefined ? {} : { chart }), x: { title: x, values }, y, series };
  }

  #of(series: string, place: string): readonly Measurements[] {
    return this.#rounds.get(idOf(series, place)) ?? [];
  }
}
