/**
 * `node --import ioredis-coalesce/register app.js`, or `--require`: every client of ioredis and iovalkey that the
 * process makes is coalesced as it is constructed, those inside packages too. No code changes.
 *
 * Options come from the environment variable `IOREDIS_COALESCE` (`environment.ts`). Clients that code coalesces itself
 * keep the options that it gives.
 */
import { createRequire } from 'node:module';
import { environment, reports, VARIABLE, warnEnvironment } from './environment.js';
import { onNewClient } from './host/new-clients.js';
import { type ResolvedOptions, resolveSetting } from './options.js';

const options = optionsOfAll();

if (options) {
  const load = createRequire(import.meta.url);
  onNewClient((client) => {
    // The rest of this package, as it is built: with the first client, since most processes have none at their start.
    const { attachProvisionally } = load('./attach.cjs') as typeof import('./attach/attach.js');
    if (reports?.startsWith('advise')) (load('./advise.cjs') as typeof import('./advise/layer.js')).advise();
    attachProvisionally(client, options);
  });
}

/** Never throws: a mistake in the variable must not end the process at its start. */
function optionsOfAll(): ResolvedOptions | false {
  try {
    return resolveSetting(typeof environment === 'object' ? environment : environment !== 'off', VARIABLE);
  } catch (error) {
    warnEnvironment(error as Error);
    return false;
  }
}
