/**
 * Selects a client's mode: the fast path, which uses the internals of known releases, or the cork; and attaches the
 * cork to a client.
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
import { belowSplitting } from '../split/split-keys.js';
import { type CoalescerStats, Stats } from '../stats.js';
import { nextTick } from '../util/clock.js';
import { type CoalesceCopy, defineHandle, releaseProvisional } from './attachment.js';
import { report } from './report.js';

/** Why a client is corked. */
export interface CorkReason {
  readonly why: string;
  /** The client's name, if its release is unknown. */
  readonly unknown?: string;
}

const OTHER_REALM = 'a client from another realm';
const HELP = '(docs/compatibility.md)';
/**
 * The copy of the host that has made the client, if it gets the fast path; otherwise, why it is corked. Warns in the
 * second case, unless the user has asked for the cork and no option is ignored.
 */
export function selectMode(client: HasOptions, options: ResolvedOptions): HostCopy | CorkReason {
  if (!options.fastPath) return { why: 'the option fastPath is false' };
  if (environment === 'cork') return corked(`${VARIABLE} is cork`, options);
  // For example, in a Jest test file, whose classes differ from ours, including Error and those of replies.
  if (!(client instanceof Object)) return { ...corked('it is from another realm', options), unknown: OTHER_REALM };
  const copy = copyOf(client);
  if ('unknown' in copy) {
    const { unknown, differs, by } = copy;
    const why = `${unknown} is not a release that this version of ioredis-coalesce knows`;
    const cause = by === undefined ? differs : `${by} has rewritten more of it than it watches`;
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

/** Counts the batches of a client's cork, or those of a Cluster's nodes, and publishes their events. */
export function corkObserver(client: HasOptions, counters: Stats, { why }: CorkReason): CorkObserver {
  const at = (stream: Duplex) => ({
    get address() {
      return addressOf(client as HostClient, stream);
    },
  });
  return {
    polls: counters,
    corked(stream) {
      // Deferred, because no user code may run during a write.
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

/** The handle of a corked client or Cluster, of which only the stream and the events are used. */
export class CorkAttachment implements Coalescer {
  enabled = true;
  onDetached?: () => void;
  readonly cache = undefined;
  readonly counters = new Stats();
  readonly #corked: Corked;

  constructor(
    readonly client: HasOptions & { readonly status?: string },
    readonly options: ResolvedOptions,
    readonly reason: CorkReason,
    readonly coalesceCopy: CoalesceCopy,
  ) {
    this.#corked = cork(client, corkOptionsOf(options), corkObserver(client, this.counters, reason));
    defineHandle(client, this);
    belowSplitting(client, () => this.#ownDuplicate());
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
    this.onDetached?.();
    belowSplitting(this.client, () => {
      const own = Object.getOwnPropertyDescriptor(this.client, 'duplicate')?.value as unknown;
      if (own === this.#duplicate) Reflect.deleteProperty(this.client, 'duplicate');
    });
  }

  /** Makes `duplicate()` coalesce its copies: the only method defined on the client itself, until `detach()`. */
  #ownDuplicate(): void {
    const { client } = this;
    if (Object.hasOwn(client, 'duplicate')) return;
    Reflect.defineProperty(client, 'duplicate', { value: this.#duplicate, writable: true, configurable: true });
  }

  readonly #duplicate = (...args: unknown[]): object => {
    const { duplicate } = Object.getPrototypeOf(this.client) as { duplicate: AnyFunction };
    const copy = duplicate.apply(this.client, args) as HasOptions;
    // The constructor of the drop-in class has coalesced its copy.
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
