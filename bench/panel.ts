/** A figure that is a table and a chart at once: series of values over the same few places. */

import type { Spread } from './results.js';

export type PanelValue = Spread | null;

export interface Series {
  readonly name: string;
  /** One for each place on the x axis; null where there is none. */
  readonly values: readonly PanelValue[];
}

export interface Panel {
  readonly id: string;
  readonly title: string;
  /** Figures that somebody else published, on another machine. */
  readonly published?: true;
  readonly x: { readonly title: string; readonly values: readonly string[] };
  readonly y: { readonly title: string; readonly log?: true };
  readonly series: readonly Series[];
  readonly chart: 'line' | 'bar' | 'none';
}

/** A figure without rounds: a published one, or a count. */
export function exactly(value: number): Spread {
  return { median: value, min: value, max: value };
}

export function published(
  panel: Omit<Panel, 'published' | 'series'> & {
    series: readonly { name: string; values: readonly (number | null)[] }[];
  },
): Panel {
  const series = panel.series.map(({ name, values }) => ({
    name,
    values: values.map((value) => (value === null ? null : exactly(value))),
  }));
  return { ...panel, published: true, series };
}

/** The median at a place of a series, for the text about it. */
export function medianAt(panels: readonly Panel[], panelId: string, seriesName: string, x: string): number | undefined {
  const panel = panels.find(({ id }) => id === panelId);
  const series = panel?.series.find(({ name }) => name === seriesName);
  const place = panel?.x.values.indexOf(x) ?? -1;
  return series?.values[place]?.median;
}
