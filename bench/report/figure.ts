/** A figure of an experiment, a table and a chart at once: series of values over the same few places. */

import type { Spread } from '../suite/stats.js';

export type FigureValue = Spread | null;

export interface Series {
  readonly name: string;
  /** One for each place on the x axis; null where there is none. */
  readonly values: readonly FigureValue[];
}

export interface Figure {
  readonly id: string;
  readonly title: string;
  /** Not drawn if it is not said. */
  readonly chart?: 'line' | 'bar';
  readonly x: { readonly title: string; readonly values: readonly string[] };
  readonly y: { readonly title: string; readonly log?: true };
  readonly series: readonly Series[];
}

/** The title of the x axis, and the places on it. */
export type XAxis = readonly [title: string, places: readonly string[]];
/** How a figure is drawn. */
export type Drawn = Pick<Figure, 'chart'> & { readonly log?: true | undefined };

export function figureOf(
  id: string,
  title: string,
  [x, values]: XAxis,
  unit: string,
  series: readonly Series[],
  { log, ...drawn }: Drawn = {},
): Figure {
  const y = { title: unit, ...(log === undefined ? {} : { log }) };
  return { id, title, ...drawn, x: { title: x, values }, y, series };
}

/** A value without rounds: a published one, or a count. */
export function exactly(value: number): Spread {
  return { median: value, min: value, max: value };
}

/** Figures that others published, measured on another machine: one series. */
export function published(
  id: string,
  title: string,
  x: XAxis,
  unit: string,
  [name, numbers]: readonly [name: string, numbers: readonly number[]],
): Figure {
  return figureOf(`published-${id}`, `Published: ${title}`, x, unit, [{ name, values: numbers.map(exactly) }]);
}

/** The median at a place of a series, for the text about it. */
export function medianAt(
  figures: readonly Figure[],
  figureId: string,
  seriesName: string,
  x: string,
): number | undefined {
  const figure = figures.find(({ id }) => id === figureId);
  const series = figure?.series.find(({ name }) => name === seriesName);
  return series?.values[figure?.x.values.indexOf(x) ?? -1]?.median;
}

/** `12,345` or `1.23`; `–` where nothing was measured. */
export function say(value: number | undefined): string {
  if (value === undefined) return '–';
  return value >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

export function ratio(of: number | undefined, to: number | undefined): string {
  return of === undefined || to === undefined ? '–' : `${say(of / to)}×`;
}
