/**
 * `npm run test:matrix`: the integration tests over versions of Node, of the server and of the clients.
 *
 *     npm run test:matrix                          every combination
 *     npm run test:matrix -- --diagonal            every version once
 *     npm run test:matrix -- --quick               a few minutes: the core's tests alone
 *     npm run test:matrix -- --write               and the table in the README
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { type Cell, writeCompatibility } from './matrix-report.js';
import {
  CLIENTS,
  type Clients,
  NODES,
  type Node,
  type Obtained,
  obtain,
  SERVERS,
  type Server,
} from './matrix-versions.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Of the tests, the ones that talk to a server. What is about packaging, browsers or tools runs once, in `npm test`. */
const INTEGRATION = [
  'test/stats.test.ts',
  'test/{client,connection,invariants,cluster,sentinel,tls,lifecycle,hostile}/*.test.ts',
  'test/fidelity/hot-commands.test.ts',
];
const QUICK = [
  'test/invariants/*.test.ts',
  'test/connection/{ordering,command-timeout,transactions,pubsub-and-blocking}.test.ts',
  'test/lifecycle/{edges,reconnect}.test.ts',
];
const LEFT_OUT = ['test/client/hot-commands.test.ts', 'test/connection/reply-reader.test.ts'];

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly { readonly status: string; readonly name: string }[];
}

const { values: flags } = parseArgs({
  options: {
    diagonal: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});

const nodes = await obtainAll(NODES);
const servers = await obtainAll(SERVERS);
const clients = await obtainAll(CLIENTS);

const cells: Cell[] = [];
for (const [node, server, client] of combinations()) cells.push(await run(node, server, client));
print(cells);
if (flags.write) await writeCompatibility(cells, new Date());
if (cells.length === 0 || cells.some(({ failed }) => failed > 0)) process.exitCode = 1;

async function obtainAll<T extends Node | Server | Clients>(versions: readonly T[]): Promise<Obtained<T>[]> {
  const found: Obtained<T>[] = [];
  for (const version of versions) {
    const obtained = await obtain(version);
    if ('missing' in obtained) console.warn(`!! SKIPPED: ${version.name}: ${obtained.missing}`);
    else found.push(obtained);
  }
  return found;
}

function combinations(): [Obtained<Node>, Obtained<Server>, Obtained<Clients>][] {
  const all = nodes.flatMap((node) =>
    servers.flatMap((server) => clients.map((client) => [node, server, client] as const)),
  );
  if (!flags.diagonal) return all.map((combination) => [...combination]);
  const length = Math.max(nodes.length, servers.length, clients.length);
  const at = <T>(list: readonly T[], index: number): T => list[index % list.length] as T;
  return Array.from({ length }, (_, index) => [at(nodes, index), at(servers, index), at(clients, index)]);
}

async function run(node: Obtained<Node>, server: Obtained<Server>, client: Obtained<Clients>): Promise<Cell> {
  const name = `Node ${node.found}, ${server.found}, ${client.found}`;
  console.log(`\n== ${name}`);
  const folder = await mkdtemp(join(tmpdir(), 'matrix-'));
  const file = join(folder, 'vitest.json');
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--reporter=dot',
    '--reporter=json',
    `--outputFile.json=${file}`,
  ];
  for (const pattern of LEFT_OUT) args.push('--exclude', pattern);
  const started = Date.now();
  const child = spawn(node.path, args, {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...process.env,
      REDIS_SERVER: server.path,
      MATRIX_CLIENTS: client.path,
      MATRIX_TESTS: (flags.quick ? QUICK : INTEGRATION).join(' '),
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

function print(results: readonly Cell[]): void {
  const table = new Table({ head: ['Node', 'server', 'clients', 'passed', 'failed', 'seconds'], style: { head: [] } });
  for (const cell of results)
    table.push([cell.node, cell.server, cell.clients, cell.passed, cell.failed, cell.seconds]);
  console.log(`\n${table.toString()}`);
}
