import { ioredisOf } from '../variants/operations.js';
import type { Measurements } from '../variants/protocol.js';
import { numberOption, Stopwatch, type TaskContext, textOption } from './context.js';

/**
 * `count` PINGs, each awaited on its own: `in sequence`, each after the one before, or `at once`. What takes too long in
 * sequence is broken off after `seconds`; the figures are of what was done.
 */
export async function pings(context: TaskContext): Promise<Measurements> {
  const redis = ioredisOf(context.client);
  const count = numberOption(context, 'count');
  const until = performance.now() + numberOption(context, 'seconds') * 1000;
  const watch = new Stopwatch();
  if (textOption(context, 'way') === 'at once') {
    await Promise.all(Array.from({ length: count }, () => redis.ping()));
    return watch.figures(count);
  }
  let done = 0;
  do {
    await redis.ping();
    done += 1;
  } while (done < count && performance.now() < until);
  return watch.figures(done);
}
