/** What all charts share: drawn by ECharts on the server side, repeatably, on one line. */

import { type EChartsOption, init } from 'echarts';

export const WIDTH = 860;
export const OURS = '#0f766e';
const FONT = "system-ui, 'DejaVu Sans', sans-serif";
const SHADES = ['#14b8a6', '#5eead4', '#115e59', '#99f6e4'];
const GREY = '#94a3b8';
/** Of the others, each a line or a bar of its own. */
const OTHERS = ['#334155', '#64748b', '#94a3b8', '#cbd5e1', '#78716c', '#a8a29e', '#d6d3d1', '#57534e'];

/** Names that a visitor knows. */
const LABELS: Readonly<Record<string, string>> = {
  plain: 'ioredis',
  plain5: 'ioredis 5',
  auto: 'ioredis, auto-pipelining',
  auto5: 'ioredis 5, auto-pipelining',
  'node-redis-no-timeout': 'node-redis, no timeout',
  glide: 'valkey-glide',
  pipeline: 'ioredis, pipeline by hand',
  mget: 'ioredis, MGET by hand',
  cork: 'ioredis-coalesce, cork mode',
  coalesced: 'ioredis-coalesce',
  reference: 'bare socket',
  cluster: 'ioredis Cluster',
  'cluster-auto': 'ioredis Cluster, auto-pipelining',
  'cluster-node-redis': 'node-redis cluster',
  'cluster-coalesced': 'ioredis-coalesce Cluster',
  'no-redis': 'no Redis at all',
};

export function labelOf(name: string): string {
  return LABELS[name] ?? name;
}

function isOurs(name: string): boolean {
  return /^(cluster-)?coalesced|^cork$|shareReads|, coalesced|^measured/.test(name);
}

/** Ours in a colour of its own, our other kinds in shades of it; the others in greys, or all in one. */
export function coloursOf(names: readonly string[], oneGrey = false): string[] {
  let ours = 0;
  let others = 0;
  return names.map((name) => {
    if (/^(cluster-)?coalesced$/.test(name)) return OURS;
    if (isOurs(name)) return SHADES[ours++ % SHADES.length]!;
    return oneGrey ? GREY : OTHERS[others++ % OTHERS.length]!;
  });
}

export function draw(option: EChartsOption, height: number, width = WIDTH): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height });
  // A background of its own: readable on a dark page too.
  chart.setOption({ animation: false, backgroundColor: '#ffffff', textStyle: { fontFamily: FONT }, ...option });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return stable(svg).replace(/\s*\n\s*/g, ' ');
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
