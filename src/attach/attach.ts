import { corkOf } from '../cork/cork.js';
import { environment } from '../environment.js';
import { CODES, coded, describeType, warnOnce, wrongOption } from '../errors.js';
import { type HostCluster, isHostCluster, speaksResp3 } from '../host/cluster.js';
import { firstMissingMember, isTestDouble } from '../host/probe.js';
import type { HasOptions, HostClient } from '../host/types.js';
import {
  type CoalesceSetting,
  DEFAULT_OPTIONS,
  type ResolvedOptions,
  resolveSetting,
  withoutCacheUnless,
} from '../options.js';
import { setSplitting } from '../split/split-keys.js';
import { viewedBy } from '../util/values.js';
import { addIdleHandle, coalescerOf, markProvisional, previousOptions, releaseProvisional } from './attachment.js';
import { ClientAttachment } from './client-attachment.js';
import { ClusterAttachment } from './cluster-attachment.js';
import { CorkAttachment, selectMode } from './cork-attachment.js';

/**
 * Coalesces a client or Cluster, or that of a view, unless it is coalesced already. It stays plain, with an idle
 * handle, if `options` is false, if `IOREDIS_COALESCE` is `off`, or if it is a test double, which has no connection.
 *
 * @param options - default: the options of the client before `detach()`, or the defaults.
 * @param isConstructed - by the module `ioredis`. If a test has replaced that, the client is a test double.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` for a value that is neither a client nor a test double;
 *   `COALESCE_ERR_OPTION` if `options` has a `cache` and the client does not speak RESP3.
 */
export function attach(given: unknown, options: ResolvedOptions | false | undefined, isConstructed = false): void {
  if (typeof given !== 'object' || given === null) throw notAClient(given);
  const client = viewedBy(given);
  const missing = firstMissingMember(client);
  if (missing !== undefined && !isConstructed && !isTestDouble(client)) throw notAClient(client, ` without ${missing}`);
  if (options !== undefined) releaseProvisional(client);
  if (coalescerOf(client) !== undefined) return;
  const chosen = options ?? previousOptions(client);
  if (chosen === false || environment === 'off') {
    addIdleHandle(client, DEFAULT_OPTIONS);
  } else if (missing !== undefined) {
    warnOnce(
      CODES.TEST_DOUBLE,
      'ioredis-coalesce: the client is a test double without a connection (ioredis-mock, or a mock of another library), ' +
        'so it is left unchanged and nothing is coalesced',
    );
    addIdleHandle(client, chosen);
  } else {
    attachReal(client as HasOptions, chosen);
  }
  if (options !== undefined && missing === undefined && isHostCluster(client)) {
    setSplitting(client, options !== false && options.splitKeys);
  }
}

/**
 * Coalesces a new client whose code has not asked for it. A later `attach` with options replaces this one. It stays
 * plain if its class throws, such as an accessor that uses fields which are not set yet: the client's constructor, in
 * which this is called, would otherwise stop halfway.
 */
export function attachProvisionally(client: object, options: ResolvedOptions): void {
  try {
    attachAsUsable(client, options);
  } catch (error) {
    warnOnce(CODES.CLIENT, `ioredis-coalesce: a client stays plain: ${error}`);
  }
}

function attachAsUsable(client: object, options: ResolvedOptions): void {
  if (firstMissingMember(client) !== undefined || coalescerOf(client) !== undefined) return;
  if ((client as HostClient).options.monitor) return;
  // All clients of the process get the same options; a client ignores those that it cannot use.
  const splitKeys = options.splitKeys && isHostCluster(client);
  const usable = withoutCacheUnless(speaksResp3(client as HostClient), { ...options, splitKeys });
  attachReal(client as HostClient, usable);
  markProvisional(client);
  if (splitKeys) setSplitting(client as HasOptions, true);
}

function attachReal(client: HasOptions, options: ResolvedOptions): void {
  const selected = selectMode(client, options);
  if ('why' in selected) {
    corkOf(client)?.undo();
    new CorkAttachment(client, options, selected, coalesceCopy);
    return;
  }
  if (options.cache && !speaksResp3(client as HostClient)) {
    throw wrongOption(
      'the option cache needs a client that speaks RESP3, in which Redis says which keys have ' +
        'changed: ioredis 6 with protocol 3, its default; ioredis 5, iovalkey and protocol: 2 have only RESP2',
    );
  }
  if (options.splitKeys && !isHostCluster(client)) {
    throw wrongOption(
      'the option splitKeys needs a Cluster; a single server takes keys of several slots in one command',
    );
  }
  corkOf(client)?.undo();
  attachOrRestore(client, () =>
    isHostCluster(client)
      ? new ClusterAttachment(client, options, selected, coalesceCopy)
      : new ClientAttachment(client as HostClient, options, selected, coalesceCopy),
  );
}

/** Attaches to a client. Restores it if user code that runs meanwhile throws, such as a listener of `newListener`. */
function attachOrRestore(client: object, make: () => unknown): void {
  const handle = Object.getOwnPropertyDescriptor(client, 'coalescer');
  try {
    make();
  } catch (error) {
    coalescerOf(client)?.detach();
    Reflect.deleteProperty(client, 'coalescer');
    if (handle !== undefined) Reflect.defineProperty(client, 'coalescer', handle);
    throw Object.assign(coded(TypeError, CODES.CLIENT, `coalesce() could not attach to the client: ${error}`), {
      cause: error,
    });
  }
}

/** The `CoalesceCopy` of all clients and Clusters. */
function coalesceCopy(copy: object, args: readonly unknown[], options: ResolvedOptions): void {
  const client = copy as HostClient | HostCluster;
  // `monitor()` creates its client by `duplicate()`. The first argument of a Cluster's is a list of nodes.
  const { monitor, coalesce } = (args[isHostCluster(client) ? 1 : 0] ?? {}) as {
    readonly monitor?: unknown;
    readonly coalesce?: CoalesceSetting;
  };
  if (monitor) return;
  const chosen = coalesce === undefined ? options : resolveSetting(coalesce, 'option coalesce');
  if (chosen === false) {
    addIdleHandle(client, DEFAULT_OPTIONS);
    return;
  }
  attachReal(client, withoutCacheUnless(speaksResp3(client), chosen));
  if (isHostCluster(client)) setSplitting(client, chosen.splitKeys);
}

function notAClient(value: unknown, lacking = ''): TypeError {
  const expected = 'coalesce() expects an ioredis or iovalkey client, such as new Redis() or new Cluster()';
  const got = looksLikeNodeRedis(value)
    ? 'an object that looks like a client of node-redis (redis), which is not supported'
    : `${describeType(value)}${lacking}`;
  return coded(TypeError, CODES.CLIENT, `${expected}, got ${got}`);
}

function looksLikeNodeRedis(value: unknown): boolean {
  const { isOpen, sendCommand, hGetAll } = Object(value) as Record<string, unknown>;
  return typeof isOpen === 'boolean' && [sendCommand, hGetAll].every((method) => typeof method === 'function');
}
