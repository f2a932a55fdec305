/**
 * `node --import ioredis-coalesce/register app.js`, or `--require`: every client of ioredis and iovalkey that the process
 * makes is coalesced as it is constructed, those inside packages too. No code changes.
 *
 * Options come from the environment variable `IOREDIS_COALESCE` (`environment.ts`). Clients that code coalesces itself
 * keep the options that it gives.
 */
import { createRequire } from 'node:module';
import { environment, VARIABLE } from './environment.js';
import { watchClients } from './host/watch-clients.js';
import { resolveSetting } from './options.js';

const options = resolveSetting(typeof environment === 'object' ? environment : environment === 'stats', VARIABLE);

if (options) {
  const load = createRequire(import.meta.url);
  watchClients((client) => {
    // The rest of this package, as it is built: with the first client, since most processes have none at their start.
    const { attachProvisionally } = load('./attach.cjs') as typeof import('./client/attach.js');
    attachProvisionally(client, options);
  });
}
