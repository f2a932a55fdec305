import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { freePort } from '../../tools/free-port.js';
import { type BenchServer, startServer, startServers } from './bench-server.js';
import { openDelayProxy } from './delay-proxy.js';
import { startSpinner } from './spinner.js';
import { findTool, MissingError, run } from './tool.js';

export interface Environment {
  readonly server: BenchServer;
  /** Where clients connect to. */
  readonly url: string;
  /** Called with each process that is measured. */
  adopt(pid: number): Promise<void>;
  close(): Promise<void>;
}

type Open = (own: BenchServer) => Promise<Environment>;

/**
 * Where a benchmark runs, if not on the run's own server with the machine to itself. `cluster` has 3 masters;
 * `cluster-of-one` is for comparing a Cluster with a client of one node at the same server. `one-core`: client and server
 * share one; `busy`: another process spins beside them.
 */
const OPEN = {
  cluster: async () => around(await startServers(3)),
  'cluster-of-one': async () => around(await startServers(1)),
  tls: async () => around(await startTlsServer()),
  'unix-socket': startOnSocket,
  'one-core': shareOneCore,
  busy: besideSpinner,
  'delay 0.2 ms': (own) => behindDelay(own, 0.2),
  'delay 1 ms': (own) => behindDelay(own, 1),
} satisfies Readonly<Record<string, Open>>;
export type EnvironmentKind = keyof typeof OPEN;

/** @throws {MissingError} where it cannot be had here */
export async function openEnvironment(kind: EnvironmentKind | undefined, own: BenchServer): Promise<Environment> {
  return kind === undefined ? around(own, { close: async () => {} }) : OPEN[kind](own);
}

function around(server: BenchServer, more: Partial<Environment> = {}): Environment {
  return { server, url: server.url, adopt: async () => {}, close: () => server.close(), ...more };
}

/** A server that speaks TLS too, with a certificate made for this run. */
async function startTlsServer(): Promise<BenchServer> {
  const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-tls-'));
  try {
    const { private: key, cert } = await generate([{ name: 'commonName', value: 'localhost' }], {
      keyType: 'ec',
      algorithm: 'sha256',
      extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
    });
    await writeFile(join(folder, 'cert.pem'), cert);
    await writeFile(join(folder, 'key.pem'), key, { mode: 0o600 });
    const port = await freePort();
    const args = ['--tls-port', String(port), '--tls-auth-clients', 'no'];
    args.push('--tls-cert-file', join(folder, 'cert.pem'), '--tls-key-file', join(folder, 'key.pem'));
    return await startServer(args, { clientOptions: { ca: cert }, url: `rediss://localhost:${port}` });
  } catch (error) {
    // What a server without TLS says of the option.
    if (!/tls-port|Bad directive|--enable-tls|BUILD_TLS/i.test(String(error))) throw error;
    throw new MissingError('the server was built without TLS');
  } finally {
    // The server has read them.
    await rm(folder, { recursive: true, force: true });
  }
}

async function startOnSocket(): Promise<Environment> {
  const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-unix-'));
  const socket = join(folder, 'redis.sock');
  const server = await startServer(['--unixsocket', socket]);
  const close = () => server.close().finally(() => rm(folder, { recursive: true, force: true }));
  return around(server, { url: socket, close });
}

async function shareOneCore(): Promise<Environment> {
  await findTool('taskset');
  const server = await startServer();
  const adopt = async (pid: number) =>
    void (await run('taskset', ['--all-tasks', '--cpu-list', '--pid', '0', `${pid}`]));
  await adopt(server.pid!);
  return around(server, { adopt });
}

async function besideSpinner(server: BenchServer): Promise<Environment> {
  const stop = startSpinner();
  return around(server, { close: async () => stop() });
}

async function behindDelay(server: BenchServer, roundTripMs: number): Promise<Environment> {
  const proxy = await openDelayProxy(server.url, roundTripMs);
  return around(server, { url: proxy.url, close: () => proxy.close() });
}
