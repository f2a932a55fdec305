/**
 * `npm run test:matrix`: the integration tests over versions of Node, of the server and of the clients; and the core's
 * checks on other run times.
 *
 *     npm run test:matrix                          every combination
 *     npm run test:matrix -- --diagonal            every version once
 *     npm run test:matrix -- --quick               a few minutes: the core's tests alone
 *     npm run test:matrix -- --write               and the table in docs/compatibility.md
 */
import { parseArgs } from 'node:util';
import { type Cell, writeCompatibility } from './matrix-report.js';
import { printCells, runTests } from './matrix-run.js';
import { runChecks } from './matrix-run-times.js';
import {
  CLIENTS,
  type Clients,
  NODES,
  type Node,
  type Obtained,
  obtain,
  RUN_TIMES,
  type RunTime,
  SERVERS,
  type Server,
} from './matrix-versions.js';

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
const runTimes = await obtainAll(RUN_TIMES);

const cells: Cell[] = [];
for (const [node, server, client] of combinations()) {
  cells.push(await runTests(node, server, client, flags));
}
const [server] = servers;
const [client] = clients;
const checked = server && client ? await runChecks(runTimes, server, client) : [];
printCells([...cells, ...checked]);
if (flags.write) await writeCompatibility(cells, checked, new Date(), flags.quick);
if (cells.length === 0 || [...cells, ...checked].some(({ failed }) => failed > 0)) process.exitCode = 1;

async function obtainAll<T extends Node | RunTime | Server | Clients>(versions: readonly T[]): Promise<Obtained<T>[]> {
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
