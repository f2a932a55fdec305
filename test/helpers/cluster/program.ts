import { cold } from '../cold.js';
import type { ClusterClient } from './clients.js';

/** One key for each of `count` slots all over the cluster. */
export const keysOverAllSlots = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `key:${index}`);

export type Step = (cluster: ClusterClient) => Promise<unknown>[];

const KEYS = keysOverAllSlots(60);

/**
 * What a service does with a Cluster. The steps are run one after the other; what one step issues, it issues in one
 * turn of the event loop. Nothing in it depends on chance or time, so two Clusters must give the same outcomes.
 */
export const PROGRAM: Readonly<Record<string, Step>> = {
  'strings over all slots': (cluster) => [
    ...KEYS.map((key, index) => cluster.set(key, `value ${index} é`)),
    ...KEYS.map((key) => cluster.get(key)),
    ...KEYS.map((key) => cluster.getBuffer(key)),
    ...KEYS.map((key) => cluster.strlen(key)),
  ],
  'a write and a read of each key, in turns': (cluster) =>
    KEYS.flatMap((key, index) => [
      cluster.append(key, '+'),
      cluster.get(key),
      cluster.set(`n:${key}`, index),
      cluster.incrby(`n:${key}`, 1000),
    ]),
  'commands that are not on the fast path': (cluster) =>
    KEYS.flatMap((key) => [cluster.get(key), cold(cluster, 'strlen', key), cold(cluster, 'pttl', key)]),
  hashes: (cluster) =>
    KEYS.flatMap((key, index) => [
      cluster.hset(`h:${key}`, { a: index, b: 'x' }),
      cluster.hset(`h:${key}`, 'c', Buffer.from([0, 200])),
      cluster.hgetall(`h:${key}`),
      cluster.hmget(`h:${key}`, 'a', 'none', 'b'),
      cluster.hincrby(`h:${key}`, 'a', 7),
    ]),
  'lists, sets, sorted sets': (cluster) =>
    KEYS.flatMap((key) => [
      cluster.rpush(`l:${key}`, 'a', 'b', 'c'),
      cluster.lrange(`l:${key}`, 0, -1),
      cluster.lpop(`l:${key}`),
      cluster.sadd(`s:${key}`, ['one']),
      cluster.smembers(`s:${key}`),
      cluster.zadd(`z:${key}`, 1.5, 'low', 2, 'high'),
      cluster.zrange(`z:${key}`, '0', '-1', 'WITHSCORES'),
      cluster.zscore(`z:${key}`, 'none'),
    ]),
  'hash tags': (cluster) => [
    cluster.mset('{tag}a', '1', '{tag}b', '2'),
    cluster.mget('{tag}a', '{tag}b', '{tag}none'),
    cluster.mget(['{tag}b', '{tag}a']),
    cluster.set('{}whole', 'empty tag'),
    cluster.get('{}whole'),
    cluster.set('a{b}{c}', 'the first tag counts'),
    cluster.get('a{b}{c}'),
    cluster.rename('{tag}a', '{tag}c'),
    cluster.del('{tag}b', '{tag}c'),
  ],
  'keys that are numbers, bytes, or empty': (cluster) => [
    cluster.set(Buffer.from('bytes'), 'by Buffer'),
    cluster.get('bytes'),
    cold(cluster, 'set', '42', 'by number'),
    cluster.get(42 as unknown as string),
    cluster.set('ключ', 'wide'),
    cluster.get('ключ'),
    cluster.set('', 'empty'),
    cluster.get(''),
    cluster.get(Buffer.from('')),
  ],
  'several slots in one command': (cluster) => [
    cluster.mget('a', 'b', 'c'),
    cluster.get('key:1'),
    cluster.mset('a', '1', 'b', '2'),
    cluster.del('a', 'b'),
    cluster.exists('a', 'b'),
    cluster.sinter('a', 'b'),
    cluster.rename('a', 'b'),
    cluster.eval('return 1', 2, 'a', 'b'),
    cluster.get('key:2'),
  ],
  'errors of the server': (cluster) => [
    cluster.hget('key:1', 'field'),
    cluster.get('key:1'),
    cluster.incr('key:2'),
    (cluster.call as (name: string) => Promise<unknown>)('ping'),
    cluster.call('nonsense', 'key:3'),
    cluster.get('key:3'),
  ],
  'arguments that are wrong': (cluster) => {
    const { get, set } = cluster as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    return [
      attempt(() => get?.call(cluster)),
      attempt(() => set?.call(cluster, 'key:1')),
      attempt(() => get?.call(cluster, undefined)),
      attempt(() => get?.call(cluster, null)),
      attempt(() => get?.call(cluster, 'key:4')),
    ];
  },
  scripts: (cluster) => {
    cluster.defineCommand('readTwice', { numberOfKeys: 1, lua: "return {redis.call('get', KEYS[1]), ARGV[1]}" });
    const { readTwice } = cluster as unknown as { readTwice(key: string, text: string): Promise<unknown> };
    return [
      ...KEYS.slice(0, 20).map((key) => cluster.eval("return redis.call('get', KEYS[1])", 1, key)),
      ...KEYS.slice(0, 20).map((key) => readTwice.call(cluster, key, 'argument')),
      cluster.eval("return redis.error_reply('of the script')", 1, 'key:0'),
      cluster.evalsha('0'.repeat(40), 1, 'key:0'),
    ];
  },
  'pipelines and transactions': (cluster) => [
    cluster.set('{p}a', '1'),
    cluster.pipeline().get('{p}a').incr('{p}a').get('{p}a').hget('{p}a', 'field').exec(),
    cluster.get('{p}a'),
    cluster.multi().set('{p}b', '1').incr('{p}b').get('{p}b').exec(),
    cluster.get('{p}b'),
    cluster.multi().incr('{p}b').lpush('{p}b', 'wrong type').exec(),
    cluster.pipeline().get('a').get('b').exec(),
    cluster.multi().get('a').get('b').exec(),
    cluster.pipeline().exec(),
    cluster.get('{p}b'),
  ],
  callbacks: (cluster) =>
    ['key:1', 'key:2'].map(
      (key) =>
        new Promise((resolve, reject) => {
          void cluster.get(key, (error, value) => (error ? reject(error) : resolve(value)));
        }),
    ),
  'commands without a key': (cluster) => [
    cluster.ping(),
    cluster.echo('text'),
    cluster.call('PING', 'text'),
    cluster.publish('nobody listens', 'message'),
  ],
  scans: (cluster) =>
    KEYS.slice(0, 10).map((key) => cluster.hscan(`h:${key}`, 0).then(([cursor, fields]) => [cursor, fields.sort()])),
  removal: (cluster) => [...KEYS.map((key) => cluster.del(key)), ...KEYS.map((key) => cluster.get(key))],
};

/** Tells an error that is thrown at once from one that the promise is rejected with. */
function attempt(issue: () => Promise<unknown> | undefined): Promise<unknown> {
  try {
    return Promise.resolve(issue());
  } catch (error) {
    return Promise.resolve(`thrown at once: ${String(error)}`);
  }
}
