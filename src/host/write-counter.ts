import { type RequestScan, scanRequests } from '../resp/request-scanner.js';
import type { HostClient } from './types.js';

/** A single `MULTI`, `EXEC`, `DISCARD` or `CLIENT REPLY OFF` is not longer than this on the wire. */
const LONGEST_STATE_COMMAND = 48;
const ONE_COMMAND: RequestScan = { commands: 1, transaction: undefined, repliesOff: false };

/**
 * Counts the commands in a write by the host. Host: a single command is written before its entry is queued. An explicit
 * pipeline is written in one piece when its last command is sent. Its other entries are queued by then and have the
 * pipeline's writer as their `stream` (`built/Pipeline.js`, `execPipeline`). So the bytes of a write are read only if
 * the last entry belongs to a pipeline that was not seen before.
 */
export class HostWriteCounter {
  readonly #seen = new WeakSet<object>();

  /** @param look - whether the bytes of a long single command are to be read too. */
  scan(client: HostClient, data: string | Uint8Array, look: boolean): RequestScan {
    const queue = client.commandQueue;
    const writer = queue.peekAt(queue.length - 1)?.stream;
    if (typeof writer !== 'object' || writer === null || this.#seen.has(writer)) {
      return look || data.length <= LONGEST_STATE_COMMAND ? { ...scanRequests(data), commands: 1 } : ONE_COMMAND;
    }
    this.#seen.add(writer);
    return scanRequests(data);
  }
}
