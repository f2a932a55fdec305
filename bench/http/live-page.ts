import { fileURLToPath } from 'node:url';
import { freePort } from '../../tools/free-port.js';
import type { BenchServer } from '../suite/bench-server.js';
import { Child } from '../suite/child.js';
import type { Cleanup } from '../suite/cleanup.js';
import { exampleEnvironment, waitForHealth } from './service.js';

const EXAMPLE = new URL('../../examples/fastify-app/', import.meta.url);
const WANTED_PORT = 3000;
// However the demo ends, the example ends with it; and its channel does not keep it alive.
const END_WITH_US = 'data:text/javascript,process.on("disconnect",()=>process.exit());process.channel?.unref()';

/**
 * Runs the example with its live page until it ends, and says where the page can be opened. The keys are the server's.
 */
export async function showLivePage(server: BenchServer, cleanup: Cleanup): Promise<void> {
  const port = await freePort(WANTED_PORT);
  const child = new Child('the example', fileURLToPath(new URL('start.mjs', EXAMPLE)), {
    execArgv: ['--import', END_WITH_US],
    env: {
      ...exampleEnvironment(server, port),
      // Its own, so that `ioredis-coalesce` is the built package and not, by the repository's, its sources.
      TSX_TSCONFIG_PATH: process.env.TSX_TSCONFIG_PATH || fileURLToPath(new URL('tsconfig.json', EXAMPLE)),
    },
  });
  await cleanup.add(() => child.stop());
  const origin = `http://127.0.0.1:${port}`;
  await waitForHealth(child, origin, server);
  console.log(`\nThe live page: ${origin}/\nCtrl-C ends it.`);
  await child.ended();
}
