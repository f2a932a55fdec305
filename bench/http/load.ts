/** The process that makes the load: the example's own way of making it, asked over IPC, one run at a time. */
import { runLoad } from '../../examples/fastify-app/src/live/load.js';
import type { LoadAnswer, LoadRequest } from './types.js';

const answer = (message: LoadAnswer): void => {
  process.send?.(message);
};

process.on('disconnect', () => process.exit());
process.on('message', (request: LoadRequest) => {
  runLoad(request).then(answer, (error: unknown) => {
    answer({ error: error instanceof Error ? error.message : String(error) });
  });
});
