/**
 * Which mode a client runs in: the fast path, which rests on the inside of known releases, or the cork; and what a
 * client in cork mode has.
 */
import type { Duplex } from 'node:stream';
import { inspect } from 'node:util';
import { viewOf } from '../calls/view.js';
import { hasBatchSubscribers, reportConnection, traceBatch } from '../channels.js';
import { type Corked, type CorkFlushReason, type CorkObserver, cork } from '../cork/cork.js';
import { environment, reports, VARIABLE } from '../environment.js';
import { CODES, warnOnce } from '../errors.js';
import type { Coalescer } from '../handle.js';
import { copyOf, type HostCopy } from '../host/recognize.js';
import { addressOf, isDebugging } from '../host/state.js';
import type { AnyFunction, HasOptions, HostClient } from '../host/types.js';
import { type CallOptions, corkOptionsOf, needingFastPath, type ResolvedOptions } from '../options.js';
import { type CoalescerStats, Stats } from '../stats.js';
import { nextTick } from '../util/clock.js';
import { giveHandle, releaseProvisional } from './attachment.js';
import { report } from './report.js';

/** Why a client gets the cork. */
export interface CorkReason {
  readonly why: string;
  /** Its name, if it is of no known release. */
  readonly unknown?: string;
}

const OTHER_REALM = 'a client of another realm';
const HELP = '(docs/compatibility.md)';
/**
 * The copy of the host that a client is of, if it gets the fast path; or why it gets the cork. A warning tells that,
 * unless somebody has asked for the cork and no option is ignored.
 */
export function selectMode(client: HasOptions, options: ResolvedOptions): HostCopy | CorkReason {
  if (!options.fastPath) return { why: 'the option fastPath is false' };
  if (environment === 'cork') return corked(`${VARIABLE} is cork`, options);
  // In a test file of Jest, say: it has other classes, also for what commands return, and an Error is none of ours.
  if (!(client instanceof Object)) return { ...corked('it is of another realm', options), unknown: OTHER_REALM };
  const copy = copyOf(client);
  if ('unknown' in copy) {
    const { unknown, differs, by } = copy;
    const why = `${unknown} is not a release that this version of ioredis-coalesce knows`;
    const cause = by === undefined ? `${differs} differs` : `${by} has rewritten more of it than it watches`;
    warn(
      CODES.UNKNOWN_CLIENT,
      why,
      options,
      ` (${cause}): update ioredis-coalesce, or use the client as published ${HELP}`,
    );
    return { why, unknown };
  }
  if (client.options.showFriendlyErrorStack) return corked('the option showFriendlyErrorStack is set', options);
  if (!Object.isExtensible(client)) return corked('the client can get no new properties', options);
  if (isDebugging()) return corked('DEBUG prints the commands of the client', options);
  return copy;
}

function corked(why: string, options: ResolvedOptions): CorkReason {
  if (needingFastPath(options).length > 0) warn(CODES.CORK, why, options);
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

const DETACHED = { undo: 'detach()', close: 'the connection is closed' };

/** Counts what the corks of a client, or of a Cluster's nodes, do, and tells the channels. */
export function corkObserver(client: HasOptions, counters: Stats, { why }: CorkReason): CorkObserver {
  const at = (stream: Duplex) => ({
    get address() {
      return addressOf(client as HostClient, stream);
    },
  });
  return {
    polls: counters,
    corked(stream) {
      // Later: it may be told amid a write, where no user code may run.
      nextTick(() => reportConnection(at(stream), 'attached', why));
    },
    uncorked(stream, reason) {
      nextTick(() => reportConnection(at(stream), 'detached', DETACHED[reason]));
    },
    flushed(stream: Duplex, reason: CorkFlushReason, size: number, bytes: number, waited: number) {
      counters.commands += size;
      counters.flushed(reason, size, bytes, waited);
      if (!hasBatchSubscribers()) return;
      const { address } = at(stream);
      const event = { size, fastCommands: 0, fallbackCommands: size, bytes, reason, waited, address };
      nextTick(() => traceBatch(event, () => {}));
    },
  };
}

/** The handle of a client or Cluster that has the cork: nothing is known of it but its stream and its events. */
export class CorkAttachment implements Coalescer {
  enabled = true;
  readonly cache = undefined;
  readonly counters = new Stats();
  readonly #corked: Corked;

  constructor(
    readonly client: HasOptions & { readonly status?: string },
    readonly options: ResolvedOptions,
    readonly reason: CorkReason,
    readonly coalesceCopy: (copy: object, args: readonly unknown[], options: ResolvedOptions) => void,
  ) {
    this.#corked = cork(client, corkOptionsOf(options), corkObserver(client, this.counters, reason));
    giveHandle(client, this);
    this.#ownDuplicate();
    if (reports) report(this);
  }

  stats(): CoalescerStats {
    const { unknown } = this.reason;
    return { ...this.counters.snapshot(this.enabled ? 'cork' : 'plain'), ...(unknown && { unknownClient: unknown }) };
  }

  withOptions(options: CallOptions): object {
    return viewOf(this.client, options);
  }

  flush(): void {
    this.#corked.flush();
  }

  detach(): void {
    if (!this.enabled) return;
    this.enabled = false;
    this.#corked.undo();
    const own = Object.getOwnPropertyDescriptor(this.client, 'duplicate')?.value as unknown;
    if (own === this.#duplicate) Reflect.deleteProperty(this.client, 'duplicate');
  }

  /** Copies are coalesced, too: for this one public method stands on the client itself, until `detach()`. */
  #ownDuplicate(): void {
    const { client } = this;
    if (Object.hasOwn(client, 'duplicate')) return;
    Reflect.defineProperty(client, 'duplicate', { value: this.#duplicate, writable: true, configurable: true });
  }

  readonly #duplicate = (...args: unknown[]): object => {
    const { duplicate } = Object.getPrototypeOf(this.client) as { duplicate: AnyFunction };
    const copy = duplicate.apply(this.client, args) as HasOptions;
    // A copy of the drop-in class is coalesced already.
    if (!('coalescer' in copy) || releaseProvisional(copy)) this.coalesceCopy(copy, args, this.options);
    return copy;
  };

  toJSON(): object {
    return { options: this.options, stats: this.stats() };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}
