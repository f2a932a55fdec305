import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ReplyScanner } from '../../../src/resp/reply-scanner.js';
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

/** A TCP proxy on loopback between clients and a real server, with faults by a seed. It runs until it is closed. */
export class HostileProxy {
  faults: Faults = {};
  /** Where new connections go. */
  target: number;
  /** How often a fault struck that ends a connection. */
  strikes = 0;
  /** Bytes that came from clients and line feeds that went to them, on all connections. */
  requestBytes = 0;
  replyLines = 0;
  /** Told of every chunk that comes from a client. */
  onRequest: (() => void) | undefined;

  readonly #links = new Set<Link>();
  readonly #listener: Server;

  private constructor(
    target: number,
    readonly random: Random,
  ) {
    this.target = target;
    this.#listener = createServer({ noDelay: true }, (client) => {
      const link = new Link(this, client);
      this.#links.add(link);
      client.on('close', () => this.#links.delete(link));
    });
  }

  static async start(target: number, random: Random): Promise<HostileProxy> {
    const proxy = new HostileProxy(target, random);
    proxy.#listener.listen(0, '127.0.0.1');
    await once(proxy.#listener, 'listening');
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  /** Both ways stop on the open connections, whose sockets stay open. */
  halfOpen(): void {
    for (const link of this.#links) link.dead = true;
  }

  resetAll(): void {
    for (const link of this.#links) link.reset();
  }

  async close(): Promise<void> {
    this.resetAll();
    this.#listener.close();
    await once(this.#listener, 'close');
  }
}

class Link {
  dead = false;
  readonly #proxy: HostileProxy;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #scanner = new ReplyScanner();
  #pending: Buffer[] = [];
  #pumping = false;
  #serverEnded = false;
  #replyBytes = Number.POSITIVE_INFINITY;
  #requestBytes = Number.POSITIVE_INFINITY;
  #replies = Number.POSITIVE_INFINITY;

  constructor(proxy: HostileProxy, client: Socket) {
    this.#proxy = proxy;
    this.#client = client;
    this.#server = connect({ port: proxy.target, host: '127.0.0.1', noDelay: true });
    const { faults, random } = proxy;
    if (faults.resetAfterReplyBytes) this.#replyBytes = faults.resetAfterReplyBytes(random);
    if (faults.resetAfterRequestBytes) this.#requestBytes = faults.resetAfterRequestBytes(random);
    if (faults.garbageAfterReplies) this.#replies = faults.garbageAfterReplies(random);

    client.on('error', () => {});
    this.#server.on('error', () => {});
    client.on('data', (chunk) => this.#request(chunk));
    client.on('close', () => this.#server.destroy());
    this.#server.on('data', (chunk) => {
      this.#pending.push(chunk);
      void this.#pump();
    });
    this.#server.on('close', () => {
      this.#serverEnded = true;
      if (!this.#pumping) client.end();
    });
  }

  reset(): void {
    this.dead = true;
    this.#client.resetAndDestroy();
    this.#server.destroy();
  }

  #request(chunk: Buffer): void {
    this.#proxy.requestBytes += chunk.length;
    this.#proxy.onRequest?.();
    if (this.dead) return;
    if (chunk.length < this.#requestBytes) {
      this.#requestBytes -= chunk.length;
      this.#server.write(chunk);
      return;
    }
    this.#proxy.strikes += 1;
    this.dead = true;
    // The server gets the part, and loses the rest of the command.
    this.#server.end(chunk.subarray(0, this.#requestBytes));
    this.#client.resetAndDestroy();
  }

  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    const { faults, random } = this.#proxy;
    while (this.#pending.length > 0 && !this.dead) {
      const ms = faults.delay?.(random) ?? 0;
      if (ms > 0) await sleep(ms);
      const [first, ...more] = this.#pending;
      const chunk = more.length === 0 ? (first as Buffer) : Buffer.concat(this.#pending);
      this.#pending = [];
      await this.#reply(this.#spoiled(chunk));
    }
    this.#pumping = false;
    if (this.#serverEnded && !this.dead) this.#client.end();
  }

  /** The chunk, with garbage behind the reply whose turn it is. */
  #spoiled(chunk: Buffer): Buffer {
    if (this.#replies === Number.POSITIVE_INFINITY) return chunk;
    for (let position = 0; position < chunk.length; ) {
      const found = this.#scanner.scan(chunk, position);
      if (found === 'malformed')
        throw new Error(`expected RESP from the server, got ${chunk.subarray(position, position + 80)}`);
      if (found === 'more') return chunk;
      position = this.#scanner.end;
      this.#replies -= 1;
      if (this.#replies > 0) continue;
      this.#replies = Number.POSITIVE_INFINITY;
      this.#proxy.strikes += 1;
      const { random, faults } = this.#proxy;
      const garbage = random.of(faults.garbage ?? GARBAGE);
      return Buffer.concat([chunk.subarray(0, position), garbage, chunk.subarray(position)]);
    }
    return chunk;
  }

  async #reply(chunk: Buffer): Promise<void> {
    const { faults, random } = this.#proxy;
    for (let start = 0; start < chunk.length && !this.dead; ) {
      const left = chunk.length - start;
      const piece = Math.min(left, this.#replyBytes, faults.pieceOf?.(random, left) ?? left);
      const bytes = chunk.subarray(start, start + piece);
      this.#client.write(bytes);
      this.#proxy.replyLines += countLines(bytes);
      start += piece;
      this.#replyBytes -= piece;
      if (this.#replyBytes === 0) {
        this.#proxy.strikes += 1;
        this.#replyBytes = Number.POSITIVE_INFINITY;
        // A reset takes with it what the client has not read yet, and this part it must read.
        await sleep(10);
        this.reset();
      } else if (faults.pieceOf) {
        // The next piece in a packet of its own.
        await new Promise(setImmediate);
      }
    }
  }
}

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count += 1;
  return count;
}
