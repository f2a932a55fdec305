/**
 * `node --import ioredis-coalesce/register app.js`, or `--require`: coalesces every client of ioredis and iovalkey when
 * it is constructed, including those inside packages, without changes to code.
 *
 * Options come from the environment variable `IOREDIS_COALESCE` (`environment.ts`). Clients coalesced explicitly keep
 * the options given there.
 */
import { environment, reports, VARIABLE, warnEnvironment } from './environment.js';
import { onNewClient } from './host/new-clients.js';
import { type ResolvedOptions, resolveSetting } from './options.js';

/**
 * @param rest - loads the rest of this package at the first client, since most processes have none when they start.
 *   `tools/entries.mjs` passes it, as require() calls that file tracers can follow.
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
