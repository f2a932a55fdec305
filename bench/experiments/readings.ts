import type { Figure, FigureValue } from '../report/figure.js';
import { spread } from '../suite/stats.js';
import type { Measurements } from '../variants/protocol.js';

/** Some series, at some places of an axis. */
export interface Axes {
  readonly x: readonly [title: string, places: readonly string[]];
  readonly series: readonly string[];
}

const cellId = (series: string, place: string) => `${series}, ${place}`;

export function cellsOf({ series, x: [, places] }: Axes) {
  return series.flatMap((name) => places.map((place) => ({ series: name, place, id: cellId(name, place) })));
}

/** What was measured of each series at each place, over the rounds. */
export class Readings {
  readonly #axes: Axes;
  readonly #rounds: ReadonlyMap<string, readonly Measurements[]>;

  constructor(axes: Axes, rounds: ReadonlyMap<string, readonly Measurements[]>) {
    this.#axes = axes;
    this.#rounds = rounds;
  }

  at(series: string, place: string, name: string): FigureValue {
    const values = this.#of(series, place).map((measured) => measured[name]);
    return spread(values.filter((value) => typeof value === 'number' && Number.isFinite(value)) as number[]) ?? null;
  }

  /** Of a measurement that is a list: element by element. */
  listAt(series: string, place: string, name: string): FigureValue[] {
    const lists = this.#of(series, place).flatMap((measured) => {
      const value = measured[name];
      return typeof value === 'object' ? [value] : [];
    });
    return (lists[0] ?? []).map((_, index) => spread(lists.flatMap((list) => list[index] ?? [])) ?? null);
  }

  /** One measurement of every series that could be measured. */
  figure(
    id: string,
    title: string,
    measurement: string,
    unit: string,
    { log, ...drawn }: Pick<Figure, 'chart'> & { readonly log?: true } = {},
  ): Figure {
    const [x, places] = this.#axes.x;
    const measured = this.#axes.series.filter((name) => places.some((place) => this.#of(name, place).length > 0));
    const series = measured.map((name) => {
      return { name, values: places.map((place) => this.at(name, place, measurement)) };
    });
    const y = { title: unit, ...(log === undefined ? {} : { log }) };
    return { id, title, ...drawn, x: { title: x, values: places }, y, series };
  }

  #of(series: string, place: string): readonly Measurements[] {
    return this.#rounds.get(cellId(series, place)) ?? [];
  }
}
