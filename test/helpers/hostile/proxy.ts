import { ReplyScanner } from '../../../src/resp/reply-scanner.js';
import { Relay, type Treatment } from '../relay.js';
import type { Random } from './random.js';

/** What the proxy does to the bytes that pass; everything may be set at any time, and holds from then on. */
export interface Faults {
  /** The size of the next packet of replies, when `left` bytes are left. @default all of them */
  pieceOf?: (random: Random, left: number) => number;
  /** Milliseconds to hold replies back; those that come meanwhile are merged with them. @default 0 */
  delay?: (random: Random) => number;
  /** Resets connections after this number of bytes of replies, in the middle of one or not. */
  resetAfterReplyBytes?: (random: Random) => number;
  /** Resets connections after this number of bytes of requests was passed on. */
  resetAfterRequestBytes?: (random: Random) => number;
  /** Puts bytes that begin no reply between two replies, after this number of replies. */
  garbageAfterReplies?: (random: Random) => number;
  /** One of these. @default bytes that every decoder refuses */
  garbage?: readonly Buffer[];
}

const GARBAGE = ['garbage\r\n', '\0\0\0\0', '{"ok":true}\r\n', 'HTTP/1.1 400 Bad Request\r\n\r\n'].map((text) =>
  Buffer.from(text),
);

/** A proxy between clients and a real server, with faults by a seed. It runs until it is closed. */
export class HostileProxy extends Relay {
  faults: Faults = {};
  /** Bytes that came from clients and line feeds that went to them, on all connections. */
  requestBytes = 0;
  replyLines = 0;
  /** Told of every chunk that comes from a client. */
  onRequest: (() => void) | undefined;

  private constructor(
    target: number,
    readonly random: Random,
  ) {
    super(target);
  }

  static async start(target: number, random: Random): Promise<HostileProxy> {
    const proxy = new HostileProxy(target, random);
    await proxy.listen();
    return proxy;
  }

  protected treat(): Treatment {
    const { random } = this;
    const { resetAfterRequestBytes, resetAfterReplyBytes, garbageAfterReplies } = this.faults;
    return {
      ...(resetAfterRequestBytes && { requests: { bytes: resetAfterRequestBytes(random) } }),
      ...(resetAfterReplyBytes && { replies: { bytes: resetAfterReplyBytes(random) } }),
      ...(garbageAfterReplies && { spoil: this.#spoiler(garbageAfterReplies(random)) }),
      delay: () => this.faults.delay?.(random) ?? 0,
      cut: () => (left) => this.faults.pieceOf?.(random, left) ?? Number.POSITIVE_INFINITY,
      onRequest: (chunk) => {
        this.requestBytes += chunk.length;
        this.onRequest?.();
      },
      onReply: (packet) => {
        this.replyLines += countLines(packet);
      },
    };
  }

  /** Puts garbage behind the reply whose turn it is, once. */
  #spoiler(replies: number): (chunk: Buffer) => Buffer {
    const scanner = new ReplyScanner();
    let left = replies;
    return (chunk) => {
      for (let position = 0; left > 0 && position < chunk.length; ) {
        const found = scanner.scan(chunk, position);
        if (found === 'malformed')
          throw new Error(`expected RESP from the server, got ${chunk.subarray(position, position + 80)}`);
        if (found === 'more') return chunk;
        position = scanner.end;
        left -= 1;
        if (left > 0) continue;
        this.strikes += 1;
        const garbage = this.random.of(this.faults.garbage ?? GARBAGE);
        return Buffer.concat([chunk.subarray(0, position), garbage, chunk.subarray(position)]);
      }
      return chunk;
    };
  }
}

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count += 1;
  return count;
}
