/** Which ground a client stands on: the fast path, which rests on the inside of known releases, or the cork. */
import { environment, VARIABLE } from '../environment.js';
import { CODES, warnOnce } from '../errors.js';
import { commandClassOf } from '../host/probe.js';
import { type UnknownClient, unknownRelease } from '../host/recognize.js';
import { isDebugging } from '../host/state.js';
import type { HasOptions, HostCommandClass } from '../host/types.js';
import { needingFastPath, type ResolvedOptions } from '../options.js';

/** Why a client gets the cork. */
export interface CorkReason {
  readonly why: string;
  /** Its name, if it is of no known release. */
  readonly unknown?: string;
}

const OTHER_REALM = 'a client of another realm';
const HELP = '(docs/compatibility.md)';
/** What to do about a client of no known release. */
const CURES: Readonly<Record<UnknownClient['cause'], (by: string) => string>> = {
  release: () => `: update ioredis-coalesce, or use a release that it knows ${HELP}`,
  changed: () => `: its files, or those of a dependency, were patched; use them as they were published ${HELP}`,
  rewritten: (by) => `: ${by} has rewritten more of it than the one method that it watches; update that ${HELP}`,
  bundle: () =>
    `: it is part of a bundle, or came by a loader; keep it external, or minify in a way that is known ${HELP}`,
};

/**
 * The `Command` class of a client that gets the fast path; or why it gets the cork. A warning tells that, unless
 * somebody has asked for the cork and no option is ignored.
 */
export function groundOf(client: HasOptions, options: ResolvedOptions): HostCommandClass | CorkReason {
  if (!options.fastPath) return { why: 'the option fastPath is false' };
  if (environment === 'cork') return corked(`${VARIABLE} is cork`, options);
  // In a test file of Jest, say: it has other classes, also for what commands return, and an Error is none of ours.
  if (!(client instanceof Object)) return { ...corked('it is of another realm', options), unknown: OTHER_REALM };
  const unknown = unknownRelease(client);
  if (unknown !== undefined) {
    const { name, cause, by = 'an APM, a patch or a loader' } = unknown;
    const why = `${name} is not a release that this version of ioredis-coalesce knows`;
    warn(CODES.UNKNOWN_CLIENT, why, options, CURES[cause](by));
    return { why, unknown: name };
  }
  if (client.options.showFriendlyErrorStack) return corked('the option showFriendlyErrorStack is set', options);
  if (isDebugging()) return corked('DEBUG prints the commands of the client', options);
  return commandClassOf(client) ?? corked('echo() was replaced, which leads to its Command class', options, true);
}

function corked(why: string, options: ResolvedOptions, unexpected = needingFastPath(options).length > 0): CorkReason {
  if (unexpected) warn(CODES.CORK, why, options);
  return { why };
}

function warn(code: string, why: string, options: ResolvedOptions, cure = ''): void {
  const lost = needingFastPath(options);
  const ignored = lost.length > 0 ? `; ignored: ${lost.join(', ')}` : '';
  warnOnce(
    code,
    `ioredis-coalesce: ${why}${cure}; meanwhile the commands of a turn leave in one write, but the client encodes and decodes ` +
      `them itself (the cork)${ignored}`,
  );
}
