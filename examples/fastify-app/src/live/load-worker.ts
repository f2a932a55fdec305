/** The process that makes the load, to keep it out of the service's event loop; controlled over IPC. */
import { type LoadRequest, type LoadResult, type LoadSample, LoadTotals, runLoad } from './load.js';

/** Loads of one series are added up. */
export type SeriesRequest = LoadRequest & { series: string };

export type LoadMessage = { sample: LoadSample } | { result: LoadResult } | { error: string };

const series = new Map<string, LoadTotals>();

const send = (message: LoadMessage): void => {
  process.send?.(message);
};

// However the service ends, its load ends with it.
process.on('disconnect', () => process.exit());
process.on('message', (request: SeriesRequest) => {
  const totals = series.get(request.series) ?? new LoadTotals();
  series.set(request.series, totals);
  runLoad(request, totals, (sample) => send({ sample })).then(
    (result) => send({ result }),
    (error: unknown) => send({ error: error instanceof Error ? error.message : String(error) }),
  );
});
