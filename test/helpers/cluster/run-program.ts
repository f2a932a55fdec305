import type { RedisCluster } from '../../../tools/redis-cluster.js';
import { type Outcome, outcomes } from '../hosts.js';
import type { ClusterClient } from './clients.js';
import { PROGRAM } from './program.js';

/** Runs the program on an empty cluster and returns what each step came to. */
export async function runProgram(nodes: RedisCluster, cluster: ClusterClient): Promise<Record<string, Outcome[]>> {
  await empty(nodes);
  const found: Record<string, Outcome[]> = {};
  for (const [name, step] of Object.entries(PROGRAM)) {
    found[name] = await outcomes(step(cluster));
  }
  return found;
}

export async function empty(nodes: RedisCluster): Promise<void> {
  const masters = await nodes.masters();
  await Promise.all(
    masters.map(async ({ client }) => {
      await client.flushall();
      await client.script('FLUSH');
    }),
  );
}

/** The count of a line of INFO commandstats, over all nodes that run: `calls`, `rejected_calls`, `failed_calls`. */
export async function commandCounts(nodes: RedisCluster, command: string): Promise<Record<string, number>> {
  const counts = { calls: 0, rejected_calls: 0, failed_calls: 0 };
  for (const { client } of nodes.nodes) {
    const line = (await client.info('commandstats')).match(new RegExp(`^cmdstat_${command}:(.*)\\r$`, 'm'))?.[1] ?? '';
    for (const [, name, value] of line.matchAll(/(\w+)=(\d+)/g)) {
      if (name !== undefined && name in counts) counts[name as keyof typeof counts] += Number(value);
    }
  }
  return counts;
}

export async function resetCommandCounts(nodes: RedisCluster): Promise<void> {
  await Promise.all(nodes.nodes.map(({ client }) => client.config('RESETSTAT')));
}
