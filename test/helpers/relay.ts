import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { sleep } from './hosts.js';

/** Bytes that may pass until a connection is reset; connections may share them. */
export interface Budget {
  bytes: number;
  /** Of replies: resolves when the client has read them. @default 20 ms later */
  read?: (() => Promise<unknown>) | undefined;
}

/** What a relay does to the bytes of a connection; the functions are called each time, so what they do may change. */
export interface Treatment {
  /** @default no end */
  readonly requests?: Budget;
  /** @default no end */
  readonly replies?: Budget;
  /** Told of all that comes from the client, whether it is passed on or not. */
  onRequest?(chunk: Buffer): void;
  /** Milliseconds to hold replies back; those that come meanwhile are merged with them. @default 0 */
  delay?(): number;
  /** What the client gets for these replies. @default the same */
  spoil?(replies: Buffer): Buffer;
  /**
   * How to cut a chunk of replies: gives the size of the next packet, when `left` bytes are left. @default all of them
   */
  cut?(): (left: number) => number;
  /** Told of every packet to the client. */
  onReply?(packet: Buffer): void;
}

const whole = (): number => Number.POSITIVE_INFINITY;

/** A TCP relay on loopback between clients and a server: what all faulty networks have in common. */
export abstract class Relay {
  /** Connections accepted so far. */
  connections = 0;
  /** How often a fault struck that ends a connection. */
  strikes = 0;
  readonly #links = new Set<Link>();
  readonly #listener: Server;
  #stalled = false;

  /** @param target the port where new connections go. */
  constructor(public target: number) {
    this.#listener = createServer({ noDelay: true }, (client) => {
      this.connections += 1;
      const link = new Link(this, client, this.treat());
      this.#links.add(link);
      client.on('close', () => this.#links.delete(link));
    });
  }

  /** What to do to a new connection. */
  protected abstract treat(): Treatment;

  async listen(): Promise<void> {
    this.#listener.listen(0, '127.0.0.1');
    await once(this.#listener, 'listening');
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  get stalled(): boolean {
    return this.#stalled;
  }

  /** Replies get stuck from now on, and ends of connections behind them. */
  stall(): void {
    this.#stalled = true;
  }

  /** Replies flow again, the stuck ones first. */
  resume(): void {
    this.#stalled = false;
    for (const link of this.#links) void link.pump();
  }

  /** Nothing that is sent on the open connections reaches the server from now on. */
  swallowRequests(): void {
    for (const link of this.#links) link.deaf = true;
  }

  /** Both ways stop on the open connections, whose sockets stay open. */
  halfOpen(): void {
    for (const link of this.#links) link.dead = true;
  }

  /** Resets all open connections. */
  reset(): void {
    for (const link of this.#links) link.reset();
  }

  async close(): Promise<void> {
    this.reset();
    this.#listener.close();
    await once(this.#listener, 'close');
  }
}

/** A client's connection, and the one to the server that belongs to it. */
class Link {
  /** Whether no more requests are let through. */
  deaf = false;
  /** Whether nothing is, either way. */
  dead = false;
  readonly #relay: Relay;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #treatment: Treatment;
  readonly #requests: Budget;
  readonly #replies: Budget;
  #pending: Buffer[] = [];
  #pumping = false;
  #serverEnded = false;

  constructor(relay: Relay, client: Socket, treatment: Treatment) {
    this.#relay = relay;
    this.#client = client;
    this.#server = connect({ port: relay.target, host: '127.0.0.1', noDelay: true });
    this.#treatment = treatment;
    this.#requests = treatment.requests ?? { bytes: Number.POSITIVE_INFINITY };
    this.#replies = treatment.replies ?? { bytes: Number.POSITIVE_INFINITY };

    // `close` follows.
    client.on('error', () => {});
    this.#server.on('error', () => {});
    client.on('data', (chunk) => this.#request(chunk));
    client.on('close', () => {
      this.dead = true;
      this.#server.end();
    });
    this.#server.on('data', (chunk) => {
      if (!this.dead) this.#pending.push(chunk);
      void this.pump();
    });
    this.#server.on('close', () => {
      this.#serverEnded = true;
      void this.pump();
    });
  }

  reset(): void {
    this.dead = true;
    this.#client.resetAndDestroy();
    this.#server.destroy();
  }

  /** Passes on what the server has sent, in order, and its end behind that. */
  async pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    while (this.#pending.length > 0 && !this.#relay.stalled && !this.dead) {
      const ms = this.#treatment.delay?.() ?? 0;
      if (ms > 0) {
        await sleep(ms);
        this.#pending = [Buffer.concat(this.#pending)];
      }
      const chunk = this.#pending.shift() as Buffer;
      await this.#reply(this.#treatment.spoil?.(chunk) ?? chunk);
    }
    this.#pumping = false;
    if (this.#serverEnded && this.#pending.length === 0 && !this.dead) this.#client.end();
  }

  #request(chunk: Buffer): void {
    this.#treatment.onRequest?.(chunk);
    if (this.deaf || this.dead) return;
    const part = chunk.subarray(0, Math.min(chunk.length, this.#requests.bytes));
    this.#requests.bytes -= part.length;
    if (this.#requests.bytes > 0) {
      this.#server.write(part);
      return;
    }
    this.#requests.bytes = Number.POSITIVE_INFINITY;
    this.#relay.strikes += 1;
    this.dead = true;
    // The server gets the part, and loses the rest of the command.
    this.#server.end(part);
    this.#client.resetAndDestroy();
  }

  async #reply(chunk: Buffer): Promise<void> {
    const sizeOf = this.#treatment.cut?.() ?? whole;
    for (let start = 0; start < chunk.length && !this.dead; ) {
      const left = chunk.length - start;
      const size = sizeOf(left);
      const packet = chunk.subarray(start, start + Math.min(left, size, this.#replies.bytes));
      this.#client.write(packet);
      this.#treatment.onReply?.(packet);
      start += packet.length;
      this.#replies.bytes -= packet.length;
      if (this.#replies.bytes === 0) {
        this.#replies.bytes = Number.POSITIVE_INFINITY;
        this.#relay.strikes += 1;
        // A reset discards what the client has not read yet, and this part it must have read.
        await (this.#replies.read?.() ?? sleep(20));
        this.reset();
      } else if (Number.isFinite(size)) {
        // The next packet in a turn of its own, or the kernel would put them together.
        await new Promise(setImmediate);
      }
    }
  }
}
