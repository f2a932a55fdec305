/**
 * `npm run test:mutants [-- <part of a title> …] [--host ioredis5] [--jobs 2]`: runs the program on each mutant of the
 * hosts, and prints which are right. All mutants of mutants.ts by default; two at a time per processor, since programs
 * mostly wait. `--control` has plain clients beside plain ones: a step that differs then, depends on time, and the
 * mutant must change.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startCluster } from '../../tools/redis-cluster.js';
import { startRedis } from '../../tools/redis-server.js';
import { bundled } from '../helpers/bundled.js';
import { type Edit, HOSTS, type HostPackage, MUTANTS, type Mutant, PLAIN_BY_NATURE } from './mutants.js';
import { mutate } from './mutate.cjs';
import type { Orders, Verdict } from './program.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const MODULES = join(HERE, '../../node_modules');
/**
 * Milliseconds for the program's runs; on a quiet machine two take seven seconds. A step that stays open takes five.
 */
const PROGRAM_MS = 180_000;

export interface Result extends Mutant {
  readonly host: HostPackage;
  readonly verdict: Verdict;
}

/** The texts of a host's files, and of those in other packages that mutants change. */
function* filesOf(host: HostPackage, edits: readonly Edit[]): Generator<string> {
  for (const file of readdirSync(join(MODULES, host, 'built'), { recursive: true, encoding: 'utf8' })) {
    if (file.endsWith('.js')) yield join(MODULES, host, 'built', file);
  }
  for (const { file } of edits) if (file?.startsWith('/')) yield join(MODULES, file);
}

/**
 * How many files the mutant changes.
 *
 * @throws {Error} if one of its texts is not found, or more often than once.
 */
export function changedFiles(host: HostPackage, { title, edits }: Mutant): number {
  const changed = new Set<string>();
  const unused = new Set(edits);
  for (const path of filesOf(host, edits)) {
    const text = readFileSync(path, 'utf8');
    for (const edit of edits) {
      try {
        if (mutate(text, path.replaceAll('\\', '/'), host, [edit]) === text) continue;
      } catch (error) {
        // The search text may be what an earlier edit has written.
        if (mutate(text, path.replaceAll('\\', '/'), host, edits) === text) throw error;
      }
      unused.delete(edit);
      changed.add(path);
    }
  }
  for (const { search } of unused) throw new Error(`the mutant "${title}" of ${host} finds nowhere: ${search}`);
  return changed.size;
}

/** Servers for one program at a time. */
async function startServers() {
  const [server, cluster] = await Promise.all([startRedis(), startCluster({ masters: 2, replicas: 0 })]);
  return {
    ports: { port: server.port, clusterPorts: cluster.nodes.map(({ port }) => port) },
    stop: () => Promise.all([server.stop(), cluster.stop()]),
  };
}

function runProgram(
  program: string,
  host: HostPackage,
  mutant: Mutant,
  orders: Omit<Orders, 'host' | 'changes'>,
): Promise<Verdict> {
  const env = {
    ...process.env,
    MUTANT: JSON.stringify({ folder: host, edits: mutant.edits }),
    MUTANT_ORDERS: JSON.stringify({ host, ...orders, changes: changedFiles(host, mutant) } satisfies Orders),
  };
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--require', join(HERE, 'preload.cjs'), program], { env });
    let out = '';
    let scene = 'while loading';
    let errors = '';
    child.stdout.on('data', (text) => {
      out += text;
    });
    child.stderr.on('data', (text: Buffer) => {
      scene = /.*@(.*)/s.exec(String(text))?.[1]?.trim() ?? scene;
      errors = (errors + text).slice(-2_000);
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), PROGRAM_MS);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const [, found] = /^=(.*)$/m.exec(out) ?? [];
      if (found !== undefined) return resolve(JSON.parse(found) as Verdict);
      const verdict = scene.startsWith('plain') || scene === 'while loading' ? 'plain breaks' : 'wrong';
      resolve({
        verdict,
        way: 'plain',
        steps: 0,
        open: [],
        scene,
        why: `the process has ended: ${code ?? signal}\n${errors}`,
        warnings: [],
      });
    });
  });
}

/** Runs the program on each mutant, `jobs` at a time. */
export async function runMutants(
  chosen: readonly Mutant[],
  { jobs = 2 * availableParallelism(), hosts = HOSTS, control = false, seen = (_: Result) => {} } = {},
): Promise<Result[]> {
  const program = await bundled(join(HERE, 'program.ts'));
  const left = chosen.flatMap((mutant) =>
    hosts.filter((host) => mutant.hosts.includes(host)).map((host) => ({ mutant, host })),
  );
  const results: Result[] = [];
  const work = async () => {
    const servers = await startServers();
    try {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const { mutant, host } = next;
        const corked = !control && !PLAIN_BY_NATURE.has(mutant.title);
        const verdict = await runProgram(program, host, mutant, { ...servers.ports, control, corked });
        const result = { ...mutant, host, verdict };
        results.push(result);
        seen(result);
      }
    } finally {
      await servers.stop();
    }
  };
  await Promise.all(Array.from({ length: Math.min(jobs, left.length) }, work));
  return results;
}

/** A line for each host and kind of mutant. */
export function tableOf(results: readonly Result[]): string {
  const rows = new Map<string, Record<string, number>>();
  for (const { host, kind, verdict } of results) {
    for (const name of [`${host} ${kind}`, `${host} in all`]) {
      const row = rows.get(name) ?? {};
      rows.set(name, row);
      const column = verdict.verdict === 'right' ? verdict.way : verdict.verdict;
      row[column] = (row[column] ?? 0) + 1;
      row.all = (row.all ?? 0) + 1;
    }
  }
  const columns = ['all', 'fast', 'cork', 'plain', 'open', 'wrong', 'plain breaks'];
  const titles = ['all', 'equal: fast', 'corked', 'plain by nature', 'open on both', 'different', 'plain breaks'];
  const head = `| mutants of | ${titles.join(' | ')} |\n|---|${'---:|'.repeat(columns.length)}`;
  const lines = [...rows].map(
    ([name, row]) => `| ${name} | ${columns.map((column) => row[column] ?? 0).join(' | ')} |`,
  );
  return [head, ...lines].join('\n');
}

const isBad = ({ verdict }: Verdict): boolean => verdict === 'wrong' || verdict === 'plain breaks';

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { host: { type: 'string' }, jobs: { type: 'string' }, control: { type: 'boolean', default: false } },
  });
  const chosen = MUTANTS.filter(
    ({ title }) => positionals.length === 0 || positionals.some((part) => title.includes(part)),
  );
  const results = await runMutants(chosen, {
    hosts: HOSTS.filter((host) => values.host === undefined || host === values.host),
    control: values.control,
    ...(values.jobs === undefined ? {} : { jobs: Number(values.jobs) }),
    seen: ({ host, kind, title, verdict }) => {
      const { verdict: what, way, steps, open, arm = '', scene = '', why = '', warnings } = verdict;
      const told = warnings.length > 0 ? `, ${warnings.length} warnings` : '';
      console.log(`${what} (${way}, ${steps} steps${told}): ${host}, ${kind}: ${title}`);
      if (open.length > 0) console.log(`  open on both: ${open.join('; ')}`);
      if (isBad(verdict)) console.log(`  ${arm} ${scene}\n  ${why.replaceAll('\n', '\n  ')}`);
    },
  });
  console.log(`\n${tableOf(results)}`);
  if (results.some(({ verdict }) => isBad(verdict))) process.exitCode = 1;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main();
}
