import { fileURLToPath } from 'node:url';
import { freePort } from '../../tools/free-port.js';
import type { BenchServer } from '../suite/bench-server.js';
import { Child } from './child.js';
import { Cleanup } from './cleanup.js';
import { shopEnvironment, waitForHealth } from './service.js';

const EXAMPLE = new URL('../../examples/fastify-app/', import.meta.url);
const WANTED_PORT = 3000;
// However the demo ends, the example ends with it; and its channel does not keep it alive.
const END_WITH_US = 'data:text/javascript,process.on("disconnect",()=>process.exit());process.channel?.unref()';

export interface LivePageOrder {
  server: BenchServer;
  /** Ends it. */
  signal: AbortSignal;
  /** Called once, when the page can be opened. */
  ready(url: string): void;
}

/** Runs the example with its live page until it is told to end. No process is left; the keys are the server's. */
export async function showLivePage({ server, signal, ready }: LivePageOrder): Promise<void> {
  const cleanup = new Cleanup();
  try {
    signal.throwIfAborted();
    const origin = `http://127.0.0.1:${await freePort(WANTED_PORT)}`;
    const child = startExample(origin, server);
    await cleanup.add(() => child.stop());
    await waitForHealth(child, origin);
    await server.expireAll();
    ready(`${origin}/`);
    await Promise.race([child.ended(), aborted(signal)]);
  } finally {
    await cleanup.run();
  }
}

function startExample(origin: string, server: BenchServer): Child {
  return new Child('the example', fileURLToPath(new URL('start.mjs', EXAMPLE)), {
    execArgv: ['--import', END_WITH_US],
    env: {
      ...process.env,
      NODE_ENV: 'production',
      NODE_OPTIONS: '',
      // Its own, so that `ioredis-coalesce` is the built package and not, by the repository's, its sources.
      TSX_TSCONFIG_PATH: process.env.TSX_TSCONFIG_PATH || fileURLToPath(new URL('tsconfig.json', EXAMPLE)),
      HOST: '127.0.0.1',
      PORT: new URL(origin).port,
      LOG_LEVEL: 'warn',
      ...shopEnvironment(server),
    },
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
    }
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
