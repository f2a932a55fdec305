import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { isAscii, type Part, toBytes } from '../resp/encoder.js';

type Write = (this: Duplex, data: unknown, encoding?: BufferEncoding, callback?: Callback) => boolean;
type Callback = (error?: Error | null) => void;

const NODES_WRITE: unknown = Duplex.prototype.write;
const { _write, _writev } = Socket.prototype;

/** Writes to a stream past a hook that is set later: by the stream's own `write`, or the present one of its class. */
export class StreamWriter {
  readonly #own: Write | undefined;
  readonly #class: { readonly write: Write };

  constructor(readonly stream: Duplex) {
    this.#own = Object.hasOwn(stream, 'write') ? (stream.write as Write) : undefined;
    this.#class = Object.getPrototypeOf(stream) as { readonly write: Write };
  }

  write(data: unknown, encoding: BufferEncoding | undefined, callback: Callback | undefined): boolean {
    const write = this.#own ?? this.#class.write;
    return write.call(this.stream, data, encoding, callback);
  }

  /** Only Node's sockets are known to respect the encoding of text: wrappers, subclasses, other streams may not. */
  writePart(part: Part): void {
    const { stream } = this;
    const write = this.#own ?? this.#class.write;
    const isNodes = write === NODES_WRITE && stream instanceof Socket;
    const takesEncodings = isNodes && stream._write === _write && stream._writev === _writev;
    if (takesEncodings && typeof part === 'string') write.call(stream, part, 'latin1');
    else write.call(stream, typeof part === 'string' && isAscii(part) ? part : toBytes(part));
  }
}
