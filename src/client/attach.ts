import { CODES, describeType, warnStandIn, withCode } from '../errors.js';
import { isHostCluster } from '../host/cluster.js';
import { missingOfClient } from '../host/probe.js';
import { isStandIn } from '../host/stand-in.js';
import type { HostClient } from '../host/types.js';
import { DEFAULT_OPTIONS, type ResolvedOptions } from '../options.js';
import { ClientAttachment } from './client-attachment.js';
import { ClusterAttachment } from './cluster-attachment.js';
import { addIdleHandle } from './idle.js';
import { attachedTo } from './overlay.js';

/**
 * Coalesces a client or Cluster, unless it is coalesced already. It stays plain, with an idle handle, if `options` is
 * false or if it is a test's stand-in, which has no connection.
 *
 * @throws {TypeError} `COALESCE_ERR_CLIENT` for a value that is neither a client nor a stand-in; `COALESCE_ERR_OPTION`
 *   if `options` has a `cache` and the client does not speak RESP3.
 */
export function attach(client: object, options: ResolvedOptions | false): void {
  const missing = missingOfClient(client);
  if (missing !== undefined && !isStandIn(client)) throw notAClient(client, ` without ${missing}`);
  if (attachedTo(client) !== undefined) return;
  if (options === false) {
    addIdleHandle(client, DEFAULT_OPTIONS);
  } else if (missing !== undefined) {
    warnStandIn();
    addIdleHandle(client, options);
  } else if (isHostCluster(client)) {
    ClusterAttachment.attach(client, options);
  } else {
    ClientAttachment.attach(client as HostClient, options);
  }
}

export function notAClient(value: unknown, lacking = ''): TypeError {
  return withCode(
    new TypeError(
      'ioredis-coalesce: coalesce() expects an ioredis or iovalkey client, such as new Redis() or new Cluster(), ' +
        `got ${describeType(value)}${lacking}`,
    ),
    CODES.CLIENT,
  );
}
