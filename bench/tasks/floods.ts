import { setTimeout as sleep } from 'node:timers/promises';
import { keysOf } from '../variants/data.js';
import type { Measurements } from '../variants/protocol.js';
import { numberOption, Stopwatch, type TaskContext } from './context.js';

/** Bursts of `size` GETs, at least one, for about `seconds`, with `pauseMs` between them; of values of `bytes`. */
export async function floods(context: TaskContext): Promise<Measurements> {
  const size = numberOption(context, 'size');
  const keys = keysOf(
    context.prefix,
    { keys: numberOption(context, 'keys'), valueBytes: numberOption(context, 'bytes') },
    'get',
  );
  const until = performance.now() + numberOption(context, 'seconds') * 1000;
  const watch = new Stopwatch();
  let commands = 0;
  do {
    const replies = await Promise.all(
      Array.from({ length: size }, (_, index) => context.client.get(keys[index % keys.length]!)),
    );
    if (replies.includes(null)) throw new Error('expected a value for every key of the burst, got null');
    commands += size;
    await sleep(numberOption(context, 'pauseMs'));
  } while (performance.now() < until);
  return watch.figures(commands);
}
