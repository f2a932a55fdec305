import { type BenchServer, startServer, startServers, startTlsServer } from './bench-server.js';
import { openDelayProxy } from './delay-proxy.js';
import { startSpinner } from './spinner.js';
import { findTool, run } from './tool.js';

export interface Environment {
  readonly server: BenchServer;
  /** Where clients connect to. */
  readonly url: string;
  /** The authority that signed the certificate of that place. */
  readonly ca?: string;
  /** Called with each process that is measured. */
  adopt(pid: number): Promise<void>;
  close(): Promise<void>;
}

type Open = (own: BenchServer) => Promise<Environment>;

/**
 * Where a case runs. `cluster` has 3 masters. `one core`: client and server share one; `busy`: another process spins
 * beside them. The times are round trips, which a proxy on this machine adds. TLS is the server's own.
 */
const OPEN = {
  loopback: async (own) => around(own, { close: async () => {} }),
  cluster: async () => around(await startServers(3)),
  'one core': shareOneCore,
  busy: besideSpinner,
  '0.2 ms': behindProxy(0.2),
  '0.5 ms': behindProxy(0.5),
  '1 ms': behindProxy(1),
  TLS: overTls(),
  'TLS, 0.2 ms': overTls(0.2),
  'TLS, 0.5 ms': overTls(0.5),
  'TLS, 1 ms': overTls(1),
} satisfies Readonly<Record<string, Open>>;
export type EnvironmentKind = keyof typeof OPEN;

/** @throws {MissingError} where it cannot be had here */
export async function openEnvironment(kind: EnvironmentKind, own: BenchServer): Promise<Environment> {
  return OPEN[kind](own);
}

function around(server: BenchServer, more: Partial<Environment> = {}): Environment {
  return { server, url: server.url, adopt: async () => {}, close: () => server.close(), ...more };
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

function behindProxy(roundTripMs: number): Open {
  return async (server) => around(server, await openDelayProxy(server.url, roundTripMs));
}

function overTls(roundTripMs?: number): Open {
  return async () => {
    const { server, url, ca } = await startTlsServer();
    if (roundTripMs === undefined) return around(server, { url, ca });
    const proxy = await openDelayProxy(url, roundTripMs);
    const close = async () => {
      await proxy.close();
      await server.close();
    };
    return around(server, { url: proxy.url, ca, close });
  };
}
