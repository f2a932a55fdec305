import type { Redis } from 'ioredis';

/** Issues commands of every kind that a tracer meets, the failing ones included, on keys that begin with `k`. */
export function everyKind(client: Redis, k: string): Promise<unknown>[] {
  client.defineCommand('double', { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], 2)" });
  const double = (client as unknown as { double(key: string): Promise<number> }).double.bind(client);
  return [
    client.del(k, `${k}:hash`, `${k}:list`),
    client.set(k, 'text'),
    client.get(k),
    client.getBuffer(k),
    client.incr(k),
    client.hset(`${k}:hash`, { field: 'value' }),
    client.hgetall(`${k}:hash`),
    client.mget([k, `${k}:none`]),
    client.call('GET', k),
    client.eval('return ARGV[1]', 0, 'argument'),
    client.pipeline().get(k).lpush(`${k}:list`, 'a').incr(k).exec(),
    client.multi().get(k).lpush(`${k}:list`, 'b').exec(),
    double(`${k}:number`),
    client.del(k, `${k}:hash`, `${k}:list`, `${k}:number`),
  ];
}
