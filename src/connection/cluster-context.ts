import type { ClusterRouting } from '../host/cluster.js';
import type { Deadlines } from './deadlines.js';
import type { EntryContext } from './entry.js';

/**
 * The context of a Cluster's commands on one connection: they know the way back to the Cluster.
 * Ordering: the host rejects entries in the order they were sent in, one at a time when the reader has forwarded an
 * error, the whole queue when the connection is lost.
 */
export function contextInCluster(
  context: EntryContext,
  routing: ClusterRouting,
  deadlines: Deadlines | undefined,
): EntryContext {
  return {
    ...context,
    redirect: (entry, error) => {
      deadlines?.follow(entry);
      entry.reject = (final) => entry.fail(final);
      routing.redirect(context.client, entry, error);
    },
  };
}
