import type { ReadMemory } from '../host/read-buffer.js';

/** The memory of the chunk that is being read. The next read may overwrite it, so nothing may refer to it later. */
export class ChunkMemory {
  /** Undefined for a chunk with memory of its own. */
  #memory: ReadMemory | undefined;
  #keptChunk: Buffer | undefined;

  /** Runs `read` on a chunk in this memory. */
  lend(memory: ReadMemory, read: () => void): void {
    this.#memory = memory;
    try {
      read();
    } finally {
      this.#memory = undefined;
      this.#keptChunk = undefined;
    }
  }

  /** Returns bytes of the chunk in memory that may be referred to. */
  readonly keep = (bytes: Buffer): Buffer => this.#memory?.keep(bytes) ?? bytes;

  /** The same for the whole chunk, any number of times. */
  keepChunk(chunk: Buffer): Buffer {
    if (this.#memory === undefined) return chunk;
    this.#keptChunk ??= this.#memory.keep(chunk);
    return this.#keptChunk;
  }
}
