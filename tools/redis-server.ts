import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { freePort } from './free-port.js';
import { findServerBinary, type Log, logToStderr, type ServerBinary } from './server-binary.js';
import { HOST, PortTakenError, ServerProcess } from './server-process.js';

export { findServerBinary };

const PORT_ATTEMPTS = 5;

export interface RedisServer {
  readonly url: string;
  readonly host: '127.0.0.1';
  readonly port: number;
  readonly pid: number;
  readonly binary: string;
  readonly version: string;
  /** Orderly stop; idempotent. */
  stop(): Promise<void>;
  /** SIGKILL, for fault tests. */
  kill(): Promise<void>;
}

export interface StartOptions {
  /** Extra redis.conf-style arguments, e.g. `['--maxmemory', '10mb']`. */
  args?: readonly string[];
  /** @default a free loopback port */
  port?: number;
  /** The binary, as `REDIS_SERVER` names it. @default that one */
  binary?: string;
  /** Where "installing …" notices go. @default stderr */
  log?: Log;
}

/**
 * Starts a server on loopback that persists nothing, and resolves once it answers PING. It is stopped, and its folder
 * removed, by `stop()`, or else when this process ends, however it ends. It does not keep the event loop alive.
 */
export async function startRedis(options: StartOptions = {}): Promise<RedisServer> {
  const binary = await findServerBinary(options.log, options.binary);
  const attempts = options.port === undefined ? PORT_ATTEMPTS : 1;
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await freePort());
    try {
      return await startOn(port, binary, options.args ?? []);
    } catch (error) {
      const taken = error instanceof PortTakenError;
      if (!taken || attempt >= attempts) {
        throw error;
      }
    }
  }
}

async function startOn(port: number, binary: ServerBinary, extra: readonly string[]): Promise<RedisServer> {
  const server = new ServerProcess(port, binary, extra);
  try {
    await server.ready();
  } catch (error) {
    await server.end('SIGKILL');
    throw error;
  }
  return {
    url: `redis://${HOST}:${port}`,
    host: HOST,
    port,
    pid: server.pid,
    binary: binary.path,
    version: binary.version,
    stop: () => server.end('SIGTERM'),
    kill: () => server.end('SIGKILL'),
  };
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { port: { type: 'string' }, find: { type: 'boolean' } } });
  if (values.find) {
    const binary = await findServerBinary();
    console.log(`${binary.path} ${binary.version}`);
    return;
  }
  // Before the URL is printed: its reader may send the signal at once.
  const asked = Promise.race((['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) => once(process, signal)));
  const server = await startRedis(values.port === undefined ? {} : { port: parsePort(values.port) });
  console.log(server.url);
  logToStderr(`${server.binary} ${server.version}, nothing is persisted; Ctrl-C stops it`);
  // The server does not keep the event loop alive; this does.
  const forever = setInterval(() => {}, 2 ** 30);
  await asked;
  clearInterval(forever);
  await server.stop();
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    throw new Error(`--port must be a whole number from 1 to 65535, got "${text}"`);
  }
  return port;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
