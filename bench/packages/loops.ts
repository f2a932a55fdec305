import { LatencyRecorder } from '../variants/latency.js';
import type { Measured } from '../variants/protocol.js';

/** So many callers, each of which takes its next step as soon as the one before is done. */
export function callers(
  count: number,
  step: (caller: number) => Promise<unknown>,
): (seconds: number) => Promise<Measured> {
  return (seconds) =>
    timed(async (latency) => {
      const until = performance.now() + seconds * 1000;
      let steps = 0;
      await Promise.all(
        Array.from({ length: count }, async (_, caller) => {
          while (performance.now() < until) {
            const start = performance.now();
            await step(caller);
            latency.record(start);
            steps += 1;
          }
        }),
      );
      return steps;
    });
}

/** Runs something that says how much it did, and takes its time and this process's CPU. */
export async function timed(run: (latency: LatencyRecorder) => Promise<number>): Promise<Measured> {
  const latency = new LatencyRecorder();
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  const commands = await run(latency);
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const { p50, p99 } = latency.summary();
  return { commands, perSecond: commands / seconds, cpuUs: (user + system) / commands, latencyUs: { p50, p99 } };
}
