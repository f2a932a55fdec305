import type { BenchSettings } from './arguments.js';
import { VARIANTS, type Variant } from './clients.js';

/** CPU of Redis is NaN where it is not known, and whoever used it. */
const FIGURES = ['perSecond', 'p50Ms', 'p99Ms', 'cpuUsPerCommand', 'redisCpuUsPerCommand'] as const;
/** One round of one variant. */
export type Sample = Readonly<Record<(typeof FIGURES)[number], number>>;
/** One sample of each variant per round. */
export type Rounds = readonly Readonly<Record<Variant, Sample>>[];
export type Environment = Readonly<Record<'package' | 'node' | 'client' | 'server', string>>;

export function reportOf({ target, json: _, ...rest }: BenchSettings, environment: Environment, rounds: Rounds) {
  const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] as number;
  const medians = (variant: Variant) =>
    Object.fromEntries(FIGURES.map((name) => [name, median(rounds.map((round) => round[variant][name]))])) as Sample;
  return {
    settings: { target: target.name, cluster: target.cluster, ...rest, rounds: rounds.length },
    environment,
    results: { plain: medians('plain'), auto: medians('auto'), coalesced: medians('coalesced') },
  };
}

const HEAD = ['', 'commands/s', '× plain', 'p50, ms', 'p99, ms', 'Node, µs', 'Redis, µs'];
const WIDTHS = [16, 11, 10, 10, 10, 12, 12];

export function renderReport({ settings, environment, results }: ReturnType<typeof reportOf>): string {
  const { target, cluster, concurrency, valueBytes, keys, seconds, fuse, rounds } = settings;
  const lineOf = ([name = '', ...cells]: readonly string[]) =>
    name.padEnd(WIDTHS[0]!) + cells.map((cell, index) => cell.padStart(WIDTHS[index + 1]!)).join('');
  /** Of the two figures that are shown. */
  const times = (variant: Variant, name: keyof Sample) => `${digits(results[variant][name] / results.plain[name])}×`;
  const rows = VARIANTS.map((variant) => {
    const [perSecond = 0, ...figures] = FIGURES.map((name) => results[variant][name]);
    const first = [variant === 'auto' ? 'auto-pipelining' : variant, Math.round(perSecond).toLocaleString('en-US')];
    return [...first, times(variant, 'perSecond'), ...figures.map(digits)];
  });
  return [
    `${target}${cluster ? ' (Cluster)' : ''}: ${environment.server}; Node ${environment.node}, ${environment.client}, ` +
      `ioredis-coalesce ${environment.package}`,
    `${concurrency} callers that each await one GET after the other; ${keys} keys of ${valueBytes} B; ` +
      `${seconds} s each in ${rounds} rounds, medians; CPU per command${fuse ? '; coalesced with fuseReads' : ''}`,
    ...[HEAD, ...rows].map(lineOf),
    `Coalesced: ${times('coalesced', 'perSecond')} the commands per second of plain, at ` +
      `${times('coalesced', 'cpuUsPerCommand')} the client's CPU per command and ${times('coalesced', 'redisCpuUsPerCommand')} that of Redis.`,
    'This measures the client alone: a service does more than ask Redis, and gains less.',
    'In a service: IOREDIS_COALESCE=stats node --import ioredis-coalesce/register app.js',
  ].join('\n');
}

const digits = (value: number) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : '?');
