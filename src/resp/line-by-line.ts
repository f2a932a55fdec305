const LF = 10;
/** Characters that are kept of a line: as many as `+QUEUED` has. */
const LINE_KEPT = 7;

/** Splits bytes into lines, of which some may be cut by the end of a chunk. */
export class LineByLine {
  #beginning = '';

  /** Whether the last chunk ended within a line. */
  get isAmidLine(): boolean {
    return this.#beginning !== '';
  }

  /**
   * Calls `each` with the lines of a chunk, until it returns true.
   *
   * @param each - gets a line, or its part in this chunk, and the line's first characters.
   * @returns the position behind the last line that it was given.
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
