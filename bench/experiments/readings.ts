import { type Drawn, type Figure, type FigureValue, figureOf, type XAxis } from '../report/figure.js';
import { spread } from '../suite/stats.js';
import type { Measurements } from '../variants/protocol.js';

/** Some series, at some places of an axis. */
export interface Axes {
  readonly x: XAxis;
  readonly series: readonly string[];
}

const cellId = (series: string, place: string) => `${series}, ${place}`;

export function cellsOf({ series, x: [, places] }: Axes) {
  return series.flatMap((name) => places.map((place) => ({ series: name, place, id: cellId(name, place) })));
}

export type Readings = ReturnType<typeof readingsOf>;

/** What was measured of each series at each place, over the rounds. */
export function readingsOf({ series, x: [x, places] }: Axes, rounds: ReadonlyMap<string, readonly Measurements[]>) {
  const of = (name: string, place: string) => rounds.get(cellId(name, place)) ?? [];
  const at = (name: string, place: string, measurement: string): FigureValue => {
    const values = of(name, place).map((measured) => measured[measurement]);
    return spread(values.filter((value) => typeof value === 'number' && Number.isFinite(value)) as number[]) ?? null;
  };
  return {
    at,
    /** Of a measurement that is a list: element by element. */
    listAt(name: string, place: string, measurement: string): FigureValue[] {
      const lists = of(name, place).flatMap((measured) => {
        const value = measured[measurement];
        return typeof value === 'object' ? [value] : [];
      });
      return (lists[0] ?? []).map((_, index) => spread(lists.flatMap((list) => list[index] ?? [])) ?? null);
    },
    /** One measurement of every series that could be measured. */
    figure(id: string, title: string, measurement: string, unit: string, drawn: Drawn = {}): Figure {
      const measured = series.filter((name) => places.some((place) => of(name, place).length > 0));
      const values = measured.map((name) => ({ name, values: places.map((place) => at(name, place, measurement)) }));
      return figureOf(id, title, [x, places], unit, values, drawn);
    },
  };
}
