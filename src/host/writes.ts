import { RequestReader } from '../resp/request-scanner.js';
import type { HostClient } from './types.js';

/**
 * Reads the writes by the host. Host: a single command is written before its entry is queued. An explicit pipeline is
 * written in one piece when its last command is sent. Its other entries are queued by then and have the pipeline's
 * writer as their `stream` (`built/Pipeline.js`, `execPipeline`). So a write is a pipeline only if the last entry belongs
 * to one that was not seen before.
 */
export class HostWrites {
  readonly #seen = new WeakSet<object>();

  read(client: HostClient, data: string | Uint8Array): RequestReader {
    const queue = client.commandQueue;
    const writer = queue.peekAt(queue.length - 1)?.stream;
    if (typeof writer !== 'object' || writer === null || this.#seen.has(writer)) return new RequestReader(data, true);
    this.#seen.add(writer);
    return new RequestReader(data, false);
  }
}
