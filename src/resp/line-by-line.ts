const LF = 10;
/** The number of characters kept of a line: the length of `+QUEUED`. */
const LINE_KEPT = 7;

/** Splits bytes into lines, which may continue in the next chunk. */
export class LineByLine {
  #beginning = '';

  /** Whether the last chunk ended within a line. */
  get isWithinLine(): boolean {
    return this.#beginning !== '';
  }

  /**
   * Calls `each` with the lines of a chunk, until it returns true.
   *
   * @param each - receives a line, or its part in this chunk, and the first characters of the line.
   * @returns the end of the last line passed to `each`.
   */
  read(chunk: Buffer, each: (line: Buffer, beginning: string) => boolean): number {
    let position = 0;
    for (let isDone = false; position < chunk.length && !isDone; ) {
      const end = chunk.indexOf(LF, position) + 1 || chunk.length;
      const more = chunk.latin1Slice(position, Math.min(end, position + LINE_KEPT));
      this.#beginning = (this.#beginning + more).slice(0, LINE_KEPT);
      isDone = each(chunk.subarray(position, end), this.#beginning);
      position = end;
      if (chunk[end - 1] === LF) this.#beginning = '';
    }
    return position;
  }
}
