/** The shape of `bench/results/latest.json`, and how it is read and written. */

import { readFile, writeFile } from 'node:fs/promises';
import { METRICS, type Metric } from '../benchmarks/benchmark.js';
import type { Figure } from '../report/figure.js';
import type { Probe, Sample } from '../variants/protocol.js';
import type { Settings } from './settings.js';
import { type Spread, spread } from './stats.js';

export interface VariantResult {
  readonly variant: string;
  readonly probe: Probe;
  /** One per round, in the order of the rounds. */
  readonly samples: readonly Sample[];
}

export interface CaseResult {
  readonly id: string;
  readonly variants: readonly VariantResult[];
}

/** When, where and with what it was run, where that was not with the rest. */
export type Run = Pick<
  Settings,
  'date' | 'revision' | 'rounds' | 'seconds' | 'awake' | 'untilClear' | 'cpu' | 'kernel'
>;

interface Result {
  readonly id: string;
  readonly title: string;
  readonly run?: Run;
}

export interface BenchmarkResult extends Result {
  /** Of one with a pace of its own. */
  readonly pace?: Pick<Settings, 'rounds' | 'seconds'>;
  readonly cases: readonly CaseResult[];
}

export interface ExperimentResult extends Result {
  readonly figures: readonly Figure[];
}

export interface BenchReport {
  readonly settings: Settings;
  readonly benchmarks: readonly BenchmarkResult[];
  readonly experiments: readonly ExperimentResult[];
  readonly notes: readonly Note[];
}

/** What was left out of a run, or may have disturbed it. */
export interface Note {
  readonly revision: string;
  readonly text: string;
}

/** Of any round in which it was measured. */
export function valuesOf({ samples }: Pick<VariantResult, 'samples'>, metric: Metric): number[] {
  return samples.flatMap((sample) => METRICS[metric].read(sample) ?? []);
}

/** Median and range of a metric over the rounds; undefined where it was not measured. */
export function spreadOf(result: VariantResult, metric: Metric): Spread | undefined {
  return spread(valuesOf(result, metric));
}

export function variantOf(result: CaseResult, variant: string): VariantResult | undefined {
  return result.variants.find((candidate) => candidate.variant === variant);
}

export function parseReport(text: string, file: string): BenchReport {
  const report: unknown = JSON.parse(text);
  const whole = typeof report === 'object' && report !== null && 'settings' in report && 'benchmarks' in report;
  if (!whole) throw new Error(`${file} should be the JSON of a benchmark run, with "settings" and "benchmarks"`);
  return report as BenchReport;
}

export async function writeReport(file: string, report: BenchReport): Promise<void> {
  await writeFile(file, serialize(report));
}

/** Puts the benchmarks of a run in the place of those of an earlier one, and leaves the others. */
export async function mergeInto(file: string, report: BenchReport): Promise<BenchReport> {
  const earlier = parseReport(await readFile(file, 'utf8'), file);
  const { date, revision, rounds, seconds, awake, untilClear = false, cpu, kernel } = report.settings;
  const run: Run = { date, revision, rounds, seconds, awake, untilClear, cpu, kernel };
  // Those of the earlier run keep their places.
  const merged = <T extends Result>(old: readonly T[], found: readonly T[]): T[] => [
    ...new Map([...old, ...found.map((one) => ({ ...one, run }))].map((one) => [one.id, one])).values(),
  ];
  const benchmarks = merged(earlier.benchmarks, report.benchmarks);
  const experiments = merged(earlier.experiments, report.experiments);
  // Notes of a run go with its last result.
  const revisions = new Set([...benchmarks, ...experiments].map((one) => (one.run ?? earlier.settings).revision));
  const kept = earlier.notes.filter((note) => revisions.has(note.revision));
  return { settings: earlier.settings, benchmarks, experiments, notes: [...kept, ...report.notes] };
}

const DIGITS = 4;
const LINE = 180;

/** JSON that can be read and compared: four significant digits, one sample per line. */
export function serialize(report: BenchReport): string {
  return `${lines(report, '')}\n`;
}

/** On one line what fits there; of an object that does not, all but its last member, if that fits. */
function lines(value: unknown, indent: string): string {
  const short = JSON.stringify(value, (_, part) => (typeof part === 'number' ? rounded(part) : part));
  if (typeof value !== 'object' || value === null || indent.length + short.length <= LINE) return short;
  const inner = `${indent} `;
  const broken = (parts: readonly string[]) => `\n${parts.map((part) => inner + part).join(',\n')}\n${indent}`;
  if (Array.isArray(value)) return `[${broken(value.map((part) => lines(part, inner)))}]`;
  const members = Object.entries(value).filter(([, part]) => part !== undefined);
  const first = members.slice(0, -1).map(([key, part]) => `${JSON.stringify(key)}:${lines(part, inner)}`);
  const [key, last] = members.at(-1)!;
  if (!first.some((text) => text.includes('\n')) && indent.length + first.join().length <= LINE) {
    return `{${[...first, `${JSON.stringify(key)}:${lines(last, indent)}`].join(',')}}`;
  }
  return `{${broken([...first, `${JSON.stringify(key)}:${lines(last, inner)}`])}}`;
}

function rounded(value: number): number {
  return Number.isInteger(value) && Math.abs(value) < 1000 ? value : Number(value.toPrecision(DIGITS));
}
