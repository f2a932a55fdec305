import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { collectMetrics } from 'ioredis-coalesce/prometheus';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { DEFAULT_OPTIONS } from '../../src/options.js';
import { Stats } from '../../src/stats.js';
import { ioredis6, ready } from '../helpers/hosts.js';
import { redisUrl } from '../helpers/redis.js';
import { type Exposition, parseExposition } from './helpers/exposition.js';

const read = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8');
const production = read('production.md');
/** The keys of a rule in Prometheus's configuration. */
const RULE_KEYS = ['alert', 'expr', 'for', 'keep_firing_for', 'labels', 'annotations'];

async function exposed(): Promise<Exposition> {
  const register = new Registry();
  collectMetrics(await ready(ioredis6.createCoalesced(redisUrl())), { register, labels: { client: 'a' } });
  return parseExposition(await register.metrics());
}

/** Where Prometheus's own grammar does not understand a query; nothing if it does. */
function errorsIn(query: string): string[] {
  const errors: string[] = [];
  parser.parse(query).iterate({
    enter({ type, from }) {
      if (type.isError) errors.push(`at ${from}: ${query.slice(from)}`);
    },
  });
  return errors;
}

it('the parser of queries: refuses text that is not PromQL, so that the tests below can fail', () => {
  expect(errorsIn('sum by (a) (rate(b{c="d"}[5m])) / 2')).toEqual([]);
  expect(errorsIn('sum by (a) (rate(b{c="d"}[5m]) / 2')).not.toEqual([]);
  expect(errorsIn('rate(b{c=d}[5m])')).not.toEqual([]);
  expect(errorsIn('rate(b[5 minutes])')).not.toEqual([]);
  expect(errorsIn('average(b)')).not.toEqual([]);
});

/** The first cells of the rows of the table under a heading or line, without their quotes. */
function firstCells(after: string): string[] {
  const rest = production.slice(production.indexOf(after) + after.length);
  if (!production.includes(after)) throw new Error(`expected docs/production.md to contain: ${after}`);
  const [, table = ''] = /\n(\| .*\n\| -.*\n(?:\|.*\n)+)/.exec(rest) ?? [];
  const rows = table.trim().split('\n').slice(2);
  return rows.map((row) => row.split('|')[1]?.trim().replaceAll('`', '') ?? '');
}

describe('docs/production.md', () => {
  const stats = { ...new Stats().snapshot('fast', 0, 0, { entries: 0, bytes: 0 }), unknownClient: '' };

  it('has every field of stats(), and no other field', () => {
    expect(firstCells('## Statistics, field by field').toSorted()).toEqual(Object.keys(stats).toSorted());
  });

  it.each(['flushReasons', 'fallbacks'] as const)('has every reason of %s', (field) => {
    expect(firstCells(`### \`${field}\``).toSorted()).toEqual(Object.keys(stats[field]).toSorted());
  });

  it('has every metric with its type', async () => {
    const { types } = await exposed();
    const lists = production.matchAll(/^# (counter|gauge|histogram)s\n((?:\w+\n)+)/gm);
    const listed = [...lists].flatMap(([, type, names]) => names!.match(/\w+/g)!.map((name) => [name, type]));
    expect(listed).toEqual([...types]);
  });

  it('names metrics that exist in its queries', async () => {
    const { samples, types } = await exposed();
    const names = new Set([...samples.map(({ name }) => name), ...types.keys()]);
    for (const [name] of production.matchAll(/redis_coalesce_[a-z_]+/g)) expect(names).toContain(name);
  });

  it('has queries that Prometheus understands', () => {
    const [, block = ''] = /```promql\n([\s\S]*?)```/.exec(production) ?? [];
    const queries = block.trim().split('\n');
    expect(queries.length).toBeGreaterThan(2);
    expect(queries.flatMap(errorsIn)).toEqual([]);
  });

  it('says something about every option', () => {
    for (const option of Object.keys(DEFAULT_OPTIONS)) expect(production).toContain(`\`${option}`);
  });
});

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}

describe('docs/prometheus-alerts.yml', () => {
  const { groups } = parse(read('prometheus-alerts.yml')) as { groups: { name: string; rules: Rule[] }[] };
  const rules = groups.flatMap((group) => group.rules);

  it('has rules of the form that Prometheus loads, each with its own name', () => {
    expect(groups.map(({ name }) => name)).toEqual(['ioredis-coalesce']);
    expect(rules.length).toBeGreaterThan(3);
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const rule of rules) {
      expect(Object.keys(rule).filter((key) => !RULE_KEYS.includes(key))).toEqual([]);
      expect(rule.alert).toMatch(/^Redis[A-Za-z]+$/);
      expect(rule.for ?? '0m').toMatch(/^\d+[smh]$/);
      expect(rule.labels.severity).toMatch(/^(info|warning|critical)$/);
      for (const text of Object.values(rule.annotations)) expect(text).not.toBe('');
      expect(rule.annotations.description).toContain('{{ $labels.client }}');
    }
  });

  it('has queries that Prometheus understands', () => {
    expect(rules.map(({ expr }) => expr).flatMap(errorsIn)).toEqual([]);
  });

  it('asks for metrics, labels and values of labels that exist', async () => {
    const { samples } = await exposed();
    const names = new Set(samples.map(({ name }) => name));
    const pairs = new Set(samples.flatMap(({ labels }) => Object.entries(labels).map((pair) => pair.join('='))));
    const labels = new Set(['instance', ...samples.flatMap((sample) => Object.keys(sample.labels))]);
    for (const { expr, annotations } of rules) {
      for (const [name] of expr.matchAll(/redis_coalesce_[a-z_]+/g)) expect(names).toContain(name);
      for (const [, label, value] of expr.matchAll(/(\w+)="(\w+)"/g)) expect(pairs).toContain(`${label}=${value}`);
      for (const [, label] of expr.matchAll(/(?:by|without) \((\w+)\)/g)) expect(labels).toContain(label);
      for (const [, label] of annotations.description.matchAll(/\$labels\.(\w+)/g)) expect(labels).toContain(label);
    }
  });
});

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

describe('docs/grafana-dashboard.json', () => {
  const dashboard = JSON.parse(read('grafana-dashboard.json')) as {
    readonly schemaVersion: number;
    readonly title: string;
    readonly panels: readonly Panel[];
    readonly templating: { readonly list: readonly { readonly name: string; readonly query: unknown }[] };
  };
  const { panels, templating } = dashboard;
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

  it('asks for metrics and labels that exist, and for every metric', async () => {
    const { samples, types } = await exposed();
    const names = new Set(samples.map(({ name }) => name));
    const labels = new Set(['instance', ...samples.flatMap((sample) => Object.keys(sample.labels))]);
    const asked = queries.flatMap((query) => query.match(/redis_coalesce_[a-z_]+/g) ?? []);
    expect(asked.filter((name) => !names.has(name))).toEqual([]);
    const missing = [...types.keys()].filter((name) => !asked.some((used) => used.startsWith(name)));
    expect(missing).toEqual([]);
    for (const query of queries) {
      const used = [...query.matchAll(/(\w+)=~?"/g), ...query.matchAll(/by \(([^)]*)\)/g)];
      for (const label of used.flatMap(([, found = '']) => found.split(', '))) expect(labels).toContain(label);
    }
    const legends = panels.flatMap(({ targets }) => targets.map(({ legendFormat }) => legendFormat)).join();
    for (const [, label] of legends.matchAll(/\{\{(\w+)\}\}/g)) expect(labels).toContain(label);
  });

  it('asks for values of labels that exist: path, reason and mode', async () => {
    const { samples } = await exposed();
    const pairs = new Set(samples.flatMap(({ labels }) => Object.entries(labels).map((pair) => pair.join('='))));
    for (const [, label, value] of queries.join('\n').matchAll(/(path|reason|mode)="(\w+)"/g)) {
      expect(pairs).toContain(`${label}=${value}`);
    }
  });

  it('has queries that Prometheus understands', () => {
    // Grafana fills in its variables before it asks; within quotes they may stand as they are.
    expect(queries.map((query) => query.replaceAll('$__rate_interval', '1m')).flatMap(errorsIn)).toEqual([]);
  });

  it('uses no variable that it does not define', () => {
    const variables = new Set(['__rate_interval', ...templating.list.map(({ name }) => name)]);
    for (const query of queries) {
      for (const [, name] of query.matchAll(/\$(\w+)/g)) expect(variables).toContain(name);
    }
    for (const [, name] of JSON.stringify(panels).matchAll(/\$\{(\w+)\}/g)) expect(variables).toContain(name);
  });
});
