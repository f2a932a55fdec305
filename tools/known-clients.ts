/**
 * `npm run known-clients`: writes the table of the releases that are coalesced (`src/host/known-releases.ts`).
 *
 *     npm run known-clients                     the core's tests on releases that are not in the table, and adds them
 *     npm run known-clients -- --all            on every release
 *     npm run known-clients -- --untested       digests alone, for all that are in the table
 *
 * Releases come from the npm registry, from the oldest that the tests have passed on. A release that fails is left out.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { KNOWN_RELEASES } from '../src/host/known-releases.js';
import type { Digests } from './known-clients-digest.js';
import { digestsOf, runTests } from './matrix-run.js';
import { type Clients, type Node, type Obtained, obtain, SERVERS } from './matrix-versions.js';

const execute = promisify(execFile);
const TABLE = fileURLToPath(new URL('../src/host/known-releases.ts', import.meta.url));
const NEWEST_MAJOR = 6;

const { values: flags } = parseArgs({
  options: { all: { type: 'boolean', default: false }, untested: { type: 'boolean', default: false } },
});

const digests = new Map<string, Digests>();
const failed: string[] = [];
for (const [name, oldest] of [
  ['ioredis', [5, 0]],
  ['iovalkey', [0, 1]],
] as const) {
  for (const version of await publishedVersions(name, oldest)) await add(name, version);
}
await writeFile(TABLE, tableOf(digests));
for (const release of failed) console.error(`!! the core's tests fail on ${release}`);
if (failed.length > 0) process.exitCode = 1;

/** Without previews. */
async function publishedVersions(name: string, [major, minor]: readonly [number, number]): Promise<string[]> {
  const { stdout } = await execute('npm', ['view', name, 'versions', '--json']);
  return (JSON.parse(stdout) as string[]).filter((version) => {
    const [, ofMajor, ofMinor] = /^(\d+)\.(\d+)\.\d+$/.exec(version) ?? [];
    return Number(ofMajor) > major || (Number(ofMajor) === major && Number(ofMinor) >= minor);
  });
}

async function add(name: string, version: string): Promise<void> {
  const release = `${name} ${version}`;
  const isKnown = KNOWN_RELEASES.includes(release);
  if (!isKnown && flags.untested) return;
  // Tests import it by the name of its major version.
  const alias = name === 'ioredis' && !version.startsWith(`${NEWEST_MAJOR}.`) ? 'ioredis5' : name;
  const clients = await obtain<Clients>({
    kind: 'clients',
    name: release,
    packages: { [alias]: `npm:${name}@${version}` },
  });
  if ('missing' in clients) throw new Error(`${release} could not be had: ${clients.missing}`);
  const found = await digestsOf(`${clients.path}/node_modules/${alias}`);
  if ((isKnown && !flags.all) || flags.untested || (await pass(clients))) digests.set(release, found);
  else failed.push(release);
}

async function pass(clients: Obtained<Clients>): Promise<boolean> {
  const node: Obtained<Node> = {
    kind: 'node',
    name: 'Node',
    version: process.versions.node,
    path: process.execPath,
    found: process.versions.node,
  };
  const [server] = SERVERS;
  const obtained = server && (await obtain(server));
  if (obtained === undefined || 'missing' in obtained) throw new Error('there is no server');
  const cell = await runTests(node, obtained, clients, { quick: true });
  return cell.failed === 0 && cell.passed > 0;
}

function tableOf(all: ReadonlyMap<string, Digests>): string {
  const collator = new Intl.Collator('en', { numeric: true });
  const releases = [...all.keys()].sort(collator.compare);
  const places: Record<string, Record<string, Set<string>>> = {};
  for (const release of releases) {
    for (const [place, functions] of Object.entries(all.get(release) ?? {})) {
      places[place] ??= Object.create(null) as Record<string, Set<string>>;
      const ofPlace = places[place];
      for (const [name, digests] of Object.entries(functions)) {
        ofPlace[name] ??= new Set();
        for (const digest of digests) ofPlace[name].add(digest);
      }
    }
  }
  return [
    '/** Written by `npm run known-clients`: the releases that `recognize.ts` knows, and what it knows them by. */',
    '',
    'export const KNOWN_RELEASES: readonly string[] = [',
    ...releases.map((release) => `  '${release}',`),
    '];',
    '',
    '/** The digests (`digestOf`) of the functions of all of them, by place and name. */',
    'export const KNOWN_FUNCTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {',
    ...Object.entries(places).flatMap(([place, functions]) => [
      `  ${place}: {`,
      ...Object.entries(functions).map(([name, found]) => `    ${name}: '${[...found].sort().join(' ')}',`),
      '  },',
    ]),
    '};',
    '',
  ].join('\n');
}
