import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import type { BenchServer } from './bench-server.js';
import { git } from './tool.js';

/** Where and how the figures were measured: without these settings they cannot be compared. */
export type Settings = Readonly<Awaited<ReturnType<typeof readSettings>>>;

interface RunSettings {
  readonly server: BenchServer;
  /** The version of Node that runs the clients. */
  readonly node: string;
  /** Whether the processors are kept from halting. */
  readonly awake?: boolean;
}

export async function readSettings({ awake = false, node, server }: RunSettings) {
  return {
    date: new Date().toISOString().slice(0, 10),
    revision: await revision(),
    node,
    server: server.version,
    ioredis: versionOf('ioredis'),
    nodeRedis: versionOf('redis'),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    kernel: `${type()} ${release()}`,
    memoryGiB: Math.round((totalmem() / 2 ** 30) * 10) / 10,
    awake,
  };
}

export function describeMachine({ cores, cpu, memoryGiB, kernel, node, server, ioredis, awake }: Settings): string {
  return [
    ...[`${cores} cores of ${cpu}`, `${memoryGiB} GiB`, kernel, `Node ${node.slice(1)}`, server, `ioredis ${ioredis}`],
    ...(awake ? ['processors kept from halting'] : []),
  ].join(', ');
}

export function describeRun({ revision, date }: Settings): string {
  return `revision ${revision}, ${date}`;
}

function versionOf(name: string): string {
  const manifest = readFileSync(new URL(`../../node_modules/${name}/package.json`, import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

async function revision(): Promise<string> {
  try {
    const changed = (await git('status', '--porcelain', '--untracked-files=no', '--', ':/src')) !== '';
    return `${await git('rev-parse', '--short', 'HEAD')}${changed ? ' with changes' : ''}`;
  } catch {
    return 'unknown';
  }
}
