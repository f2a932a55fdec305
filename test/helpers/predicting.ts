import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, vi } from 'vitest';
import { Batch } from '../../src/core/batch.js';

/**
 * For the tests of a file, reads are predicted as with a server that is far away: the event loop was busy for this
 * share of each second, however busy the machine is.
 */
export function assumeFar(utilization = 0): void {
  const spies: { mockRestore(): void }[] = [];
  beforeAll(() => {
    spies.push(
      vi.spyOn(Batch.prototype, 'serverIsNear', 'get').mockReturnValue(false),
      vi.spyOn(performance, 'eventLoopUtilization').mockReturnValue({ idle: 0, active: 0, utilization }),
    );
  });
  afterAll(() => {
    for (const spy of spies) spy.mockRestore();
  });
}
