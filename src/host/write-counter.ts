import { type RequestScan, scanRequests } from '../resp/request-scanner.js';
import type { HostClient } from './types.js';

const ONE_COMMAND: RequestScan = { commands: 1, transaction: undefined, repliesOff: false };

/**
 * How many commands a write of the host's stands for. A single command is written before its entry is pushed. An
 * explicit pipeline's bytes go out in one write when its last command passes; its other entries are in the queue by
 * then and carry the pipeline's writer as their `stream` (`built/Pipeline.js`, `execPipeline`). So only a write behind
 * entries of a pipeline not met before needs a look at its bytes.
 */
export class HostWriteCounter {
  readonly #met = new WeakSet<object>();

  /** @param look - whether a single command's bytes are to be looked at too. */
  scan(client: HostClient, data: string | Uint8Array, look: boolean): RequestScan {
    const queue = client.commandQueue;
    const writer = queue.peekAt(queue.length - 1)?.stream;
    if (typeof writer !== 'object' || writer === null || this.#met.has(writer)) {
      return look ? { ...scanRequests(data), commands: 1 } : ONE_COMMAND;
    }
    this.#met.add(writer);
    return scanRequests(data);
  }
}
