/** Runs the integration tests with chosen versions: for `npm run test:matrix` and `npm run canary`. */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Table from 'cli-table3';
import type { Digests } from './known-clients-digest.js';
import type { Cell, RunTimeCell } from './matrix-report.js';
import type { Clients, Node, Obtained, Server } from './matrix-versions.js';

const DIGEST = fileURLToPath(new URL('known-clients-digest.ts', import.meta.url));
const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Of the tests, the ones that talk to a server. What is about packaging, browsers or tools is not run here. */
const INTEGRATION = [
  'test/stats.test.ts',
  'test/{client,client-cache,connection,invariants,cluster,sentinel,tls,lifecycle,hostile}/*.test.ts',
  'test/fidelity/fast-commands.test.ts',
];
const QUICK = [
  'test/invariants/*.test.ts',
  'test/client/stood-in.test.ts',
  'test/connection/{ordering,command-timeout,transactions,pubsub-and-blocking}.test.ts',
  'test/lifecycle/{edges,reconnect}.test.ts',
  'test/client-cache/expiry.test.ts',
];
const LEFT_OUT = ['test/client/fast-commands.test.ts', 'test/connection/reply-reader.test.ts'];

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly { readonly status: string; readonly name: string }[];
}

/** What the package of a client in this folder is recognized by. */
export async function digestsOf(folder: string): Promise<Digests> {
  const args = ['--import', 'tsx', DIGEST, folder];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  return JSON.parse(stdout) as Digests;
}

/** The clients are taken for known: what is found of a release that is not is found before it gets into the table. */
export async function runTests(
  node: Obtained<Node>,
  server: Obtained<Server>,
  client: Obtained<Clients>,
  { quick }: { quick: boolean },
): Promise<Cell> {
  const name = `Node ${node.found}, ${server.found}, ${client.found}`;
  console.log(`\n== ${name}`);
  const folder = await mkdtemp(join(tmpdir(), 'matrix-'));
  const file = join(folder, 'vitest.json');
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--reporter=default',
    '--silent=passed-only',
    '--reporter=json',
    `--outputFile.json=${file}`,
  ];
  for (const pattern of LEFT_OUT) args.push('--exclude', pattern);
  const modules = await readdir(join(client.path, 'node_modules')).catch((): string[] => []);
  const names = ['ioredis', 'ioredis5', 'iovalkey'].filter((name) => modules.includes(name));
  const assumed = await Promise.all(names.map((name) => digestsOf(join(client.path, 'node_modules', name))));
  const started = Date.now();
  const child = spawn(node.path, args, {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      REDIS_SERVER: server.path,
      MATRIX_CLIENTS: client.path,
      MATRIX_ASSUMED: JSON.stringify(assumed),
      MATRIX_TESTS: (quick ? QUICK : INTEGRATION).join(' '),
    },
  });
  await new Promise((resolve) => child.once('close', resolve));
  const report = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as Report,
    (): Report => ({ numPassedTests: 0, numFailedTests: 1, testResults: [] }),
  );
  await rm(folder, { recursive: true });
  // A file that does not load has no failed test.
  const unloaded = report.testResults.filter(({ status }) => status === 'failed').length;
  const failed = Math.max(report.numFailedTests, unloaded);
  const seconds = Math.round((Date.now() - started) / 1000);
  return {
    node: node.found,
    server: server.found,
    clients: client.found,
    passed: report.numPassedTests,
    failed,
    seconds,
  };
}

export function printCells(results: readonly (Cell | RunTimeCell)[]): void {
  const table = new Table({
    head: ['run time', 'server', 'clients', 'passed', 'failed', 'seconds'],
    style: { head: [] },
  });
  for (const cell of results) {
    const name = 'node' in cell ? `Node ${cell.node}` : cell.runTime;
    table.push([name, cell.server, cell.clients, cell.passed, cell.failed, cell.seconds]);
  }
  console.log(`\n${table.toString()}`);
}
