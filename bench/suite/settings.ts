import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import type { BenchServer } from './bench-server.js';
import { git } from './tool.js';

/** A case has up to this many times its usual rounds, until it is clear which targets it meets. */
export const MOST_ROUNDS = 4;

/** Where and how the figures were measured: without these settings they cannot be compared. */
export type Settings = Readonly<Awaited<ReturnType<typeof readSettings>>>;

interface RunSettings {
  readonly server: BenchServer;
  readonly rounds: number;
  readonly seconds: number;
  /** Whether the processors are kept from halting. */
  readonly awake: boolean;
  /** Whether cases had more rounds while it was unclear whether a target is met. */
  readonly untilClear?: boolean;
}

export async function readSettings({ rounds, seconds, awake, untilClear = false, server }: RunSettings) {
  const local = ['127.0.0.1', 'localhost', '[::1]'].includes(new URL(server.url).hostname);
  return {
    date: new Date().toISOString(),
    revision: await revision(),
    node: process.version,
    v8: process.versions.v8,
    ioredis: versionOf('ioredis'),
    nodeRedis: versionOf('redis'),
    server: server.version,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    kernel: `${type()} ${release()}`,
    memoryGiB: Math.round((totalmem() / 2 ** 30) * 10) / 10,
    network: local ? 'loopback' : 'remote',
    awake,
    rounds,
    seconds,
    untilClear,
  };
}

/** @param peers - whether figures of other clients than ioredis are with it. */
export function describeMachine(settings: Settings, peers = true): string {
  return [
    `${settings.cores} cores of ${settings.cpu}`,
    `${settings.memoryGiB} GiB`,
    settings.kernel,
    `Node ${settings.node.slice(1)}`,
    settings.server,
    `ioredis ${settings.ioredis}`,
    ...(peers ? [`node-redis ${settings.nodeRedis}`] : []),
    settings.network,
  ].join(', ');
}

type DescribedRun = Pick<Settings, 'date' | 'revision' | 'rounds' | 'seconds' | 'awake' | 'untilClear'>;

export function describeRun(settings: DescribedRun): string {
  const rounds = `${settings.rounds} ${settings.rounds === 1 ? 'round' : 'rounds'} of ${settings.seconds} s`;
  const awake = settings.awake ? ', processors kept from halting' : '';
  const more = settings.untilClear ? `, up to ${MOST_ROUNDS} times as many where a target was not clear` : '';
  return `${rounds} for each variant${more}, interleaved${awake}; revision ${settings.revision}, ${settings.date.slice(0, 10)}`;
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
