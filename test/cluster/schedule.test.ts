/** One `schedule` function serves all nodes of a Cluster, and may know of one flush only. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { CLUSTER_HOSTS, type ClusterHost, warm } from '../helpers/cluster/clients.js';
import { keysOverAllSlots } from '../helpers/cluster/program.js';
import { LONG_ENOUGH, outcomesWithin } from '../helpers/hosts.js';

let nodes: RedisCluster;
beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 0 });
});
afterAll(() => nodes?.stop());

/** Each flush waits for the next one, and takes its place. */
function debounce(ms: number): (flush: () => void) => void {
  let timer: NodeJS.Timeout | undefined;
  return (flush) => {
    clearTimeout(timer);
    timer = setTimeout(flush, ms);
  };
}

/** The first flush of a while is the one that runs. */
function throttle(ms: number): (flush: () => void) => void {
  let waiting = false;
  return (flush) => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      flush();
    }, ms);
  };
}

describe.each(CLUSTER_HOSTS)('Cluster of $name: a schedule function', (host: ClusterHost) => {
  it.each([
    ['that debounces', debounce],
    ['that throttles', throttle],
  ])('%s flushes every node that has pending bytes', async (_, make) => {
    let schedule: ((flush: () => void) => void) | undefined;
    const cluster = await warm(
      host.createCoalesced(
        nodes,
        {},
        { schedule: (flush) => (schedule === undefined ? setImmediate(flush) : schedule(flush)) },
      ),
    );
    schedule = make(10);
    for (let round = 0; round < 3; round += 1) {
      const keys = keysOverAllSlots(60);
      const replies = keys.map((key, index) =>
        index % 5 === 4 ? cluster.call('SET', key, 'v') : cluster.set(key, 'v'),
      );
      expect(await outcomesWithin(LONG_ENOUGH, replies as Promise<unknown>[])).toEqual(
        keys.map(() => ({ value: 'OK' })),
      );
    }
  });
});
