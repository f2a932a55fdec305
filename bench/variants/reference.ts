import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

interface Pending {
  resolve(value: string | null): void;
  reject(error: Error): void;
}

const DOLLAR = 0x24;
const PLUS = 0x2b;
const MINUS = 0x2d;
const COLON = 0x3a;
const CR = 0x0d;
const NOTHING: Buffer = Buffer.alloc(0);

/**
 * The yardstick: what is left when a client is nothing but a socket. One promise per command, one write per turn of the
 * event loop, RESP2, replies of one line or one bulk string. No reconnect, no timeouts, no options.
 */
export class ReferenceClient {
  readonly #socket: Socket;
  #batch = '';
  #pending: Pending[] = [];
  #head = 0;
  #tail = NOTHING;

  /** @param ca - the authority that signed the server's certificate, where it is TLS. */
  static async open(url: string, ca?: string): Promise<ReferenceClient> {
    const { hostname: host, port, username, password, pathname } = new URL(url);
    const place = { host, port: Number(port || 6379), noDelay: true };
    const socket = ca === undefined ? connect(place) : connectTls({ ...place, ca });
    await once(socket, ca === undefined ? 'connect' : 'secureConnect');
    const client = new ReferenceClient(socket.setNoDelay(true));
    const secret = decodeURIComponent(password);
    if (secret !== '') await client.command('AUTH', decodeURIComponent(username) || 'default', secret);
    if (pathname.length > 1) await client.command('SELECT', pathname.slice(1));
    return client;
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the reference connection was closed')));
  }

  get(key: string): Promise<string | null> {
    return this.#send(`*2\r\n$3\r\nGET\r\n$${Buffer.byteLength(key)}\r\n${key}\r\n`);
  }

  set(key: string, value: string): Promise<string | null> {
    return this.command('SET', key, value);
  }

  command(...args: string[]): Promise<string | null> {
    let request = `*${args.length}\r\n`;
    for (const arg of args) request += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`;
    return this.#send(request);
  }

  close(): void {
    this.#socket.end();
  }

  #send(request: string): Promise<string | null> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      if (this.#batch === '') setImmediate(() => this.#flush());
      this.#batch += request;
    });
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = '';
    this.#socket.write(batch);
  }

  #read(chunk: Buffer): void {
    const data = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk]);
    let at = 0;
    while (at < data.length) {
      const end = this.#readReply(data, at);
      if (end === -1) break;
      at = end;
    }
    this.#tail = at === data.length ? NOTHING : data.subarray(at);
    if (this.#head === this.#pending.length) {
      this.#pending = [];
      this.#head = 0;
    }
  }

  /**
   * Settles the caller of the reply that starts at `at`, and tells where the next one starts; -1 if it is not whole.
   */
  #readReply(data: Buffer, at: number): number {
    const lineEnd = data.indexOf(CR, at + 1);
    if (lineEnd === -1 || lineEnd + 2 > data.length) return -1;
    const start = lineEnd + 2;
    switch (data[at]) {
      case DOLLAR: {
        const length = Number(data.latin1Slice(at + 1, lineEnd));
        if (length === -1) {
          this.#next().resolve(null);
          return start;
        }
        const end = start + length;
        if (end + 2 > data.length) return -1;
        this.#next().resolve(data.utf8Slice(start, end));
        return end + 2;
      }
      case PLUS:
      case COLON:
        this.#next().resolve(data.utf8Slice(at + 1, lineEnd));
        return start;
      case MINUS:
        this.#next().reject(new Error(data.utf8Slice(at + 1, lineEnd)));
        return start;
      default:
        throw new Error(`the reference reads no reply of type "${String.fromCharCode(data[at] ?? 0)}"`);
    }
  }

  #next(): Pending {
    const pending = this.#pending[this.#head];
    if (pending === undefined) throw new Error('the reference got a reply that no caller waits for');
    this.#head += 1;
    return pending;
  }

  #fail(error: Error): void {
    for (const pending of this.#pending.slice(this.#head)) pending.reject(error);
    this.#pending = [];
    this.#head = 0;
  }
}
