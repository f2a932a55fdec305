/** What all charts share: drawn by ECharts on the server side, repeatably, on one line. */

import { type EChartsOption, init } from 'echarts';

export const WIDTH = 860;
const FONT = "system-ui, 'DejaVu Sans', sans-serif";
export const OURS = '#0f766e';
export const OTHER = '#94a3b8';
/** What is ours but not the client by default: its other modes, or several experiments with it. */
const SHADES = ['#0d9488', '#14b8a6', '#115e59', '#5eead4'];
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
  '#115e59': '#0d9488',
  '#5eead4': '#99f6e4',
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
  cork: 'ioredis-coalesce, cork-only',
  coalesced: 'ioredis-coalesce',
  'coalesced-cache': 'ioredis-coalesce, cached',
  'coalesced-immediate': 'ioredis-coalesce, one write per turn',
  reference: 'bare socket',
  cluster: 'ioredis Cluster',
  'cluster-auto': 'ioredis Cluster, auto-pipelining',
  'cluster-node-redis': 'node-redis cluster',
  'cluster-coalesced': 'ioredis-coalesce Cluster',
  'no-redis': 'no Redis at all',
  // Series of experiments.
  'plain producer, 250-byte messages': 'ioredis, producer, 250 B',
  'producer, 250-byte messages': 'ioredis-coalesce, producer, 250 B',
  'producer, 3-byte messages': 'ioredis-coalesce, producer, 3 B',
  'consumer, LPOP and BLPOP': 'ioredis-coalesce, consumer, LPOP and BLPOP',
  'reliable consumer, LMOVE and LREM': 'ioredis-coalesce, reliable consumer, LMOVE and LREM',
  'plain ioredis': 'ioredis',
  'batch 100': 'ioredis-coalesce, batch 100',
  'batch 1,000, in flight 1,000': 'ioredis-coalesce, batch 1,000, in flight 1,000',
  'the defaults: batch 1,000, in flight 10,000': 'ioredis-coalesce, the defaults: 1,000 and 10,000',
  'no limits to speak of': 'ioredis-coalesce, no limits to speak of',
};

/** A variant's name, or that of a series of an experiment: `at once, plain`. */
export function labelOf(name: string): string {
  const [, what, variant = name] = /^(.*), (plain|auto|coalesced)$/.exec(name) ?? [];
  const label = LABELS[variant] ?? variant;
  return what === undefined ? label : `${label} (${what})`;
}

const DEFAULT_CLIENT = /^(cluster-)?coalesced$|, coalesced$|^measured$/;
const OTHER_MODE = /^coalesced-|^cork$|^shareReads$/;
/** Series of experiments that vary the coalesced client alone. */
const OUR_EXPERIMENT = /^producer, |consumer, |^batch |^the defaults|^no limits|^\d+ callers?$/;

export interface Style {
  readonly colour: string;
  readonly dash: (typeof DASHES)[number];
  readonly symbol: string;
  /** Drawn stronger, and above the others. */
  readonly ours: boolean;
}

/** Ours in a colour of its own; the others in greys that can be told apart by their dashes and symbols. */
export function stylesOf(names: readonly string[]): Style[] {
  let ours = 0;
  let others = 0;
  const solo = names.filter((name) => DEFAULT_CLIENT.test(name)).length === 1;
  return names.map((name) => {
    if (solo && DEFAULT_CLIENT.test(name)) return { colour: OURS, dash: 'solid', symbol: 'circle', ours: true };
    if ([DEFAULT_CLIENT, OTHER_MODE, OUR_EXPERIMENT].some((pattern) => pattern.test(name))) {
      const colours = solo ? SHADES : [OURS, ...SHADES];
      return { colour: nth(colours, ours), dash: nth(DASHES, ours), symbol: nth(SYMBOLS, ours++), ours: true };
    }
    // Solid lines in each grey, then dashed ones.
    const dash = nth(DASHES, Math.floor(others / GREYS.length));
    return { colour: nth(GREYS, others), dash, symbol: nth(SYMBOLS, others++), ours: false };
  });
}

function nth<T>(list: readonly T[], index: number): T {
  return list[index % list.length]!;
}

/** `GETs per second, more is better`; without a direction where none is known. */
export function unitOf(unit: string): string {
  const perSecond = /^(.*)\/s$/.exec(unit)?.[1];
  if (perSecond !== undefined) return `${perSecond} per second, more is better`;
  return /(^|, )(ms|µs|B)( |$)/.test(unit) ? `${unit}, less is better` : unit;
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

/** ECharts numbers what it draws through the life of the process: numbered from one for each drawing, it is repeatable. */
function stable(svg: string): string {
  const ids = new Map<string, string>();
  return svg.replace(/zr\d+-(?:cls-\d+|[a-z]\d+)/g, (id) => {
    const known = ids.get(id) ?? `z${ids.size + 1}`;
    ids.set(id, known);
    return known;
  });
}
