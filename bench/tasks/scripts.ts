import type { Redis } from 'ioredis';
import { ioredisOf } from '../variants/operations.js';
import type { Measurements } from '../variants/protocol.js';
import { numberOption, Stopwatch, type TaskContext, textOption } from './context.js';

const LUA = "return redis.call('INCR', KEYS[1])";

interface WithScript extends Redis {
  benchScript(key: string): Promise<number>;
}

/** `count` calls of a script of `defineCommand` at once: EVALSHA each, and EVAL for those that find it not `loaded`. */
export async function scripts(context: TaskContext): Promise<Measurements> {
  const redis = ioredisOf(context.client) as WithScript;
  const count = numberOption(context, 'count');
  if (!('benchScript' in redis)) (redis as Redis).defineCommand('benchScript', { numberOfKeys: 1, lua: LUA });
  await redis.script('FLUSH', 'SYNC');
  if (textOption(context, 'script') === 'loaded') await redis.script('LOAD', LUA);
  const key = `${context.prefix}script`;
  await redis.unlink(key);
  const watch = new Stopwatch();
  await Promise.all(Array.from({ length: count }, () => redis.benchScript(key)));
  const figures = watch.figures(count);
  const counted = Number(await redis.get(key));
  if (counted !== count) throw new Error(`expected the script to have run ${count} times, it ran ${counted} times`);
  return figures;
}
