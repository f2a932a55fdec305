/** What a piece of request bytes contains. */
export interface RequestScan {
  /** Whole commands. */
  readonly commands: number;
  /** Whether a transaction is open after it, if it opens or closes any. */
  readonly transaction: 'open' | 'closed' | undefined;
  /** Whether it has a `CLIENT REPLY OFF` or `SKIP`, behind which replies are missing. */
  readonly repliesOff: boolean;
}

const CR = 13;

/**
 * Counts the commands in request bytes and follows MULTI, EXEC and DISCARD through them.
 *
 * RESP: a request is an array of bulk strings (https://redis.io/docs/latest/develop/reference/protocol-spec).
 * Bytes of another form end the scan; what was counted so far is returned, at least one command.
 */
export function scanRequests(data: string | Uint8Array): RequestScan {
  const bytes = typeof data === 'string' ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.length);
  let position = 0;
  let commands = 0;
  let transaction: RequestScan['transaction'];
  let repliesOff = false;

  const readLength = (marker: string): number => {
    if (bytes[position] !== marker.charCodeAt(0)) return -1;
    const lineEnd = bytes.indexOf(CR, position);
    if (lineEnd < 0) return -1;
    const length = Number(bytes.latin1Slice(position + 1, lineEnd));
    position = lineEnd + 2;
    return Number.isSafeInteger(length) ? length : -1;
  };

  while (position < bytes.length) {
    const argumentCount = readLength('*');
    if (argumentCount < 1) break;
    let name = '';
    for (let index = 0; index < argumentCount; index += 1) {
      const length = readLength('$');
      if (length < 0) return { commands: Math.max(commands, 1), transaction, repliesOff };
      if (index === 0 || (index < 3 && name.startsWith('client '))) {
        name += `${bytes.latin1Slice(position, position + Math.min(length, 16)).toLowerCase()} `;
      }
      position += length + 2;
    }
    name = name.trimEnd();
    commands += 1;
    if (name === 'client reply off' || name === 'client reply skip') repliesOff = true;
    if (name === 'multi') transaction = 'open';
    else if (name === 'exec' || name === 'discard' || name === 'reset') transaction = 'closed';
  }
  return { commands: Math.max(commands, 1), transaction, repliesOff };
}
