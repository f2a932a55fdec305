/**
 * A reply that the ends of chunks have cut, of any kind: decoded chunk by chunk, while its bytes are kept as they came,
 * first to last, so that at any time they can be handed to the host as if they had just arrived.
 */
import { CUT, NOT_DECODED, type ReplyDecoder } from './decoder.js';

/** Bytes of a longer reply are the host's: so much may be kept, and nothing is set aside at a server's word. */
export const LONGEST_ASSEMBLED = 64 * 1024 * 1024;

export class ReplyAssembler {
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(
    /** Has decoded what is there of the reply that is open. */
    readonly decoder: ReplyDecoder,
  ) {}

  /** Whether a reply is being put together. */
  get open(): boolean {
    return this.#pieces.length > 0;
  }

  /** Takes the chunk from `position` on, of which the decoder has said `CUT`; false if the reply is better the host's. */
  begin(chunk: Buffer, position: number): boolean {
    if (this.#keeps(position === 0 ? chunk : chunk.subarray(position))) return true;
    this.decoder.abandon();
    return false;
  }

  /**
   * @returns the value, which ends where the decoder says; `CUT` if the whole chunk was taken and there is more to come;
   *   or `NOT_DECODED` if the reply is the host's: what was kept before the chunk, then the chunk.
   */
  add(chunk: Buffer): unknown {
    const value = this.decoder.resume(chunk);
    if (value === NOT_DECODED || (value === CUT && this.#keeps(chunk))) return value;
    if (value === CUT) return NOT_DECODED;
    this.#forget();
    return value;
  }

  /** @returns the bytes so far, in their pieces. */
  release(): Buffer[] {
    const pieces = this.#pieces.slice();
    this.discard();
    return pieces;
  }

  /** Forgets what has come. */
  discard(): void {
    this.#forget();
    this.decoder.abandon();
  }

  #keeps(piece: Buffer): boolean {
    const { almostWhole, missing } = this.decoder;
    if (almostWhole || this.#bytes + piece.length + missing > LONGEST_ASSEMBLED) return false;
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    return true;
  }

  #forget(): void {
    this.#pieces.length = 0;
    this.#bytes = 0;
  }
}
