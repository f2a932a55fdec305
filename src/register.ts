/**
 * `node --import ioredis-coalesce/register app.js`, or `--require`: every client of ioredis and iovalkey that the
 * process makes is coalesced as it is constructed, those inside packages too. No code changes.
 *
 * Options come from the environment variable `IOREDIS_COALESCE` (`environment.ts`). Clients that code coalesces itself
 * keep the options that it gives.
 */
import { environment, reports, VARIABLE, warnEnvironment } from './environment.js';
import { onNewClient } from './host/new-clients.js';
import { type ResolvedOptions, resolveSetting } from './options.js';

/**
 * @param rest - the rest of this package, loaded with the first client, since most processes have none at their start.
 *   `tools/entries.mjs` gives it, by calls of require() that whatever copies the package's files can follow.
 */
export function register(rest: {
  attach(): typeof import('./attach/attach.js');
  advise(): typeof import('./advise/layer.js');
}): void {
  const options = optionsOfAll();
  if (!options) return;
  onNewClient((client) => {
    const { attachProvisionally } = rest.attach();
    if (reports?.startsWith('advise')) rest.advise().advise();
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
