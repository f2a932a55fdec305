import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ArmProcess, buildArms } from './arm-process.js';
import { CHANGES_HEAD, type Change, changeCells, changes } from './changes.js';
import type { BenchOptions } from './options.js';
import { Progress } from './progress.js';
import { Revision } from './revision.js';
import type { Case, ClientRow } from './rows.js';
import { BenchServer } from './server.js';
import { describeMachine, readSettings } from './settings.js';
import { table } from './tables.js';
import type { ArmId, Sample } from './workload.js';

/** Compared where no rows are chosen. */
const USUAL = ['burst', 'loops', 'single', 'outside-cork', 'values'];
const ARMS: readonly ArmId[] = ['coalesced', 'cork', 'coalesced-timeout', 'coalesced-resp2'];

interface Job {
  readonly title: string;
  readonly case: Case;
  readonly arm: ArmId;
}

/** Runs this revision and another one side by side, and says what changed beyond the noise. */
export async function compareWith(name: string, { rows, pace }: BenchOptions): Promise<string> {
  const jobs = rows.filter((row): row is ClientRow => row.kind === 'client' && row.server === undefined);
  const chosen = jobs.length === rows.length && rows.length < 15 ? jobs : jobs.filter(({ id }) => USUAL.includes(id));
  const list = chosen.flatMap(jobsOf);
  if (list.length === 0)
    throw new Error('none of the chosen rows has a coalesced client at a single server to compare');
  const revision = await Revision.build(name);
  const files: string[] = [];
  let server: BenchServer | undefined;
  const progress = new Progress(list.length * (pace.rounds + 1));
  try {
    // The arms are this revision's; what they import as `ioredis-coalesce` is that of the folder they lie in.
    files.push(await buildArms(join(revision.folder, '.bench')), await buildArms());
    server = await BenchServer.open((line) => process.stderr.write(`${line}\n`));
    const found: Change[] = [];
    for (const job of list) found.push(...(await compareJob(job, files as [string, string], server, pace, progress)));
    const settings = readSettings({ url: server.url, server: server.version, ...pace });
    const rounds = `${pace.rounds} rounds of ${pace.seconds} s each, interleaved.`;
    const what = `${settings.revision} (new) against ${revision.name} (old), ${rounds}`;
    return `${table(CHANGES_HEAD, found.map(changeCells))}\n\n${what}\n${describeMachine(settings)}\n${summary(found)}`;
  } finally {
    progress.stop();
    await server?.close();
    for (const file of files) await rm(file, { force: true });
    await revision.remove();
  }
}

function jobsOf(row: ClientRow): Job[] {
  const arms = row.contestants.filter((one): one is ArmId => (ARMS as readonly string[]).includes(one));
  return row.cases.flatMap((one) => arms.map((arm) => ({ title: titleOf(row, one, arm), case: one, arm })));
}

function titleOf(row: ClientRow, one: Case, arm: ArmId): string {
  return [row.title, ...(row.cases.length > 1 ? [one.id] : []), ...(arm === 'coalesced' ? [] : [arm])].join(', ');
}

async function compareJob(
  { title, case: { workload }, arm }: Job,
  files: readonly [string, string],
  server: BenchServer,
  { rounds, seconds, warmUpSeconds, rewarmSeconds }: BenchOptions['pace'],
  progress: Progress,
): Promise<Change[]> {
  await server.seed(workload);
  const arms: ArmProcess[] = [];
  const samples: [Sample[], Sample[]] = [[], []];
  try {
    for (const file of files) arms.push(await ArmProcess.open(arm, file, server));
    for (let round = 0; round < rounds; round += 1) {
      progress.show(title, `round ${round + 1} of ${rounds}`, 1);
      // Who goes first changes from round to round.
      for (const which of round % 2 === 0 ? [0, 1] : [1, 0]) {
        await arms[which]!.prepare(workload, round === 0 ? warmUpSeconds : rewarmSeconds, round === 0);
        samples[which]!.push(await arms[which]!.measure(workload, seconds));
      }
    }
    for (const process of arms) await process.close();
    progress.show(title, 'done', 1);
    return changes(title, ...samples);
  } finally {
    for (const process of arms) process.kill();
  }
}

function summary(found: readonly Change[]): string {
  const changed = found.filter(({ verdict }) => verdict !== 'no change beyond the noise');
  if (changed.length === 0) return 'Nothing changed beyond the noise.';
  return `Changed beyond the noise: ${changed.map(({ work, measure, verdict }) => `${work}: ${measure} ${verdict}`).join('; ')}.`;
}
