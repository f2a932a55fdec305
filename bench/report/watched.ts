/** What being watched costs, as tables. */

import { markdownTable } from '../../tools/documents.js';
import { WATCHED } from '../benchmarks/watching.js';
import { compare } from '../suite/evaluate.js';
import { type BenchReport, spreadOf, variantOf } from '../suite/results.js';
import { describeMachine } from '../suite/settings.js';
import type { Spread } from '../suite/stats.js';

const HEAD = [
  'bursts of 200 GETs',
  'client CPU per command',
  '× not watched',
  '× plain ioredis, watched alike',
  'throughput × plain, watched alike',
];

export function watchedTable({ benchmarks, settings }: BenchReport): string {
  const watching = benchmarks.find(({ id }) => id === 'watching');
  const found = watching?.cases[0] ?? { id: '', variants: [] };
  const rows = Object.entries(WATCHED).flatMap(([of, { text, plain }]) => {
    const result = variantOf(found, of);
    if (result === undefined) return [];
    return [
      [
        text,
        `${spreadOf(result, 'cpu')?.median.toFixed(2)} µs`,
        times(compare({ metric: 'cpu', of, versus: 'coalesced' }, found)),
        times(compare({ metric: 'cpu', of, versus: plain }, found)),
        times(compare({ metric: 'throughput', of, versus: plain }, found)),
      ],
    ];
  });
  const machine = describeMachine({ ...settings, ...watching?.run });
  return `${markdownTable(HEAD, rows)}\n\nMedians, and the range, of interleaved rounds; ${machine}.`;
}

export function callsTable({ benchmarks }: BenchReport): string {
  const cases = benchmarks.find(({ id }) => id === 'watching-calls')?.cases ?? [];
  const rows = cases.map(({ id, variants: [result] }) => {
    const us = (result && spreadOf(result, 'cpu')?.median) ?? Number.NaN;
    return [id, `${us.toFixed(1)} µs`];
  });
  return markdownTable(['one call', 'CPU'], rows);
}

function times(ratio: Spread | undefined): string {
  if (ratio === undefined) return '';
  const [median, min, max] = [ratio.median, ratio.min, ratio.max].map((value) => value.toPrecision(3));
  return `${median}× (${min}–${max})`;
}
