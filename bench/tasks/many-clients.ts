import { keysOf } from '../variants/data.js';
import type { Measurements } from '../variants/protocol.js';
import { loopsFor, numberOption, Stopwatch, type TaskContext } from './context.js';

/** `clients` clients in one process, with `depth` loops of sequential GETs each, for `seconds`. */
export async function manyClients(context: TaskContext): Promise<Measurements> {
  const count = numberOption(context, 'clients');
  const keys = keysOf(
    context.prefix,
    { keys: numberOption(context, 'keys'), valueBytes: numberOption(context, 'bytes') },
    'get',
  );
  const more = await Promise.all(Array.from({ length: count - 1 }, () => context.open()));
  const clients = [context.client, ...more.map(({ client }) => client)];
  const watch = new Stopwatch();
  let next = 0;
  const commands = await loopsFor(count * numberOption(context, 'depth'), numberOption(context, 'seconds'), (loop) => {
    next = next + 1 === keys.length ? 0 : next + 1;
    return clients[loop % count]!.get(keys[next]!);
  });
  const figures = watch.figures(commands);
  for (const { close } of more) close();
  return figures;
}
