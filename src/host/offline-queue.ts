/**
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.3–0.4, `built/Redis.js`, `built/cluster/index.js`.
 */
import type { HostCommand, HostQueue } from './types.js';

interface OfflineQueue extends HostQueue {
  removeOne(index: number): unknown;
}

interface Queueing {
  readonly offlineQueue?: Partial<OfflineQueue>;
  readonly isCluster?: unknown;
  nodes?(): Queueing[];
}

/**
 * Removes a command from the offline queue of a client, or of a Cluster and its nodes, if it is there. In a transaction it
 * stays: EXEC's reply has a place for each of its commands.
 */
export function dropUnsent(client: object, command: HostCommand): void {
  const { isCluster, nodes } = client as Queueing;
  const all = isCluster === true ? [client, ...(nodes?.call(client) ?? [])] : [client];
  for (const { offlineQueue } of all as Queueing[]) {
    if (typeof offlineQueue?.removeOne === 'function') dropFrom(offlineQueue as OfflineQueue, command);
  }
}

function dropFrom(queue: OfflineQueue, command: HostCommand): void {
  let inTransaction = false;
  for (let index = 0; index < queue.length; index += 1) {
    const queued = queue.peekAt(index)?.command;
    if (queued?.name === 'multi') inTransaction = true;
    else if (queued?.name === 'exec' || queued?.name === 'discard') inTransaction = false;
    if (queued !== command) continue;
    if (inTransaction) return;
    queue.removeOne(index);
    // Clears its timers. Its caller has been rejected already.
    command.reject(new Error('aborted'));
    return;
  }
}
