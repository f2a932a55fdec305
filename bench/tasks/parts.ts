/** Bursts that are sent in parts whose sizes are given, not chosen by a policy. */

import type { Dataset, OperationId } from '../variants/data.js';
import { Data, OPERATIONS } from '../variants/operations.js';
import type { Measurements } from '../variants/protocol.js';
import { LatencyRecorder, loopsFor, recorded, Stopwatch } from '../variants/timing.js';
import type { TaskContext } from './context.js';

export interface PartedBurst {
  readonly operation: OperationId;
  /** Commands. */
  readonly size: number;
  readonly data: Dataset;
  /** Commands of a first part beside the others; 0 for none. */
  readonly lead: number;
  /** Into how many parts of about the same size the other commands go. */
  readonly parts: number;
}

/** One burst after the other for about `seconds`, by a client that sends one batch per turn, or sooner if it is flushed. */
export async function parts(
  { client, prefix }: TaskContext,
  { operation, size, data: shape, lead, parts: count, seconds }: PartedBurst & { seconds: number },
): Promise<Measurements> {
  const { coalescer } = client;
  if (coalescer === undefined) throw new Error('parts are sent by flush(), which needs a coalesced client');
  const data = new Data(prefix, shape, operation);
  const send = OPERATIONS[operation].send(client, data);
  const ends = endsOf(size, lead, count);
  const latency = new LatencyRecorder();
  let next = 0;
  const burst = () => {
    const replies = new Array<Promise<unknown>>(size);
    for (let index = 0; index < size; index += 1) {
      replies[index] = send(next);
      next = next + 1 === shape.keys ? 0 : next + 1;
      if (ends[index]) coalescer.flush();
    }
    return Promise.all(replies);
  };
  const watch = new Stopwatch();
  const bursts = await loopsFor(1, seconds, recorded(burst, latency));
  const figures = watch.figures(bursts * size);
  const { p50, p99 } = latency.summary();
  return { ...figures, p50, p99 };
}

/** By index: whether a part ends with this command. The last one ends with the turn. */
function endsOf(size: number, lead: number, count: number): boolean[] {
  const ends = new Array<boolean>(size).fill(false);
  if (lead > 0) ends[lead - 1] = true;
  for (let part = 1; part < count; part += 1) ends[lead + Math.ceil((part * (size - lead)) / count) - 1] = true;
  return ends;
}
