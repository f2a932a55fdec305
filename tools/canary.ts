/**
 * `npm run canary`: does this package still know the clients that were published last?
 *
 *     npm run canary                 the probe, and the core's tests
 *     npm run canary -- --all        the probe, and all integration tests
 *     npm run canary -- --main <url> on ioredis's main branch as well, from this repository
 *
 * Clients are the newest that npm has. Servers are those of the matrix: the system's, which may be years old, and the
 * newest that the Python wheels of `matrix-versions.ts` carry, which may be behind what Redis and Valkey have
 * published.
 *
 * The fast path reads private fields and the source of functions of its clients. What is not known gets the cork; here
 * it is taken for known, to see what would be wrong, and probed: that its commands are fast no test of behaviour sees.
 */
import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { KNOWN_FUNCTIONS, KNOWN_RELEASES } from '../src/host/known-releases.js';
import { changesBetween } from './host-changes.js';
import type { Digests } from './known-clients-digest.js';
import type { Cell } from './matrix-report.js';
import { digestsOf, printCells, runTests } from './matrix-run.js';
import { type Clients, NODES, type Obtained, obtain, SERVERS } from './matrix-versions.js';
import { startRedis } from './redis-server.js';

const execute = promisify(execFile);
const PROBE = fileURLToPath(new URL('canary-probe.ts', import.meta.url));
/** Tags of the registry beside `latest` under which releases are announced. */
const PREVIEWS = ['next', 'beta', 'rc'];

const { values: flags } = parseArgs({
  options: { all: { type: 'boolean', default: false }, main: { type: 'string' } },
});

const problems: string[] = [];
const clients = await must(await publishedClients());
if (flags.main !== undefined) clients.push(await mainBranch(flags.main));
const servers = await must(SERVERS);
const [node] = await must(NODES.filter(({ version }) => process.versions.node.startsWith(`${version}.`)));

for (const set of clients) {
  await compare(set);
  await probe(set);
}

const cells: Cell[] = [];
if (node === undefined) problems.push(`no tests were run: Node ${process.versions.node} is not one of the matrix`);
else {
  // A new client meets every server; the servers are new once.
  for (const [index, set] of clients.entries()) {
    for (const server of index === 0 ? servers : servers.slice(-1)) {
      cells.push(await runTests(node, server, set, { quick: !flags.all }));
    }
  }
}
printCells(cells);
for (const { server, clients: name, failed } of cells) {
  if (failed > 0) problems.push(`${failed} tests failed with ${name} on ${server}`);
}
for (const problem of problems) console.error(`!! ${problem}`);
if (problems.length > 0) process.exitCode = 1;
else console.log('The newest clients take the fast path, and all tests passed.');

/** The versions that can be obtained. One that cannot is a problem, or it would stay untested without notice. */
async function must<T extends Parameters<typeof obtain>[0]>(versions: readonly T[]): Promise<Obtained<T>[]> {
  const found: Obtained<T>[] = [];
  for (const version of versions) {
    const obtained = await obtain(version);
    if ('missing' in obtained) problems.push(`${version.name} could not be had: ${obtained.missing}`);
    else found.push(obtained);
  }
  return found;
}

/** The newest release of each client, and of ioredis what is announced as the next one. */
async function publishedClients(): Promise<Clients[]> {
  const { stdout } = await execute('npm', ['view', 'ioredis', 'dist-tags', '--json']);
  const tags = JSON.parse(stdout) as Record<string, string>;
  const previews = PREVIEWS.filter((tag) => tags[tag] !== undefined && tags[tag] !== tags.latest);
  return [
    {
      kind: 'clients',
      name: 'newest published clients',
      packages: { ioredis: 'latest', ioredis5: 'npm:ioredis@5', iovalkey: 'latest' },
    },
    ...previews.map((tag): Clients => ({ kind: 'clients', name: `ioredis ${tag}`, packages: { ioredis: tag } })),
  ];
}

async function probe({ path, packages = {} }: Obtained<Clients>): Promise<void> {
  const server = await startRedis();
  try {
    for (const name of Object.keys(packages)) {
      const env = { ...process.env, MATRIX_ASSUMED: JSON.stringify([await digestsOf(`${path}/node_modules/${name}`)]) };
      const args = ['--import', 'tsx', PROBE, `${path}/node_modules/${name}`, server.url];
      const { stdout } = await execute(process.execPath, args, { env }).catch(
        (error: { stdout: string; stderr: string }) => {
          problems.push(error.stdout.trim() || error.stderr.trim());
          return error;
        },
      );
      console.log(stdout.trim());
    }
  } finally {
    await server.stop();
  }
}

/** Clones and builds the newest commit of ioredis. */
async function mainBranch(url: string): Promise<Obtained<Clients>> {
  const path = await mkdtemp(join(tmpdir(), 'canary-main-'));
  const cwd = join(path, 'node_modules/ioredis');
  await execute('git', ['clone', '--quiet', '--depth=1', url, cwd]);
  await execute('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd });
  await execute('npx', ['tsc'], { cwd });
  const { stdout } = await execute('git', ['log', '-1', '--format=%h of %cs'], { cwd });
  const found = `ioredis main, ${stdout.trim()}`;
  return { kind: 'clients', name: found, packages: { ioredis: url }, path, found };
}

/** The functions of a package that the table does not have. */
function unknownIn(digests: Digests): string[] {
  return (Object.entries(digests) as [keyof Digests, Record<string, string[]>][]).flatMap(([place, functions]) =>
    Object.entries(functions)
      .filter(([name, found]) => !found.every((digest) => KNOWN_FUNCTIONS[place]?.[name]?.includes(digest)))
      .map(([name]) => `${place}.${name}`),
  );
}

/** Says whether each client is in the table of known releases, and what was changed since the newest that is. */
async function compare({ path, packages = {}, found }: Obtained<Clients>): Promise<void> {
  for (const name of Object.keys(packages)) {
    const folder = `${path}/node_modules/${name}`;
    const unknown = unknownIn(await digestsOf(folder));
    if (unknown.length === 0) continue;
    const newest = KNOWN_RELEASES.findLast((release) => release.startsWith(`${name.replace(/\d$/, '')} `));
    const known = await obtain<Clients>({
      kind: 'clients',
      name: `known ${newest}`,
      packages: { known: `npm:${newest?.replace(' ', '@')}` },
    });
    if ('missing' in known) throw new Error(known.missing);
    const changes = changesBetween(`${known.path}/node_modules/known/built`, `${folder}/built`);
    const text =
      `${found}: ${name} is not known (${unknown.slice(0, 5).join(', ')}), its clients get the cork. Read what was changed since ${newest}, ` +
      `then npm run known-clients:\n     ${changes.join('\n     ')}`;
    // A branch is never known.
    if (packages[name] === flags.main) console.log(text);
    else problems.push(text);
  }
}
