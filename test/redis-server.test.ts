import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, connect as dial, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { findServerBinary, type RedisServer, startRedis } from '../tools/redis-server.js';
import { bundled } from './helpers/bundled.js';

const MODULE = fileURLToPath(new URL('../tools/redis-server.ts', import.meta.url));

let program: string;
beforeAll(async () => {
  program = await bundled(MODULE);
});

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(...parameters: Parameters<typeof startRedis>): Promise<RedisServer> {
  const server = await startRedis(...parameters);
  cleanups.push(() => server.stop());
  return server;
}

describe('a started server', () => {
  test('answers, persists nothing and takes further arguments', async () => {
    const server = await start({ args: ['--maxmemory', '64mb'] });
    const redis = new Redis(server.url);
    cleanups.push(() => redis.disconnect());

    expect(await redis.ping()).toBe('PONG');
    expect(await redis.config('GET', 'save')).toEqual(['save', '']);
    expect(await redis.config('GET', 'appendonly')).toEqual(['appendonly', 'no']);
    expect(await redis.config('GET', 'maxmemory')).toEqual(['maxmemory', String(64 * 2 ** 20)]);
    expect(server.version).toMatch(/^\d+\.\d+\.\d+$/);
  });

  test('listens on 127.0.0.1 only', async () => {
    const server = await start();
    const outside = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ address, scopeid }) => address !== '127.0.0.1' && !scopeid)
      .map(({ address }) => address);

    expect(await canConnect(server.port, '127.0.0.1')).toBe(true);
    for (const address of [...outside, '::1']) {
      expect(await canConnect(server.port, address), address).toBe(false);
    }
  });

  test('is gone after stop(), with its folder, and stop() may be called again', async () => {
    const server = await start();
    const folder = await folderOf(server.port);
    expect(existsSync(folder)).toBe(true);

    await Promise.all([server.stop(), server.stop()]);
    await server.stop();

    expect(isRunning(server.pid)).toBe(false);
    expect(existsSync(folder)).toBe(false);
  });

  test('is gone after kill(), and its port is free again', async () => {
    const server = await start();
    await server.kill();
    expect(isRunning(server.pid)).toBe(false);

    const next = await start({ port: server.port });
    expect(next.port).toBe(server.port);
    expect(next.pid).not.toBe(server.pid);
  });

  test('that ends by itself leaves no folder', async () => {
    const server = await start();
    const folder = await folderOf(server.port);
    process.kill(server.pid, 'SIGKILL');
    await vi.waitFor(() => expect(existsSync(folder)).toBe(false), 5000);
    await server.stop();
  });
});

describe('a server that cannot start', () => {
  test('names the port that is taken, and leaves its owner alone', async () => {
    const owner = createServer().listen(0, '127.0.0.1');
    cleanups.push(() => owner.close());
    await once(owner, 'listening');
    const port = portOf(owner);

    await expect(startRedis({ port })).rejects.toThrow(`could not listen on 127.0.0.1:${port}: the port is taken`);
    expect(owner.listening).toBe(true);
  });

  test('is not mistaken for another Redis on its port', async () => {
    const other = await start();
    await expect(startRedis({ port: other.port })).rejects.toThrow('the port is taken');
    expect(isRunning(other.pid)).toBe(true);
  });

  test('shows what the server said', async () => {
    await expect(startRedis({ args: ['--no-such-directive', '1'] })).rejects.toThrow(/no-such-directive/);
  });
});

describe('REDIS_SERVER', () => {
  test('chooses the binary', async () => {
    const { path, version } = await findServerBinary();
    vi.stubEnv('REDIS_SERVER', path);
    vi.stubEnv('PATH', '');
    expect(await findServerBinary()).toEqual({ path, version });
  });

  test.each([
    ['a path that is not there', '/nowhere/redis-server'],
    ['a folder', tmpdir()],
    ['a name that is not on PATH', 'no-such-redis-server'],
  ])('%s is an error that names it', async (_, value) => {
    vi.stubEnv('REDIS_SERVER', value);
    await expect(startRedis()).rejects.toThrow(
      `REDIS_SERVER must name a Redis or Valkey server binary, got "${value}"`,
    );
  });

  test('another program is an error that quotes its --version', async () => {
    vi.stubEnv('REDIS_SERVER', process.execPath);
    await expect(startRedis()).rejects.toThrow(
      `${process.execPath} is not a Redis or Valkey server: --version must print "v=<version>", got "${process.version}"`,
    );
  });

  test('unset, with no server and no package manager on PATH, is an error that names the command to run', async () => {
    vi.stubEnv('REDIS_SERVER', '');
    vi.stubEnv('PATH', '/nowhere');
    await expect(startRedis()).rejects.toThrow(/^no Redis server found: .*Run ".+ install .+"/);
  });
});

describe('with no server on PATH, the package manager', () => {
  test('installs one, and says so', async () => {
    const { path } = await findServerBinary();
    const folder = await pathWith('brew', `/bin/ln -s '${path}' "\${0%/*}/redis-server"`);
    const said: string[] = [];
    const server = await start({ log: (line) => said.push(line) });
    expect(server.binary).toBe(join(folder, 'redis-server'));
    expect(said[0]).toBe('no redis-server or valkey-server on PATH, installing one: brew install redis');
  });

  test('failing is an error that shows what it printed', async () => {
    await pathWith('brew', 'echo "no network" >&2; exit 3');
    await expect(startRedis({ log: () => {} })).rejects.toThrow(
      'installing a Redis server failed: "brew install redis" exited with 3\nno network',
    );
  });

  /** A PATH of one folder that has one program, a shell script. */
  async function pathWith(name: string, script: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-test-'));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    vi.stubEnv('REDIS_SERVER', '');
    vi.stubEnv('PATH', folder);
    return folder;
  }
});

describe('the end of the process that started it', () => {
  const endings: [string, string, NodeJS.Signals | undefined][] = [
    ['nothing left to do', '', undefined],
    ['process.exit()', 'process.exit(0);', undefined],
    ['an exception', "setImmediate(() => { throw new Error('on purpose'); });", undefined],
    ['SIGINT', 'setInterval(() => {}, 1000);', 'SIGINT'],
    ['SIGTERM', 'setInterval(() => {}, 1000);', 'SIGTERM'],
    ['SIGHUP', 'setInterval(() => {}, 1000);', 'SIGHUP'],
    ['SIGKILL', 'setInterval(() => {}, 1000);', 'SIGKILL'],
  ];

  // The orphaned process itself is not looked for: where nobody reaps orphans, its id stays in use.
  test.each(endings)('by %s leaves no server and no folder', async (_, afterwards, signal) => {
    const { child, port, folder } = await startInChild(afterwards);
    const ended = once(child, 'exit');
    if (signal) child.kill(signal);
    await ended;
    await vi.waitFor(async () => {
      expect(await canConnect(port, '127.0.0.1')).toBe(false);
      expect(existsSync(folder)).toBe(false);
    }, 5000);
  });

  test('as the script `npm run redis` comes after an orderly stop', async () => {
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'ignore'] });
    cleanups.push(() => child.kill('SIGKILL'));
    const url = new URL(await firstLine(child));
    const folder = await folderOf(Number(url.port));
    const ended = once(child, 'exit');
    child.kill('SIGINT');
    expect(await ended).toEqual([0, null]);
    expect(existsSync(folder)).toBe(false);
    expect(await canConnect(Number(url.port), '127.0.0.1')).toBe(false);
  });
});

async function startInChild(afterwards: string): Promise<{ child: ChildProcess; port: number; folder: string }> {
  const scratch = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-test-'));
  cleanups.push(() => rm(scratch, { recursive: true, force: true }));
  const starter = join(scratch, 'starter.mjs');
  await writeFile(
    starter,
    `import { startRedis } from ${JSON.stringify(program)};
     const { port } = await startRedis();
     await new Promise((done) => process.stdout.write(port + '\\n', done));
     // The test asks the server for its folder before the process may end.
     await new Promise((done) => process.stdin.once('data', done));
     process.stdin.destroy();
     ${afterwards}`,
  );
  const child = spawn(process.execPath, [starter], { stdio: ['pipe', 'pipe', 'ignore'] });
  cleanups.push(() => child.kill('SIGKILL'));
  const port = Number(await firstLine(child));
  const folder = await folderOf(port);
  child.stdin?.write('go on\n');
  return { child, port, folder };
}

async function firstLine(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout!.iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (text.includes('\n')) break;
  }
  return text.split('\n')[0]!;
}

async function folderOf(port: number): Promise<string> {
  const redis = new Redis({ port, host: '127.0.0.1' });
  try {
    const [, folder] = (await redis.config('GET', 'dir')) as [string, string];
    return folder;
  } finally {
    redis.disconnect();
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function canConnect(port: number, host: string): Promise<boolean> {
  return new Promise((settle) => {
    const socket = dial({ port, host, timeout: 2000 });
    const finish = (connected: boolean) => () => {
      socket.destroy();
      settle(connected);
    };
    socket.once('connect', finish(true));
    socket.once('error', finish(false));
    socket.once('timeout', finish(false));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error(`expected a TCP address, got ${address}`);
  return address.port;
}
