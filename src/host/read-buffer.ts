/**
 * Reads sockets into one buffer of the thread.
 *
 * Node allocates 64 KiB for each read, shrinks them to what came, and passes that through the machinery of streams: 5 µs
 * of a short round trip of 59 (docs/performance.md). Its documented cure, `onread` of `net.connect`, has to be given when
 * a socket is made, which the host does. So the fields behind that option are set here, on the socket it has made.
 *
 * Node: lib/net.js (`initSocketHandle`), lib/internal/stream_base_commons.js (`onStreamRead`). One buffer will do because
 * a read and its callback are one step, before any other socket is read. Not on Windows, where a system may be given the
 * memory before there is something to read. Where the fields are not found, sockets are read as ever.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Reads a connection's bytes from memory that the next read overwrites. */
export interface InPlaceReader {
  /** Whether it alone gets what is read now, or all listeners for `data` do. */
  readsInPlace(): boolean;
  /** @param bytes - in memory that is used again, so nothing may refer to them afterwards. */
  readInPlace(bytes: Buffer, memory: ReadMemory): void;
}

/** The memory of a read. */
export interface ReadMemory {
  /**
   * Returns bytes in memory that is not used again: themselves, or if they are in this memory and not many, a copy.
   */
  keep(bytes: Buffer): Buffer;
}

/** As much as Node allocates for a read. */
const SIZE = 64 * 1024;
/** More bytes than this are not copied: the next reads get memory of their own. */
const LONGEST_COPIED = SIZE / 2;
/** After this many reads of which no more than `LONGEST_COPIED` was kept, the shared buffer is used again. */
const READS_OF_OWN = 16;

/** What `net.Socket` keeps of its option `onread`. */
interface OnRead {
  readonly buffer: symbol;
  readonly callback: symbol;
  readonly nextBuffer: symbol;
}

type NodeSocket = Pick<Socket, 'push' | 'readableFlowing' | 'readableLength' | 'readableEncoding'> & {
  [field: symbol]: unknown;
  readonly _handle?: { useUserBuffer(bytes: Buffer): void } | null;
};

let shared: Buffer | undefined;
const reads = new WeakMap<Duplex, SocketReads>();

/** Reads `stream` into the shared buffer from now on, if it is a plain socket that has no `onread` of its own. */
export function shareReadBuffer(stream: Duplex, reader: InPlaceReader): void {
  const known = reads.get(stream);
  if (known === undefined) {
    const started = SocketReads.start(stream, reader);
    if (started !== undefined) reads.set(stream, started);
  } else {
    known.reader = reader;
  }
}

/** Emits all that is read on `stream` as `data` from now on. */
export function unshareReadBuffer(stream: Duplex, reader: InPlaceReader): void {
  const known = reads.get(stream);
  if (known?.reader === reader) known.reader = undefined;
}

class SocketReads implements ReadMemory {
  /** What the next read is written to. */
  #memory: Buffer;
  /** Whether something refers to the memory. */
  #given = false;
  #readsOfOwn = 0;

  static start(stream: Duplex, reader: InPlaceReader): SocketReads | undefined {
    if ('encrypted' in stream || process.platform === 'win32') return undefined;
    const fields = findFields(stream);
    if (fields === undefined) return undefined;
    const socket = stream as Duplex & NodeSocket;
    const handle = socket._handle;
    if (socket[fields.buffer] !== null || (handle && typeof handle.useUserBuffer !== 'function')) return undefined;
    shared ??= Buffer.allocUnsafeSlow(SIZE);
    const started = new SocketReads(socket, reader, shared);
    socket[fields.buffer] = shared;
    socket[fields.callback] = (length: number) => started.#read(length);
    socket[fields.nextBuffer] = () => started.#memory;
    // Node does this itself for a socket that has no handle yet.
    handle?.useUserBuffer(shared);
    return started;
  }

  private constructor(
    readonly socket: NodeSocket,
    public reader: InPlaceReader | undefined,
    readonly common: Buffer,
  ) {
    this.#memory = common;
  }

  /** Returns whether Node is to read on. */
  #read(length: number): boolean {
    const { reader, socket } = this;
    const bytes = this.#memory.subarray(0, length);
    try {
      if (!isFlowing(socket) || !reader?.readsInPlace()) return socket.push(this.keep(bytes));
      reader.readInPlace(bytes, this);
      return true;
    } finally {
      this.#renew();
    }
  }

  keep(bytes: Buffer): Buffer {
    if (bytes.buffer !== this.#memory.buffer) return bytes;
    if (bytes.length > LONGEST_COPIED) {
      this.#readsOfOwn = READS_OF_OWN;
      this.#given = this.#memory !== this.common;
      if (this.#given) return bytes;
    }
    const copy = Buffer.allocUnsafeSlow(bytes.length);
    bytes.copy(copy);
    return copy;
  }

  /** Chooses the memory of the next read. */
  #renew(): void {
    if (this.#readsOfOwn === 0) return;
    this.#readsOfOwn -= 1;
    if (this.#readsOfOwn === 0) this.#memory = this.common;
    else if (this.#given || this.#memory === this.common) this.#memory = Buffer.allocUnsafeSlow(SIZE);
    this.#given = false;
  }
}

/** Whether bytes that are pushed are emitted at once. Node: `addChunk` in lib/internal/streams/readable.js. */
function isFlowing(stream: NodeSocket): boolean {
  return stream.readableFlowing === true && stream.readableLength === 0 && stream.readableEncoding === null;
}

function findFields(socket: object): OnRead | undefined {
  const symbols = Object.getOwnPropertySymbols(socket);
  const [buffer, callback, nextBuffer] = ['kBuffer', 'kBufferCb', 'kBufferGen'].map((name) =>
    symbols.find(({ description }) => description === name),
  );
  return buffer && callback && nextBuffer ? { buffer, callback, nextBuffer } : undefined;
}
