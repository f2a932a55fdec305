/** What all charts share: drawn by ECharts on the server side, repeatably, on one line. */

import { type EChartsOption, init } from 'echarts';

export const WIDTH = 860;
const FONT = "system-ui, 'DejaVu Sans', sans-serif";
export const OURS = '#0f766e';
export const OTHER = '#94a3b8';
/** What is ours but not the client by default. */
const SHADES = ['#0d9488', '#14b8a6'];
/** Of the others, none too pale to be seen; with the dashes and symbols below, no two lines are alike. */
const GREYS = ['#334155', '#64748b', '#94a3b8'];
const DASHES = ['solid', 'dashed', 'dotted'] as const;
const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond'];

const INK = '#1f2937';
export const SOFT = '#4b5563';
const GRID = '#e5e7eb';
export const PAPER = '#ffffff';

/** In the dark; what is not here, the cells of a heat map, stays as it is. */
const DARK: Readonly<Record<string, string>> = {
  [PAPER]: '#0d1117',
  // What ECharts draws of its own accord.
  '#fff': '#0d1117',
  '#3c3c41': '#9da7b3',
  '#54555a': '#9da7b3',
  '#b7b9be': '#4b5563',
  [INK]: '#e6edf3',
  [SOFT]: '#9da7b3',
  [GRID]: '#2b323b',
  [OURS]: '#2dd4bf',
  '#0d9488': '#14b8a6',
  '#14b8a6': '#5eead4',
  '#334155': '#e2e8f0',
  '#64748b': '#a3b1c6',
  '#94a3b8': '#64748b',
};

/** Names that a visitor knows. */
const LABELS: Readonly<Record<string, string>> = {
  plain: 'ioredis',
  plain5: 'ioredis 5',
  auto: 'ioredis, auto-pipelining',
  auto5: 'ioredis 5, auto-pipelining',
  'node-redis': 'node-redis, default timeout',
  'node-redis-no-timeout': 'node-redis, no timeout',
  'node-redis-cache': 'node-redis, cached',
  glide: 'valkey-glide',
  pipeline: 'ioredis, pipeline by hand',
  mget: 'ioredis, MGET by hand',
  cork: 'ioredis-coalesce, the cork',
  coalesced: 'ioredis-coalesce',
  'coalesced-timeout': 'ioredis-coalesce, `commandTimeout`',
  'coalesced-cache': 'ioredis-coalesce, cached',
  'coalesced-prefetch': 'ioredis-coalesce, prefetch',
  'coalesced-small-cache': 'ioredis-coalesce, cache of 100',
  'coalesced-pipeline': 'ioredis-coalesce, pipeline by hand',
  'coalesced-no-poll': 'ioredis-coalesce, no busy poll',
  'coalesced-tick': "ioredis-coalesce, `schedule: 'tick'`",
  'coalesced-fused': 'ioredis-coalesce, `fuseReads`',
  'coalesced-1000-in-flight': 'ioredis-coalesce, `maxInFlight: 1000`',
  'coalesced-batch-channel': 'ioredis-coalesce, batch channel watched',
  'coalesced-prometheus': 'ioredis-coalesce, scraped by Prometheus',
  'cork-otel': 'ioredis-coalesce, the cork, OpenTelemetry',
  'coalesced-otel': 'ioredis-coalesce, OpenTelemetry',
  'plain-otel': 'ioredis, OpenTelemetry',
  'auto-otel': 'ioredis, auto-pipelining, OpenTelemetry',
  'span-otel': 'OpenTelemetry alone',
  reference: 'bare socket',
  cluster: 'ioredis Cluster',
  'cluster-cork': 'ioredis-coalesce Cluster, the cork',
  'cluster-auto': 'ioredis Cluster, auto-pipelining',
  'cluster-coalesced': 'ioredis-coalesce Cluster',
  'no-redis': 'no Redis at all',
};

export function labelOf(variant: string): string {
  return LABELS[variant] ?? variant;
}

export interface Style {
  readonly colour: string;
  readonly dash: (typeof DASHES)[number];
  readonly symbol: string;
  /** Drawn stronger, and above the others. */
  readonly ours: boolean;
}

/** Ours in a colour of its own; the others in greys that can be told apart by their dashes and symbols. */
export function stylesOf(names: readonly string[]): Style[] {
  return names.map((name, index) => {
    const ours = /^cork|^coalesced/.test(name);
    const colour = name === 'coalesced' ? OURS : nth(ours ? SHADES : GREYS, index);
    return { colour, dash: nth(DASHES, index), symbol: nth(SYMBOLS, index), ours };
  });
}

function nth<T>(list: readonly T[], index: number): T {
  return list[index % list.length]!;
}

const VALUE_AXIS = {
  axisLabel: { color: SOFT },
  splitLine: { lineStyle: { color: GRID } },
  axisLine: { show: false },
};
/** What is the same in all of them. */
const THEME = {
  title: {
    left: 12,
    top: 8,
    textStyle: { fontSize: 14, color: INK },
    subtextStyle: { fontSize: 12, color: SOFT },
  },
  legend: { textStyle: { color: INK } },
  categoryAxis: {
    axisLabel: { color: INK },
    axisLine: { lineStyle: { color: SOFT } },
    axisTick: { show: false },
    nameTextStyle: { color: SOFT },
  },
  valueAxis: VALUE_AXIS,
  logAxis: VALUE_AXIS,
  bar: { label: { show: true, position: 'right', color: INK } },
};

export function draw(option: EChartsOption, height: number, width = WIDTH): string {
  const chart = init(null, THEME, { renderer: 'svg', ssr: true, width, height });
  chart.setOption({ animation: false, backgroundColor: PAPER, textStyle: { fontFamily: FONT }, ...option });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return inTheDark(stable(svg)).replace(/\s*\n\s*/g, ' ');
}

/** A background of its own in both modes: readable on any page. */
function inTheDark(svg: string): string {
  const rules = Object.entries(DARK).flatMap(([colour, dark]) =>
    ['fill', 'stroke'].flatMap((what) =>
      svg.includes(`${what}="${colour}"`) ? [`[${what}="${colour}"]{${what}:${dark}}`] : [],
    ),
  );
  const style = `<style>@media (prefers-color-scheme:dark){${rules.join('')}}</style>`;
  return svg.replace(/(?<=^<svg [^>]*>)/, style);
}

/**
 * ECharts numbers what it draws through the life of the process: numbered from one for each drawing, it is repeatable.
 */
function stable(svg: string): string {
  const ids = new Map<string, string>();
  return svg.replace(/zr\d+-(?:cls-\d+|[a-z]\d+)/g, (id) => {
    const known = ids.get(id) ?? `z${ids.size + 1}`;
    ids.set(id, known);
    return known;
  });
}
