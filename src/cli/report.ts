import Table from 'cli-table3';
import type { BenchSettings } from './arguments.js';
import { VARIANTS, type Variant } from './clients.js';

export type Environment = Readonly<Record<'package' | 'node' | 'client' | 'server', string>>;

/** One round of one variant. */
export interface Sample {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU of this process. */
  readonly cpuUsPerCommand: number;
}

/** One sample of each variant per round. */
export type Rounds = readonly Readonly<Record<Variant, Sample>>[];

export type Report = ReturnType<typeof reportOf>;

export function reportOf(settings: BenchSettings, environment: Environment, rounds: Rounds) {
  const { target, valueBytes, concurrency, keys, seconds } = settings;
  const over = (variant: Variant, figure: keyof Sample) => median(rounds.map((round) => round[variant][figure]));
  /** As a multiple of the plain client's: of the two figures that are shown. */
  const timesPlain = (variant: Variant, figure: keyof Sample) => over(variant, figure) / over('plain', figure);
  const resultOf = (variant: Variant) => ({
    perSecond: over(variant, 'perSecond'),
    throughputTimesPlain: timesPlain(variant, 'perSecond'),
    p50Ms: over(variant, 'p50Ms'),
    p99Ms: over(variant, 'p99Ms'),
    cpuUsPerCommand: over(variant, 'cpuUsPerCommand'),
    cpuTimesPlain: timesPlain(variant, 'cpuUsPerCommand'),
  });
  const { name, cluster } = target;
  return {
    settings: { target: name, cluster, concurrency, valueSize: valueBytes, keys, seconds, rounds: rounds.length },
    environment,
    results: { plain: resultOf('plain'), auto: resultOf('auto'), coalesced: resultOf('coalesced') },
  };
}

export function renderReport({ settings, environment, results }: Report): string {
  const table = new Table({
    head: ['', 'commands/s', '× plain', 'p50', 'p99', 'CPU/command', '× plain'],
    colAligns: ['left', 'right', 'right', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  for (const variant of VARIANTS) {
    const result = results[variant];
    table.push([
      variant === 'auto' ? 'auto-pipelining' : variant,
      Math.round(result.perSecond).toLocaleString('en-US'),
      times(result.throughputTimesPlain),
      `${significant(result.p50Ms)} ms`,
      `${significant(result.p99Ms)} ms`,
      `${significant(result.cpuUsPerCommand)} µs`,
      times(result.cpuTimesPlain),
    ]);
  }
  const { target, cluster, concurrency, valueSize, keys, seconds, rounds } = settings;
  const { package: version, node, client, server } = environment;
  const { throughputTimesPlain, cpuTimesPlain } = results.coalesced;
  return [
    `${target}${cluster ? ' (Cluster)' : ''}: ${server}; Node ${node}, ${client}, ioredis-coalesce ${version}`,
    `${concurrency} callers that each await one GET after the other; ${keys} keys of ${valueSize} B; ` +
      `${seconds} s each in ${rounds} rounds, medians`,
    table.toString(),
    `Coalesced: ${times(throughputTimesPlain)} the commands per second of plain, at ${times(cpuTimesPlain)} the client's CPU per command.`,
    'This is the client alone. In a service it gains less: start one pod with ioredis-coalesce/register and IOREDIS_COALESCE=stats.',
  ].join('\n');
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function times(ratio: number): string {
  return `${significant(ratio)}×`;
}

function significant(value: number): string {
  return String(Number(value.toPrecision(3)));
}
