/**
 * A reply that is split over several chunks: decoded chunk by chunk, while its bytes are kept from the first to the last,
 * so that at any time they can be handed to the host as if they had just arrived. Split replies of a single line, and to
 * EXEC, are left to the host. Who owns a reply is decided in `connection/replies/reply-reader.ts`.
 */
import { INCOMPLETE, NOT_DECODED, type ReplyDecoder } from './decoder.js';

/** Bytes of a reply that are kept at most; a longer one is the host's. Nothing is allocated on the server's say-so. */
export const LONGEST_ASSEMBLED = 64 * 1024 * 1024;

export class ReplyAssembler {
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(
    /** Has decoded the open reply as far as its bytes have arrived. */
    readonly decoder: ReplyDecoder,
    /** Returns bytes of a chunk in memory that is not used again. */
    readonly keep: (bytes: Buffer) => Buffer = (bytes) => bytes,
  ) {}

  /** Whether chunks are copied as they come, so that their memory may be used again. */
  get copies(): boolean {
    return this.decoder.lastCopied !== undefined;
  }

  /** Takes the chunk from `position` on, where the decoder has returned `INCOMPLETE`; false if the reply is the host's. */
  begin(chunk: Buffer, position: number): boolean {
    const { lastCopied } = this.decoder;
    const kept =
      lastCopied === undefined
        ? this.#keeps(this.keep(chunk.subarray(position)))
        : this.#keeps(Buffer.from(chunk.subarray(position, chunk.length - lastCopied.length)), lastCopied);
    if (!kept) this.discard();
    return kept;
  }

  /**
   * @param chunk - in memory that is not used again, unless `copies`.
   * @returns the value, which ends at the decoder's `end`; `INCOMPLETE` if the whole chunk was taken and bytes are missing; or
   *   `NOT_DECODED` if the reply is the host's: first the kept bytes, then the chunk.
   */
  add(chunk: Buffer): unknown {
    const value = this.decoder.resume(chunk);
    if (value === NOT_DECODED || (value === INCOMPLETE && this.#keeps(this.decoder.lastCopied ?? chunk))) return value;
    if (value === INCOMPLETE) return NOT_DECODED;
    this.#forget();
    return value;
  }

  /** @returns the kept bytes, in pieces as they came. */
  release(): Buffer[] {
    const pieces = this.#pieces.slice();
    this.discard();
    return pieces;
  }

  /** Drops the partial reply. */
  discard(): void {
    this.#forget();
    this.decoder.abandon();
  }

  #keeps(...pieces: Buffer[]): boolean {
    const { lacksTerminatorOnly, missing } = this.decoder;
    for (const piece of pieces) this.#bytes += piece.length;
    if (lacksTerminatorOnly || this.#bytes + missing > LONGEST_ASSEMBLED) return false;
    this.#pieces.push(...pieces);
    return true;
  }

  #forget(): void {
    this.#pieces.length = 0;
    this.#bytes = 0;
  }
}
