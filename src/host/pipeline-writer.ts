import type { Duplex } from 'node:stream';
import { RequestReader } from '../resp/request-scanner.js';
import type { HostClient } from './types.js';

/**
 * Through this the host sends the commands of a fast pipeline again, when their connection was lost. It writes all of
 * them at once, with the last one.
 *
 * Host: `exec` makes a writer like this for its own pipelines (`built/Pipeline.js`), and each of their queue items has
 * it. Without it the commands would be written one by one. If a write failed in the midst, since the new connection is
 * lost already, the commands behind it would go to `offlineQueue`. There they are aborted as a fragment of a
 * transaction, while its MULTI, alone in `commandQueue`, would be sent again on the next connection.
 */
export abstract class PipelineWriter {
  #pieces: Uint8Array[] | undefined;
  /** The stream that the pieces are for. */
  #stream: Duplex | undefined;

  /** The number of commands that were sent; users may have added others to the pipeline since. */
  abstract readonly sent: number;
  abstract readonly context: { readonly client: HostClient };

  get isPipeline(): boolean {
    return true;
  }

  get destination(): { readonly redis: HostClient } {
    return { redis: this.context.client };
  }

  write(data: string | Uint8Array): void {
    const { stream } = this.context.client;
    if (stream !== this.#stream || this.#pieces === undefined) {
      this.#stream = stream;
      this.#pieces = [];
    }
    this.#pieces.push(typeof data === 'string' ? Buffer.from(data) : data);
    if (this.#pieces.length < this.sent) return;
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = undefined;
    stream?.write(bytes);
  }
}

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
