/** Commands by every way of the fast path: single ones, callbacks, `call`, a script, a pipeline, a transaction. */
import type { Redis } from 'ioredis';

/** The option `scripts` that the commands need. */
export const SCRIPTS = { answer: { lua: 'return "value " .. KEYS[1]', numberOfKeys: 1 } };

/** @returns all outcomes and what the callback was given; of errors their texts. */
export async function useEveryWay(client: Redis): Promise<unknown> {
  const called: unknown[] = [];
  const scripted = client as Redis & { answer(key: string): Promise<unknown> };
  const settled = await Promise.allSettled([
    client.set('a', 'value é'),
    client.get('a'),
    client.getBuffer('a'),
    client.set('b', Buffer.from('value')),
    client.get('b', (...args: unknown[]) => void called.push(args)),
    client.set('n', 5),
    client.incr('n'),
    client.hset('h', { f: 'value' }),
    client.hgetall('h'),
    client.mget('a', 'none'),
    client.call('get', 'a'),
    client.lpush('a', 1),
    scripted.answer('a'),
  ]);
  const single = settled.map((one) =>
    one.status === 'fulfilled' ? one.value : { ...one.reason, text: `${one.reason}` },
  );
  const piped = await client.pipeline().set('p', 'value').get('p').incr('p').exec();
  const queued = await client.multi().set('q', 'value').get('q').exec();
  return [single, called, piped?.map(([error, value]) => [String(error), value]), queued];
}
