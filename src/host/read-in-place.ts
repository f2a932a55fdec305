/**
 * Reads sockets into one buffer of the thread.
 *
 * Node allocates 64 KiB for each read, shrinks them to the bytes read, and passes those through its streams: 5 µs of a
 * short round trip of 59 (docs/performance.md). Its documented remedy, `onread` of `net.connect`, has to be given when
 * a socket is made, which the host does. So the fields behind that option are set here, on the host's socket.
 *
 * Node: lib/net.js (`initSocketHandle`), lib/internal/stream_base_commons.js (`onStreamRead`). One buffer is enough: a
 * read and its callback are one step, before any other socket is read. Not on Windows, where the system may get the
 * memory before there is something to read. Always the same buffer: if user code throws in the same step, Node does not
 * learn of a new one, and keeps writing to the old. If the fields are not found, sockets are read as usual.
 *
 * Bytes read this way bypass `push` and `emit`. A socket on which these are not Node's own, but its class's or those of
 * a traffic meter, is given all bytes.
 */
import { EventEmitter } from 'node:events';
import { type Duplex, Readable } from 'node:stream';

/** Reads a connection's bytes from memory that the next read overwrites. */
export interface InPlaceReader {
  /**
   * @param bytes - in memory that is used again, so nothing may refer to them afterwards; see `keep`.
   * @returns false if it refuses them: then all listeners for `data` get them.
   */
  readInPlace(bytes: Buffer): boolean;
}

/** The size of the shared buffer in bytes: as much as Node allocates for a read. */
const SIZE = 64 * 1024;

type NodeSocket = Duplex & {
  [field: symbol]: unknown;
  readonly _handle?: { useUserBuffer(bytes: Buffer): void } | null;
};

const { push } = Readable.prototype;
const { emit } = EventEmitter.prototype;
/** A meter loaded before this package may have replaced them; other run times have other texts. */
const areNodes = String(push).includes('readableAddChunk') && String(emit).includes('kErrorMonitor');

let shared: Buffer | undefined;
/**
 * The reader of a socket that is read into the shared buffer; undefined if it must emit all. Not in a `WeakMap`: V8's
 * frequent collections of young objects keep all of its values, and with them ended connections.
 */
const READER = Symbol('ioredis-coalesce.reader');

/** Reads `stream` into the shared buffer from now on, if it is a plain socket that has no `onread` of its own. */
export function shareReadBuffer(stream: Duplex, reader: InPlaceReader): void {
  if (!(READER in stream) && !useSharedBuffer(stream)) return;
  Object.defineProperty(stream, READER, { value: reader, configurable: true });
}

/** Emits all that is read on `stream` as `data` from now on. */
export function unshareReadBuffer(stream: Duplex, reader: InPlaceReader): void {
  if ((stream as NodeSocket)[READER] === reader) Object.defineProperty(stream, READER, { value: undefined });
}

function useSharedBuffer(stream: Duplex): boolean {
  if ('encrypted' in stream || process.platform === 'win32' || !passesBytesOn(stream)) return false;
  const socket = stream as NodeSocket;
  // Where `net.Socket` keeps its option `onread`.
  const bufferField = fieldOf(socket, 'kBuffer');
  const callbackField = fieldOf(socket, 'kBufferCb');
  if (bufferField === undefined || callbackField === undefined || socket[bufferField] !== null) return false;
  shared ??= Buffer.allocUnsafeSlow(SIZE);
  try {
    // Node does this itself for a socket that has no handle yet. Deno before 2.6 has the method, which throws.
    socket._handle?.useUserBuffer(shared);
  } catch {
    return false;
  }
  socket[bufferField] = shared;
  // Whether Node should keep reading.
  socket[callbackField] = (length: number, memory: Buffer): boolean => {
    const bytes = memory.subarray(0, length);
    const reader = socket[READER] as InPlaceReader | undefined;
    // Node: `addChunk` in lib/internal/streams/readable.js emits bytes at once under these conditions.
    const { readableFlowing, readableLength, readableEncoding } = stream;
    const isFlowing = readableFlowing === true && readableLength === 0 && readableEncoding === null;
    if (reader !== undefined && isFlowing && passesBytesOn(stream) && reader.readInPlace(bytes)) return true;
    return stream.push(keep(bytes));
  };
  return true;
}

/** Returns bytes in memory that is not used again: a copy, or the same if not in the shared buffer. */
export function keep(bytes: Buffer): Buffer {
  if (shared === undefined || bytes.buffer !== shared.buffer) return bytes;
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** Whether nothing intercepts bytes between a read and the listeners for `data`. */
function passesBytesOn(stream: Duplex): boolean {
  return areNodes && stream.push === push && stream.emit === emit;
}

/** The symbol of a field that Node gives a socket. */
function fieldOf(socket: object, name: string): symbol | undefined {
  return Object.getOwnPropertySymbols(socket).find(({ description }) => description === name);
}
