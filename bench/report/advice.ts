import { BOUNDED, DEFAULTS } from '../experiments/web-service.js';
import type { ExperimentResult } from '../suite/results.js';
import { medianAt, ratio, say } from './figure.js';

/** What follows from the figures of the experiments; nothing where one of them was not run. */
export function adviceFrom(experiments: readonly ExperimentResult[]): readonly string[] {
  const at = (experiment: string, figure: string, series: string, x: string) =>
    medianAt(experiments.find(({ id }) => id === experiment)?.figures ?? [], figure, series, x);
  const pings = (way: string) => at('experiment-round-trips', 'pings', 'coalesced', way);
  const far = (series: string) => at('experiment-round-trips', 'round-trips', series, '1');
  const scripts = (state: string) => at('experiment-round-trips', 'scripts', 'coalesced', state);
  const last = (variant: string, connections: string) => at('experiment-cascade', 'last', variant, connections);
  const bystander = (bounds: string, size: string) => at('experiment-web-service', 'bystander', bounds, size);
  const cpu = (callers: string) => at('scale', 'batch', 'measured', callers);
  const needed = [pings('at once'), far('at once, coalesced'), scripts('loaded'), last('plain', '4')];
  if ([...needed, bystander(DEFAULTS, '1000'), cpu('100')].includes(undefined)) return [];
  return [
    `**What is merged, and what stays sequential.** Merged is what is issued before the first reply: 10,000 PINGs take ` +
      `${say(pings('at once'))} s when they are issued at once and ${say(pings('in sequence'))} s when each waits for ` +
      `the one before. A command that needs the reply of another is sequential with every client; across many requests ` +
      'at a time, the first steps of all of them are merged, then the second steps. Inside one request, issue what does ' +
      'not depend on each other together (`Promise.all`).',
    `**When a script is the answer.** When one request has a chain of dependent commands, and the round trip is what ` +
      `it waits for: a millisecond away, one caller gets ${say(far('in sequence, coalesced'))} commands per second ` +
      `however they are sent. A Lua script makes one round trip of the chain. Load it at start: ` +
      `${say(scripts('loaded'))} calls per second loaded, ${say(scripts('not loaded'))} when every call finds it missing.`,
    `**When more connections are.** For blocking commands, subscriptions, and values of hundreds of kilobytes, each of ` +
      `which delays what is behind it. For small commands they bring little once they are coalesced: the last of 200 ` +
      `callers waits ${say(last('coalesced', '1'))} ms on one connection and ${say(last('coalesced', '4'))} ms on four ` +
      `(plain: ${say(last('plain', '1'))} and ${say(last('plain', '4'))} ms). They split the batches.`,
    `**How to choose a batch size.** CPU per command falls to ${say(cpu('10'))} µs at 10 commands per batch, ` +
      `${say(cpu('100'))} µs at 100 and ${say(cpu('1000'))} µs at 1,000, from ${say(cpu('1'))} µs alone ` +
      `(${ratio(cpu('1'), cpu('100'))} the cost at 100): most of the gain is there at a hundred. What larger ones ` +
      `cost others shows in the p99 of another client: ${say(bystander(DEFAULTS, '100'))} ms while bursts of 100 are ` +
      `sent, ${say(bystander(DEFAULTS, '1000'))} ms at 1,000 and ${say(bystander(DEFAULTS, '100000'))} ms at 100,000 ` +
      `under the defaults (\`maxBatchSize\` 1,000, \`maxInFlight\` 10,000); ${say(bystander(BOUNDED, '100000'))} ms ` +
      `with \`maxInFlight: 1000\`. Lower \`maxInFlight\` where you share a server with others whose latency matters.`,
  ];
}
