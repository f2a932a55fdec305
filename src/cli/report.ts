import type { BenchSettings } from './arguments.js';
import { VARIANTS, type Variant } from './clients.js';

/** CPU of Redis is NaN where it is not known, and whoever used it. */
const FIGURES = ['perSecond', 'p50Ms', 'p99Ms', 'cpuUsPerCommand', 'redisCpuUsPerCommand'] as const;
/** One round of one variant. */
export type Sample = Readonly<Record<(typeof FIGURES)[number], number>>;
/** One sample of each variant per round. */
export type Rounds = readonly Readonly<Record<Variant, Sample>>[];
export type Environment = Readonly<Record<'package' | 'node' | 'client' | 'server', string>>;
export type Report = ReturnType<typeof reportOf>;

export function reportOf(settings: BenchSettings, environment: Environment, rounds: Rounds) {
  const { target, json: _, ...rest } = settings;
  const medians = (variant: Variant) =>
    Object.fromEntries(FIGURES.map((name) => [name, median(rounds.map((round) => round[variant][name]))])) as Sample;
  return {
    settings: { target: target.name, cluster: target.cluster, ...rest, rounds: rounds.length },
    environment,
    results: { plain: medians('plain'), auto: medians('auto'), coalesced: medians('coalesced') },
  };
}

const HEAD = [
  '                 commands/s',
  '   × plain',
  '         p50',
  '         p99',
  '     Node CPU',
  '    Redis CPU',
];

export function renderReport({ settings, environment, results }: Report): string {
  const { target, cluster, concurrency, valueBytes, keys, seconds, rounds } = settings;
  /** Of the two figures that are shown. */
  const times = (variant: Variant, name: keyof Sample) => `${digits(results[variant][name] / results.plain[name])}×`;
  const rows = VARIANTS.map((variant) => {
    const { perSecond, p50Ms, p99Ms, cpuUsPerCommand, redisCpuUsPerCommand } = results[variant];
    const name = variant === 'auto' ? 'auto-pipelining' : variant;
    const count = Math.round(perSecond).toLocaleString('en-US');
    const cells = [name.padEnd(16) + count.padStart(11), times(variant, 'perSecond')];
    cells.push(`${digits(p50Ms)} ms`, `${digits(p99Ms)} ms`, `${digits(cpuUsPerCommand)} µs`);
    cells.push(`${digits(redisCpuUsPerCommand)} µs`);
    return cells.map((cell, index) => cell.padStart(HEAD[index]!.length)).join('');
  });
  return [
    `${target}${cluster ? ' (Cluster)' : ''}: ${environment.server}; Node ${environment.node}, ${environment.client}, ` +
      `ioredis-coalesce ${environment.package}`,
    `${concurrency} callers that each await one GET after the other; ${keys} keys of ${valueBytes} B; ` +
      `${seconds} s each in ${rounds} rounds, medians; CPU per command`,
    HEAD.join(''),
    ...rows,
    `Coalesced: ${times('coalesced', 'perSecond')} the commands per second of plain, at ` +
      `${times('coalesced', 'cpuUsPerCommand')} the client's CPU per command and ${times('coalesced', 'redisCpuUsPerCommand')} that of Redis.`,
    'This measures the client alone: a service does more than ask Redis, and gains less.',
    'In a service: IOREDIS_COALESCE=stats node --import ioredis-coalesce/register app.js',
  ].join('\n');
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function digits(value: number): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(3))) : '?';
}
