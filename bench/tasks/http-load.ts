import { build } from 'hdr-histogram-js';
import type { Figures } from '../workload.js';
import { numberOption, textOption } from './context.js';
import type { TaskContext } from './index.js';

const LONGEST_US = 60_000_000;
const SAMPLE_MS = 20;

/** Requests for the `paths` (by commas) of `origin`, by `connections`, for `seconds`; `rate` a second in all, 0 = as fast as it goes. */
export async function httpLoad(context: TaskContext): Promise<Figures> {
  const { default: autocannon } = await import('autocannon');
  const origin = textOption(context, 'origin');
  const paths = textOption(context, 'paths').split(',');
  const rate = numberOption(context, 'rate');
  // Its own rounds to whole milliseconds.
  const histogram = build({ highestTrackableValue: LONGEST_US, numberOfSignificantValueDigits: 3 });
  const start = performance.now();
  let answered = 0;
  let last = start;
  const result = await new Promise<{ errors: number; non2xx: number }>((resolve, reject) => {
    const options = {
      url: origin,
      connections: numberOption(context, 'connections'),
      duration: numberOption(context, 'seconds'),
      requests: paths.map((path) => ({ path })),
      sampleInt: SAMPLE_MS,
      ...(rate === 0 ? {} : { overallRate: rate }),
    };
    const running = autocannon(options, (error: unknown, found) => {
      if (error) reject(error);
      else resolve(found);
    });
    running.on('response', (_client, _status, _bytes, milliseconds) => {
      answered += 1;
      last = performance.now();
      histogram.recordValue(Math.min(LONGEST_US, Math.round(milliseconds * 1000)));
    });
  });
  if (answered === 0 || result.errors + result.non2xx > 0) {
    throw new Error(
      `${origin}${paths[0]}: expected 2xx answers, got ${answered} answers, ${result.non2xx} others, ${result.errors} errors`,
    );
  }
  const seconds = (last - start) / 1000;
  const at = (percentile: number) => histogram.getValueAtPercentile(percentile) / 1000;
  return { commands: answered, seconds, perSecond: answered / seconds, p50Ms: at(50), p99Ms: at(99) };
}
