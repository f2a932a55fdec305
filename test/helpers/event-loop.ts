import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, vi } from 'vitest';

/** For the tests of a file, the event loop was busy for this share of each second, however busy the machine is. */
export function assumeUtilization(utilization: number): void {
  let spy: ReturnType<typeof spyOn>;
  const spyOn = () =>
    vi.spyOn(performance, 'eventLoopUtilization').mockReturnValue({ idle: 0, active: 0, utilization });
  beforeAll(() => {
    spy = spyOn();
  });
  afterAll(() => spy.mockRestore());
}
