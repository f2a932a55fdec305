import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { isAscii, type Part, toBytes } from '../resp/encoder.js';
import { type InPlaceReader, shareReadBuffer, unshareReadBuffer } from './read-in-place.js';
import type { AnyFunction } from './types.js';

/**
 * Replaces the host's `data` listener on one stream. Bytes arrive by `data`, or by `readInPlace` if a socket is read
 * into shared memory (`host/read-in-place.ts`).
 */
export class DataListener implements InPlaceReader {
  constructor(
    readonly stream: Duplex,
    readonly hostListener: AnyFunction,
    readonly reader: { readonly isReading: boolean; readChunk(chunk: Buffer): void },
    readonly onData: (chunk: Buffer) => void,
  ) {}

  start(): void {
    const { stream, onData } = this;
    stream.removeListener('data', this.hostListener);
    // Before other listeners, which may expect that the queue has advanced (the host's `setSocketTimeout`). If there
    // are none, `on`: Node emits data within the read for listeners added by `on`, and on nextTick for prepended ones.
    // Host: streams other than sockets may answer within a write, before the command is queued.
    if (stream.listenerCount('data') === 0 && stream instanceof Socket) stream.on('data', onData);
    else stream.prependListener('data', onData);
  }

  /**
   * Whether it still listens. Host: `flushQueue` removes all `data` listeners, and user code may do so too. Node does
   * not emit `removeListener` for the only listener of an event.
   */
  get isAttached(): boolean {
    return this.stream.listenerCount('data', this.onData) > 0;
  }

  /** Reads the stream in place from now on, if that is possible. */
  tune(): void {
    shareReadBuffer(this.stream, this);
  }

  /** Refuses bytes while other listeners also need them. */
  readInPlace(bytes: Buffer): boolean {
    const { stream, reader } = this;
    if (reader.isReading || stream.listenerCount('data') !== 1 || !stream.listenerCount('data', this.onData))
      return false;
    reader.readChunk(bytes);
    return true;
  }

  /** Puts the host's listener back. */
  restore(): void {
    const { stream } = this;
    unshareReadBuffer(stream, this);
    stream.removeListener('data', this.onData);
    stream.prependListener('data', this.hostListener);
  }
}

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
