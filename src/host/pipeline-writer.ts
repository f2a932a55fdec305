import type { Duplex } from 'node:stream';
import { RequestReader } from '../resp/request-scanner.js';
import type { HostClient, HostCommand, QueueItem } from './types.js';

/**
 * Through this the host sends the commands of a light pipeline again, when their connection was lost. It writes all of
 * them at once, with the last one.
 *
 * Host: `exec` makes a writer like this for its own pipelines (`built/Pipeline.js`), and each of their queue items has
 * it. Without it the commands would be written one by one. If a write failed in the midst, since the new connection is
 * lost already, the commands behind it would go to `offlineQueue`. There they are aborted as a fragment of a
 * transaction, while its MULTI, alone in `commandQueue`, would be sent again on the next connection.
 */
export class PipelineWriter {
  readonly isPipeline = true;
  readonly destination: { readonly redis: HostClient };
  #pieces: Uint8Array[] = [];
  /** The stream that the pieces are for. */
  #stream: Duplex | undefined;

  constructor(
    /** Commands that were sent; users may have added others to the pipeline since. */
    readonly commands: number,
    client: HostClient,
  ) {
    this.destination = { redis: client };
  }

  /** Its `destination` leads back to the client, whose queue leads here. */
  toJSON(): object {
    const { isPipeline, commands } = this;
    return { isPipeline, commands };
  }

  write(data: string | Uint8Array): void {
    const { stream } = this.destination.redis;
    if (stream !== this.#stream) {
      this.#stream = stream;
      this.#pieces = [];
    }
    this.#pieces.push(typeof data === 'string' ? Buffer.from(data) : data);
    if (this.#pieces.length < this.commands) return;
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    stream?.write(bytes);
  }
}

/** The queue item of a command of the host's that is sent with a light pipeline. */
export function pipelineItem(
  sender: { readonly writer: PipelineWriter },
  command: HostCommand,
  select: number,
): QueueItem {
  return {
    command,
    select,
    get stream() {
      return sender.writer;
    },
  };
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
