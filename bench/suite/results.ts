/** Results, a file per group: their shape, and how they are read and written. */

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Metric, Sample } from '../variants/protocol.js';
import type { Settings } from './settings.js';
import { estimate, median, ratios } from './stats.js';

export interface VariantResult {
  readonly variant: string;
  /** A figure for each round, in the order of the rounds. */
  readonly figures: Readonly<Partial<Record<Metric, readonly number[]>>>;
}

export interface CaseResult {
  readonly id: string;
  readonly variants: readonly VariantResult[];
}

export interface BenchmarkResult {
  readonly id: string;
  /** Of a round. */
  readonly seconds: number;
  readonly cases: readonly CaseResult[];
}

export interface GroupResult {
  readonly group: string;
  readonly settings: Settings;
  /** What was left out of a run, or may have disturbed it. */
  readonly notes: readonly string[];
  readonly benchmarks: readonly BenchmarkResult[];
}

export function figuresOf(samples: readonly Sample[]): VariantResult['figures'] {
  const metrics = [...new Set(samples.flatMap((sample) => Object.keys(sample)))] as Metric[];
  return Object.fromEntries(metrics.map((metric) => [metric, samples.flatMap((sample) => sample[metric] ?? [])]));
}

export function valuesOf({ figures }: Pick<VariantResult, 'figures'>, metric: Metric): readonly number[] {
  return figures[metric] ?? [];
}

/** Over the rounds; undefined where it was not measured. */
export function medianOf(result: VariantResult | undefined, metric: Metric): number | undefined {
  return result && median(valuesOf(result, metric));
}

/** `6 to 15 rounds of 0.5 s` */
export function pacedText({ cases, seconds }: BenchmarkResult): string {
  const rounds = cases.flatMap(({ variants: [first] }) => Object.values(first?.figures ?? {})[0]?.length ?? []);
  const [least, most] = [Math.min(...rounds), Math.max(...rounds)];
  return `${least === most ? '' : `${least} to `}${most} rounds of ${seconds} s`;
}

export function variantOf(result: CaseResult | undefined, variant: string): VariantResult | undefined {
  return result?.variants.find((candidate) => candidate.variant === variant);
}

export function caseOf(results: readonly BenchmarkResult[], benchmark: string, id?: string): CaseResult | undefined {
  const cases = results.find((one) => one.id === benchmark)?.cases;
  return id === undefined ? cases?.[0] : cases?.find((one) => one.id === id);
}

/** Of every group in a folder, in the order of their names. */
export async function readResults(folder: string): Promise<GroupResult[]> {
  const files = (await readdir(folder).catch(() => [])).filter((file) => file.endsWith('.json')).sort();
  return Promise.all(files.map(async (file) => parseGroup(await readFile(join(folder, file), 'utf8'), file)));
}

export async function writeResults(folder: string, result: GroupResult): Promise<string> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, `${result.group}.json`);
  await writeFile(file, serialize(result));
  return file;
}

/** Before the name of the variant that the others' figures are divided by. */
const DIVIDED = '÷ ';

/** As it is in a file: figures by benchmark, case, variant and metric; and ratios, which are recomputed. */
interface Stored extends Pick<GroupResult, 'settings' | 'notes'> {
  readonly benchmarks: Readonly<
    Record<
      string,
      Pick<BenchmarkResult, 'seconds'> & {
        readonly cases: Readonly<Record<string, Readonly<Record<string, VariantResult['figures']>>>>;
      }
    >
  >;
}

export function parseGroup(text: string, file: string): GroupResult {
  const stored = JSON.parse(text) as Stored;
  if (typeof stored !== 'object' || stored === null || !('settings' in stored) || !('benchmarks' in stored)) {
    throw new Error(`${file} should be the JSON of a group of benchmarks, with "settings" and "benchmarks"`);
  }
  const benchmarks = Object.entries(stored.benchmarks).map(([id, { cases, seconds }]) => ({
    ...{ id, seconds },
    cases: Object.entries(cases).map(([of, variants]) => ({
      id: of,
      variants: Object.entries(variants).flatMap(([variant, figures]) =>
        variant.startsWith(DIVIDED) ? [] : [{ variant, figures }],
      ),
    })),
  }));
  return { group: basename(file, '.json'), settings: stored.settings, notes: stored.notes ?? [], benchmarks };
}

const DIGITS = 4;

/** Of each variant but the first, to that: each metric's ratio and its 95 % interval. */
function ratiosOf({ variants: [first, ...others] }: CaseResult): [string, object][] {
  if (first === undefined || others.length === 0) return [];
  const all = others.map((one) => {
    const metrics = (Object.keys(one.figures) as Metric[]).flatMap((metric) => {
      const found = estimate(ratios(valuesOf(one, metric), valuesOf(first, metric)));
      return found === undefined ? [] : [[metric, [found.value, found.low, found.high]]];
    });
    return [one.variant, Object.fromEntries(metrics)];
  });
  return [[`${DIVIDED}${first.variant}`, Object.fromEntries(all)]];
}

/** JSON that can be read and compared: four significant digits, a line for each variant. */
export function serialize({ settings, notes, benchmarks }: GroupResult): string {
  const block = (indent: string, members: readonly string[]) =>
    `{\n${members.map((one) => `${indent} ${one}`).join(',\n')}\n${indent}}`;
  const named = (name: string, value: string) => `${JSON.stringify(name)}:${value}`;
  const short = (value: unknown) =>
    JSON.stringify(value, (_, part) => (typeof part === 'number' ? rounded(part) : part));
  const caseText = (one: CaseResult) => {
    const figures = one.variants.map((of) => [of.variant, of.figures] as const);
    const lines = [...figures, ...ratiosOf(one)].map(([name, of]) => named(name, short(of)));
    return named(one.id, block('    ', lines));
  };
  const benchmarkText = ({ id, seconds, cases }: BenchmarkResult) =>
    named(id, block('  ', [`"seconds":${seconds},"cases":${block('   ', cases.map(caseText))}`]));
  const parts = [
    named('settings', short(settings)),
    named('notes', `[${notes.map((note) => `\n  ${JSON.stringify(note)}`).join(',')}]`),
    named('benchmarks', block(' ', benchmarks.map(benchmarkText))),
  ];
  return `${block('', parts)}\n`;
}

function rounded(value: number): number {
  return Number.isInteger(value) && Math.abs(value) < 1000 ? value : Number(value.toPrecision(DIGITS));
}
