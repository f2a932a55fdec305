import { execFile, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface ServerBinary {
  readonly path: string;
  readonly version: string;
}

export type Log = (line: string) => void;

export const logToStderr: Log = (line) => void process.stderr.write(`${line}\n`);

const NAMES = ['redis-server', 'valkey-server'] as const;

/** The server named by `REDIS_SERVER`, else one on PATH, else one that the system's package manager installs. */
export async function findServerBinary(
  log: Log = logToStderr,
  named = process.env.REDIS_SERVER,
): Promise<ServerBinary> {
  if (named) {
    return describe(await executableNamed(named));
  }
  const present = await firstOnPath(NAMES);
  if (present) {
    return describe(present);
  }
  await install(log);
  const installed = await firstOnPath(NAMES);
  if (!installed) {
    throw new Error(
      `the package manager reported success, but neither ${NAMES.join(' nor ')} is on PATH (${process.env.PATH ?? ''}): ` +
        'set REDIS_SERVER to the path of the binary',
    );
  }
  return describe(installed);
}

async function executableNamed(name: string): Promise<string> {
  const isPath = isAbsolute(name) || name.includes('/');
  const path = isPath ? resolve(name) : await firstOnPath([name]);
  if (!path) {
    throw new Error(`REDIS_SERVER must name a Redis or Valkey server binary, got "${name}", which is not on PATH`);
  }
  if (!(await isExecutable(path))) {
    throw new Error(
      `REDIS_SERVER must name a Redis or Valkey server binary, got "${name}", which is not an executable file`,
    );
  }
  return path;
}

async function firstOnPath(names: readonly string[]): Promise<string | undefined> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  for (const name of names) {
    for (const folder of folders) {
      const path = join(folder, name);
      if (await isExecutable(path)) {
        return path;
      }
    }
  }
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

async function describe(path: string): Promise<ServerBinary> {
  let output: string;
  try {
    output = (await run(path, ['--version'], { timeout: 10_000 })).stdout;
  } catch (error) {
    throw new Error(`${path} --version failed: ${error instanceof Error ? error.message : String(error)}`);
  }
  const version = /\bv=(\d+\.\d+\.\d+)/.exec(output)?.[1];
  if (!version) {
    throw new Error(
      `${path} is not a Redis or Valkey server: --version must print "v=<version>", got "${output.trim()}"`,
    );
  }
  return { path, version };
}

// The package would start its service on 6379 right away; a policy that forbids it (invoke-rc.d(8)) is laid down for
// the length of the installation where the machine has none. RUNLEVEL=1 says the same where it has its own.
const APT_SCRIPT = `
set -e
policy=/usr/sbin/policy-rc.d
trap 'exit 1' HUP INT TERM
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > "$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get -o DPkg::Lock::Timeout=60 update
apt-get -o DPkg::Lock::Timeout=60 install -y --no-install-recommends redis-server
`;

interface Installer {
  /** What a person would type. */
  readonly shown: string;
  readonly command: string;
  readonly args: readonly string[];
}

async function install(log: Log): Promise<void> {
  const installer = await findInstaller();
  if (!installer) {
    throw new Error(
      `no Redis server found: neither ${NAMES.join(' nor ')} is on PATH, and none can be installed without asking. ` +
        `Run "${await suggestion()}", or set REDIS_SERVER to the path of the binary`,
    );
  }
  log(`no redis-server or valkey-server on PATH, installing one: ${installer.shown}`);
  await runInstaller(installer);
  log('redis-server installed; its system service was not started');
}

async function findInstaller(): Promise<Installer | undefined> {
  if (await firstOnPath(['apt-get'])) {
    const shown = 'apt-get update && apt-get install -y --no-install-recommends redis-server';
    if (process.getuid?.() === 0) {
      return { shown, command: 'sh', args: ['-c', APT_SCRIPT] };
    }
    if (await sudoNeedsNoPassword()) {
      return { shown: `sudo -n sh -c '${shown}'`, command: 'sudo', args: ['-n', 'sh', '-c', APT_SCRIPT] };
    }
  }
  if (await firstOnPath(['brew'])) {
    return { shown: 'brew install redis', command: 'brew', args: ['install', 'redis'] };
  }
  return undefined;
}

async function sudoNeedsNoPassword(): Promise<boolean> {
  try {
    await run('sudo', ['-n', 'true'], { timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}

async function suggestion(): Promise<string> {
  if (await firstOnPath(['apt-get'])) return 'sudo apt-get install redis-server';
  if (await firstOnPath(['dnf'])) return 'sudo dnf install valkey';
  if (await firstOnPath(['apk'])) return 'sudo apk add redis';
  if (await firstOnPath(['pacman'])) return 'sudo pacman -S valkey';
  return process.platform === 'darwin' ? 'brew install redis' : 'sudo apt-get install redis-server';
}

/** Its output is kept back, and shown only when it fails. */
async function runInstaller({ shown, command, args }: Installer): Promise<void> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOMEBREW_NO_AUTO_UPDATE: '1', NONINTERACTIVE: '1' },
  });
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-2000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const code = await new Promise<number | null>((settle, reject) => {
    child.once('error', reject);
    child.once('close', settle);
  });
  if (code !== 0) {
    throw new Error(`installing a Redis server failed: "${shown}" exited with ${code}\n${output.trim()}`);
  }
}
