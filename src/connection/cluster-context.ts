import type { ClusterRouting } from '../host/cluster.js';
import type { Deadlines } from './deadlines.js';
import type { EntryContext } from './entry.js';
import type { ReadCache } from './read-cache.js';

/**
 * The context of a Cluster's commands on one connection: they know the way back to the Cluster.
 * Ordering: the host rejects entries in the order they were sent in, one at a time when the reader has forwarded an
 * error, the whole queue when the connection is lost.
 */
export function contextInCluster(
  context: EntryContext,
  routing: ClusterRouting,
  deadlines: Deadlines | undefined,
  cache: ReadCache | undefined,
): EntryContext {
  return {
    ...context,
    redirect: (entry, error) => {
      deadlines?.follow(entry);
      // The node has lost the slot, or part of it, and may announce no later change of its keys.
      if (/^(?:MOVED|ASK) /.test(error.message)) cache?.clear();
      entry.reject = (final) => entry.fail(final);
      routing.redirect(context.client, entry, error);
    },
  };
}
