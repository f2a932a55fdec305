import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type InPlaceReader, keep, shareReadBuffer, unshareReadBuffer } from '../../src/host/read-in-place.js';
import { cold } from '../helpers/cold.js';
import { HOSTS, ioredis6, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { collectUncaught } from '../helpers/uncaught.js';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** The two ends of a connection over loopback. */
async function connected(options: { onread?: { buffer: Buffer; callback(): boolean } } = {}) {
  const server = createServer();
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as { port: number };
  const socket = connect({ port, host: '127.0.0.1', ...options });
  const [[far]] = (await Promise.all([once(server, 'connection'), once(socket, 'connect')])) as [[Socket], unknown];
  onTestFinished(() => {
    socket.destroy();
    far.destroy();
  });
  return { socket, far };
}

/** What Node's own field says of the memory that the next read is written to. */
function memoryOf(socket: object): unknown {
  const field = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'kBuffer');
  return (socket as Record<symbol, unknown>)[field as symbol];
}

/** Reads all in place, and overwrites what it has read. */
class Reader implements InPlaceReader {
  text = '';
  alone = true;
  readonly kept: Buffer[] = [];

  constructor(readonly keeps = false) {}

  readInPlace(bytes: Buffer): boolean {
    if (!this.alone) return false;
    this.text += bytes.toString('latin1');
    if (this.keeps) this.kept.push(keep(bytes));
    bytes.fill('%');
    return true;
  }
}

/** Gets as many fast replies as a connection has had when it is read in place. The first may wait for the handshake. */
async function use<T extends { get(key: string): Promise<unknown> }>(client: T): Promise<T> {
  for (let replies = 0; replies <= 32; replies += 1) await client.get('none');
  return client;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(1);
}

describe('shareReadBuffer', () => {
  it('reads all sockets of a thread into one buffer', async () => {
    const [a, b] = [await connected(), await connected()];
    const [readerA, readerB] = [new Reader(), new Reader()];
    for (const [{ socket }, reader] of [[a, readerA] as const, [b, readerB] as const]) {
      socket.on('data', () => expect.unreachable('it was emitted'));
      shareReadBuffer(socket, reader);
    }
    expect(memoryOf(a.socket)).toBeInstanceOf(Buffer);
    expect(memoryOf(a.socket)).toBe(memoryOf(b.socket));
    for (let round = 0; round < 20; round += 1) {
      a.far.write(`a${round}.`);
      b.far.write(`b${round}.`);
      await until(() => readerA.text.endsWith(`a${round}.`) && readerB.text.endsWith(`b${round}.`));
    }
    expect(readerA.text.replaceAll(/a\d+\./g, '')).toBe('');
    expect(readerB.text.replaceAll(/b\d+\./g, '')).toBe('');
  });

  it('keeps what is to be kept, short or long, whatever is read later', async () => {
    const { socket, far } = await connected();
    const reader = new Reader(true);
    socket.on('data', () => expect.unreachable('it was emitted'));
    shareReadBuffer(socket, reader);
    const shared = memoryOf(socket);
    const sent = Array.from({ length: 80 }, (_, n) => String.fromCharCode(48 + n).repeat(n % 3 === 0 ? 300_000 : 50));
    for (const text of sent) {
      far.write(text);
      await until(() => reader.text.endsWith(text));
    }
    expect(Buffer.concat(reader.kept).toString('latin1')).toBe(sent.join(''));
    expect(memoryOf(socket)).toBe(shared);
    // No more memory than there are bytes.
    for (const { byteLength, buffer } of reader.kept) expect(buffer.byteLength).toBe(byteLength);
  });

  it('emits what others wait for too, once and in order', async () => {
    const { socket, far } = await connected();
    const reader = new Reader();
    let emitted = '';
    socket.on('data', (bytes) => {
      emitted += String(bytes);
    });
    shareReadBuffer(socket, reader);
    reader.alone = false;
    far.write('one ');
    await until(() => emitted === 'one ');
    reader.alone = true;
    far.write('two ');
    await until(() => reader.text === 'two ');
    // Node keeps what comes while a stream is paused, and emits it when it flows again.
    socket.pause();
    far.write('three ');
    await delay(20);
    expect(reader.text).toBe('two ');
    socket.resume();
    await until(() => `${reader.text}${emitted}`.includes('three '));
    unshareReadBuffer(socket, new Reader());
    far.write('four ');
    await until(() => reader.text.endsWith('four '));
    unshareReadBuffer(socket, reader);
    far.write('five ');
    await until(() => emitted.endsWith('five '));
    expect(reader.text).not.toContain('five');
    socket.setEncoding('hex');
    shareReadBuffer(socket, reader);
    const [text] = await Promise.all([once(socket, 'data'), far.write('six ')]);
    expect(text).toEqual([Buffer.from('six ').toString('hex')]);
  });

  it('keeps what it has given to a listener that throws, and goes on', async () => {
    const uncaught = collectUncaught();
    const { socket, far } = await connected();
    const kept: Buffer[] = [];
    const total = () => kept.reduce((sum, { length }) => sum + length, 0);
    socket.on('data', (bytes) => {
      kept.push(bytes);
      throw new Error('of a listener');
    });
    const reader = new Reader();
    reader.alone = false;
    shareReadBuffer(socket, reader);
    const sent = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(1_000_000)).join('');
    far.write(sent);
    await until(() => total() === sent.length);
    // Not the text itself, which would be printed.
    expect(Buffer.concat(kept).toString('latin1') === sent).toBe(true);
    expect(uncaught.length).toBe(kept.length);
    expect(new Set(uncaught.map(String))).toEqual(new Set(['Error: of a listener']));
  });

  it('leaves a socket alone that has `onread`, one of TLS, and one without the fields', async () => {
    const own = Buffer.alloc(100);
    const { socket } = await connected({ onread: { buffer: own, callback: () => true } });
    shareReadBuffer(socket, new Reader());
    expect(memoryOf(socket)).toBe(own);
    const { socket: encrypted } = await connected();
    shareReadBuffer(Object.assign(encrypted, { encrypted: true }), new Reader());
    expect(memoryOf(encrypted)).toBeNull();
    const { socket: other, far } = await connected();
    const field = Object.getOwnPropertySymbols(other).find(({ description }) => description === 'kBufferCb');
    Reflect.deleteProperty(other, field as symbol);
    shareReadBuffer(other, new Reader());
    const [[bytes]] = (await Promise.all([once(other, 'data'), far.write('as ever')])) as [[Buffer], unknown];
    expect(bytes.toString('latin1')).toBe('as ever');
  });

  it('leaves a socket alone whose handle refuses the memory, as that of Deno before 2.6 does', async () => {
    const { socket, far } = await connected();
    const { _handle: handle } = socket as unknown as { _handle: object };
    Object.assign(handle, {
      useUserBuffer: () => {
        throw new Error('Not implemented');
      },
    });
    shareReadBuffer(socket, new Reader());
    expect(memoryOf(socket)).toBeNull();
    const [[bytes]] = (await Promise.all([once(socket, 'data'), far.write('as ever')])) as [[Buffer], unknown];
    expect(bytes.toString('latin1')).toBe('as ever');
  });
});

describe.each(HOSTS)('a connection of $name', ({ create, createCoalesced }) => {
  const streamOf = (client: object) => (client as { stream: Socket }).stream;

  it('is read in place after 32 replies to fast commands, not in its first steps', async () => {
    const client = await ready(createCoalesced(redisUrl()));
    for (let n = 0; n < 31; n += 1) await client.get('none');
    await client.info();
    expect(memoryOf(streamOf(client))).toBeNull();
    await client.get('none');
    expect(memoryOf(streamOf(client))).toBeInstanceOf(Buffer);
  });

  it('is read in place, coalesced from the start or while in use, and gives values that stay as they are', async () => {
    const early = await use(await ready(createCoalesced(redisUrl())));
    const late = await use(coalesce(await ready(create(redisUrl()))));
    const key = uniquePrefix('read-buffer');
    const long = 'long '.repeat(20_000);
    await Promise.all([early.set(key, 'short'), early.set(`${key}long`, long)]);
    for (const client of [early, late]) {
      expect(memoryOf(streamOf(client))).toBeInstanceOf(Buffer);
      const first = await Promise.all([client.getBuffer(key), client.getBuffer(`${key}long`), client.get(key)]);
      for (let n = 0; n < 50; n += 1) await Promise.all([client.echo('%'.repeat(300)), client.getBuffer(key)]);
      expect(first.map(String)).toEqual(['short', long, 'short']);
    }
  });

  it('emits all that is read where the user has a listener for it', async () => {
    const client = await use(await ready(createCoalesced(redisUrl())));
    const stream = streamOf(client);
    let seen = '';
    const listener = (bytes: Buffer) => {
      seen += bytes.toString('latin1');
    };
    stream.on('data', listener);
    expect(await client.echo('one')).toBe('one');
    stream.off('data', listener);
    expect(await client.echo('two')).toBe('two');
    stream.on('data', listener);
    expect(await client.echo('three')).toBe('three');
    expect(seen).toBe('$3\r\none\r\n$5\r\nthree\r\n');
  });
});

it('replies for the host that cannot be copied end the connection: no later one goes to another caller', async () => {
  const client = await use(await ready(ioredis6.createCoalesced(redisUrl(), { retryStrategy: () => null })));
  client.on('error', () => {});
  const allocate = vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementationOnce(() => {
    throw new RangeError('Array buffer allocation failed');
  });
  onTestFinished(() => allocate.mockRestore());
  const replies = await Promise.allSettled([cold(client, 'ECHO', 'a'), cold(client, 'ECHO', 'b')]);
  expect(allocate).toHaveBeenCalled();
  expect(replies.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});
