import type { Keep } from '../host/read-buffer.js';

/** The memory of the chunk that is being read. The next read may overwrite it, so nothing may refer to it later. */
export class ChunkMemory {
  /** Undefined for a chunk with memory of its own. */
  #keep: Keep | undefined;
  #keptChunk: Buffer | undefined;

  /** Runs `read` on a chunk whose memory is used again. */
  lend(keep: Keep, read: () => void): void {
    this.#keep = keep;
    try {
      read();
    } finally {
      this.#keep = undefined;
      this.#keptChunk = undefined;
    }
  }

  /** Returns bytes of the chunk in memory that may be referred to. */
  readonly keep = (bytes: Buffer): Buffer => this.#keep?.(bytes) ?? bytes;

  /** The same for the whole chunk, any number of times. */
  keepChunk(chunk: Buffer): Buffer {
    if (this.#keep === undefined) return chunk;
    this.#keptChunk ??= this.#keep(chunk);
    return this.#keptChunk;
  }
}
