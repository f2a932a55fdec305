/** One line of Prometheus' text format. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Exposition {
  /** By name of the metric, without the suffixes of histograms. */
  readonly types: ReadonlyMap<string, string>;
  readonly helps: ReadonlyMap<string, string>;
  readonly samples: readonly Sample[];
  /** The values of the samples that have these labels among theirs. */
  values(name: string, labels?: Readonly<Record<string, string>>): number[];
}

const COMMENT = /^# (HELP|TYPE) (\S+) (.+)$/;
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)/g;

/** Reads Prometheus' text format 0.0.4; a line that is not of it is an error. */
export function parseExposition(text: string): Exposition {
  const types = new Map<string, string>();
  const helps = new Map<string, string>();
  const samples: Sample[] = [];
  for (const line of text.split('\n').filter((part) => part !== '')) {
    const comment = COMMENT.exec(line);
    if (comment !== null) {
      const [, kind, name, rest] = comment as unknown as [string, string, string, string];
      (kind === 'TYPE' ? types : helps).set(name, rest);
      continue;
    }
    const sample = SAMPLE.exec(line);
    if (sample === null) throw new Error(`expected a line of Prometheus' text format, got: ${line}`);
    const [, name = '', labels = '', value = ''] = sample;
    samples.push({ name, labels: parseLabels(labels), value: Number(value) });
  }
  return {
    types,
    helps,
    samples,
    values: (name, labels = {}) =>
      samples
        .filter((sample) => sample.name === name)
        .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
        .map(({ value }) => value),
  };
}

function parseLabels(text: string): Record<string, string> {
  const pairs = [...text.matchAll(LABEL)];
  if (pairs.map(([pair]) => pair).join('') !== text) throw new Error(`expected labels, got: ${text}`);
  const names = pairs.map(([, name]) => name as string);
  if (new Set(names).size !== names.length) throw new Error(`expected each label once, got: ${text}`);
  return Object.fromEntries(pairs.map(([, name, value]) => [name, value]));
}
