import type { Client } from './hosts.js';

/** Records what reaches the socket's handle: one record is one write to the kernel. */
export interface SocketSpy {
  readonly writes: readonly Buffer[];
  /** All bytes so far. */
  text(): string;
  clear(): void;
}

type Request = object;
type Chunks = readonly (Buffer | string)[];

interface Handle {
  writeBuffer(request: Request, data: Buffer): number;
  writeLatin1String(request: Request, data: string): number;
  writeUtf8String(request: Request, data: string): number;
  writeAsciiString(request: Request, data: string): number;
  writeUcs2String(request: Request, data: string): number;
  writev(request: Request, chunks: Chunks, allBuffers: boolean): number;
}

/** Spies on the handle of the client's present connection, which is what Node's streams write to in the end. */
export function spyOnSocket(client: Client): SocketSpy {
  const { stream } = client as unknown as { stream?: { _handle?: Handle | null } };
  const handle = stream?._handle;
  if (!handle) throw new Error('expected a client with an open socket, got one without');
  const writes: Buffer[] = [];
  const { writeBuffer, writev } = handle;
  handle.writeBuffer = (request, data) => {
    writes.push(Buffer.from(data));
    return writeBuffer.call(handle, request, data);
  };
  handle.writev = (request, chunks, allBuffers) => {
    writes.push(Buffer.concat(allBuffers ? (chunks as Buffer[]) : pairs(chunks)));
    return writev.call(handle, request, chunks, allBuffers);
  };
  const encodings = { Latin1: 'latin1', Utf8: 'utf8', Ascii: 'ascii', Ucs2: 'ucs2' } as const;
  for (const [name, encoding] of Object.entries(encodings)) {
    const method = `write${name as keyof typeof encodings}String` as const;
    const original = handle[method];
    handle[method] = (request, data) => {
      writes.push(Buffer.from(data, encoding));
      return original.call(handle, request, data);
    };
  }
  return {
    writes,
    text: () => Buffer.concat(writes).toString(),
    clear: () => {
      writes.length = 0;
    },
  };
}

/** Node hands a writev of text a list of chunk, encoding, chunk, encoding, … */
function pairs(chunks: Chunks): Buffer[] {
  const buffers: Buffer[] = [];
  for (let index = 0; index < chunks.length; index += 2) {
    const chunk = chunks[index] as Buffer | string;
    buffers.push(typeof chunk === 'string' ? Buffer.from(chunk, chunks[index + 1] as BufferEncoding) : chunk);
  }
  return buffers;
}

/** The names of the commands in request bytes, in order. */
export const commandNames = (text: string): string[] =>
  [...text.matchAll(/\*\d+\r\n\$\d+\r\n([^\r]*)\r\n/g)].map((match) => (match[1] as string).toLowerCase());
