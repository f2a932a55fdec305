import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { Redis as IORedis, type RedisOptions } from 'ioredis';
import { type Coalesced, type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import IORedis5 from 'ioredis5';
import { Redis as Valkey } from 'iovalkey';
import type { ClientAttachment } from '../../src/attach/client-attachment.js';
import { MARK } from '../../src/core/call-target.js';
import { connectorOf } from './connector.js';
import type { HostName } from './host-decoder.js';

/** Node's fields for the option `onread` of a socket. */
const BUFFER: unique symbol = Symbol('kBuffer');
const CALLBACK: unique symbol = Symbol('kBufferCb');

/** The far end is the test: it reads what was written and feeds replies, cut as it likes. */
export class FakeSocket extends Duplex {
  /** One element for each write that would reach the system. */
  readonly writes: Buffer[] = [];
  [BUFFER]: Buffer | null = null;
  [CALLBACK]: ((length: number, memory: Buffer) => boolean) | null = null;

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#wrote(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer; encoding: BufferEncoding }[], done: () => void): void {
    this.#wrote(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  setNoDelay(): void {}
  setKeepAlive(): void {}
  setTimeout(): void {}

  get written(): Buffer {
    return Buffer.concat(this.writes);
  }

  /**
   * One chunk from the server, read before this returns; `push` would put it off when the host prepended its listener.
   */
  feed(chunk: Buffer | string): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    if (this[BUFFER] === null) this.emit('data', bytes);
    else this.#read(bytes);
  }

  /** As Node reads a socket that has the option `onread`. */
  #read(bytes: Buffer): void {
    for (let position = 0; position < bytes.length; ) {
      const memory = this[BUFFER] as Buffer;
      const length = bytes.copy(memory, 0, position);
      this[CALLBACK]?.(length, memory);
      position += length;
    }
  }

  #wrote(bytes: Buffer, done: () => void): void {
    done();
    if (bytes.includes('$5\r\nhello\r\n')) {
      setImmediate(() => this.push('%1\r\n+proto\r\n:3\r\n'));
      return;
    }
    this.writes.push(bytes);
  }
}

export interface FakeOptions extends RedisOptions {
  readonly hostName?: HostName;
  /** Undefined: a plain client. */
  readonly coalesce?: CoalesceOptions | undefined;
}

export type FakeConnection = { readonly client: IORedis; readonly socket: FakeSocket };

/** The hosts' classes, as ioredis 6's: the tests call what all of them have. */
export const HOSTS: Readonly<Record<HostName, typeof IORedis>> = {
  ioredis: IORedis,
  ioredis5: IORedis5 as unknown as typeof IORedis,
  iovalkey: Valkey as unknown as typeof IORedis,
};

/** A real client, ready, whose connection is a fake. It does not reconnect. */
export async function connectFake({
  hostName = 'ioredis',
  coalesce: options,
  ...rest
}: FakeOptions = {}): Promise<FakeConnection> {
  let socket = new FakeSocket();
  const open = () => {
    socket = new FakeSocket();
    return socket;
  };
  const client = new HOSTS[hostName]({
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    ...rest,
    Connector: connectorOf(open),
  } as RedisOptions & { replyMapping: 'legacy' });
  // Without a listener the host would print each error.
  client.on('error', () => {});
  if (options !== undefined) coalesce(client, options);
  await once(client, 'ready');
  await turn();
  // As after the first replies of a connection.
  const { [MARK]: attachment } = client as { [MARK]?: ClientAttachment };
  attachment?.connection?.reader.source.tune();
  return { client, socket };
}

/** The same with a coalesced client. */
export const coalescedFake = async (
  options: CoalesceOptions,
  rest: Omit<FakeOptions, 'coalesce'> = {},
): Promise<FakeConnection & { readonly client: IORedis & Coalesced }> =>
  (await connectFake({ ...rest, coalesce: options })) as FakeConnection & { client: IORedis & Coalesced };

/** Ends a client that was made here, and waits until what was in flight is rejected. */
export async function disconnectFake({ client, socket }: FakeConnection): Promise<void> {
  client.disconnect();
  socket.destroy();
  while (client.status !== 'end') await turn();
  await turn();
}

/** What the caller of a command or a listener saw. */
export type Seen = readonly [who: string, what: unknown];

/** Keeps what the client's callers and listeners see, in the order they see it. */
export class Witness {
  readonly seen: Seen[] = [];

  constructor(client: IORedis) {
    client.on('error', (error) => this.seen.push(['error event', plainError(error)]));
    client.on('message', (channel, message) => this.seen.push(['message', `${channel}: ${message}`]));
  }

  watch(who: string, promise: Promise<unknown>): void {
    promise.then(
      (value) => this.seen.push([who, value]),
      (error) => this.seen.push([who, plainError(error)]),
    );
  }
}

export function plainError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, command } = error as Error & { command?: unknown };
  return { name, message, class: error.constructor.name, command };
}
