/** When and where figures were measured, and what may have disturbed them. */

import type { BenchReport, Note, Run } from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import { wrap } from './text.js';

interface Measured {
  readonly run?: Run;
  readonly pace?: Pick<Run, 'rounds' | 'seconds'>;
}

/** Each machine once, for figures that may come from several runs. */
export function machinesOf(
  { settings }: Pick<BenchReport, 'settings'>,
  results: readonly Measured[],
  peers = true,
): string {
  return [...new Set(results.map(({ run }) => describeMachine({ ...settings, ...run }, peers)))].join('; and ');
}

/** The machine, and the revisions, of results that stand in one table. */
export function runsText(report: Pick<BenchReport, 'settings'>, results: readonly Measured[]): string {
  const revisions = [...new Set(results.map(({ run }) => (run ?? report.settings).revision))].sort();
  const text = `${machinesOf(report, results)}; ${revisions.length === 1 ? 'revision' : 'revisions'} ${listed(revisions)}`;
  return results.length === 0 ? '' : text;
}

/** The run of a section, if that, or its pace, was not the one at the top of the document. */
export function runOf({ settings }: Pick<BenchReport, 'settings'>, { run, pace }: Measured): string[] {
  if (run === undefined && pace === undefined) return [];
  const { cpu, kernel, ...rest } = { ...settings, ...run, ...pace };
  return [wrap(`${describeRun(rest)}; ${cpu}, ${kernel}.`)];
}

const DISTURBED = /^(\d+) of (\d+) (samples were taken while .*)\.$/;
const NOT_IDLE = /^(.+) used (\d+) (% of a core while others were measured)\.$/;

/** A line per revision: notes that differ only in their figures are added up. */
export function notesText(notes: readonly Note[]): string {
  const revisions = [...new Set(notes.map(({ revision }) => revision))];
  return revisions
    .map((revision) => summaryOf(notes.filter((note) => note.revision === revision).map(({ text }) => text)))
    .map((summary, index) => wrap(`- ${revisions[index]}: ${summary}`, '  '))
    .join('\n');
}

function summaryOf(texts: readonly string[]): string {
  const disturbed = texts.flatMap((text) => toList(DISTURBED.exec(text)));
  const busy = texts.flatMap((text) => toList(NOT_IDLE.exec(text)));
  const sum = (place: number) =>
    disturbed.reduce((all, match) => all + Number(match[place]), 0).toLocaleString('en-US');
  const variants = [...new Set(busy.map(([, variant]) => `\`${variant}\``))].sort();
  const shares = busy.map(([, , share]) => Number(share));
  const times = busy.length === 1 ? 'once' : `${busy.length} times`;
  const parts = [
    ...(disturbed.length === 0 ? [] : [`${sum(1)} of ${sum(2)} ${disturbed[0]![3]}`]),
    ...(busy.length === 0
      ? []
      : [`${listed(variants)} used up to ${Math.max(...shares)} ${busy[0]![3]} (seen ${times})`]),
    ...texts.filter((text) => !DISTURBED.test(text) && !NOT_IDLE.test(text)).map((text) => text.replace(/\.$/, '')),
  ];
  return `${parts.join('; ')}.`;
}

function toList<T>(one: T | null): T[] {
  return one === null ? [] : [one];
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
