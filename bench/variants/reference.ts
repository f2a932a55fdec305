import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

type Reply = string | null | Reply[];

interface Pending {
  resolve(value: Reply): void;
  reject(error: Error): void;
}

const DOLLAR = 0x24;
const PLUS = 0x2b;
const MINUS = 0x2d;
const COLON = 0x3a;
const STAR = 0x2a;
const CR = 0x0d;
const NOTHING: Buffer = Buffer.alloc(0);

/**
 * The yardstick: what is left when a client is nothing but a socket. One promise per command, one write per turn of the
 * event loop, RESP2, replies of lines, bulk strings and arrays. No reconnect, no timeouts, no options.
 */
export class ReferenceClient {
  readonly #socket: Socket;
  #batch = '';
  #pending: Pending[] = [];
  #head = 0;
  #end = 0;
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

  get(key: string): Promise<Reply> {
    return this.#send(`*2\r\n$3\r\nGET\r\n$${Buffer.byteLength(key)}\r\n${key}\r\n`);
  }

  set(key: string, value: string): Promise<Reply> {
    return this.command('SET', key, value);
  }

  setFor(key: string, value: string, seconds: number): Promise<Reply> {
    return this.command('SET', key, value, 'EX', `${seconds}`);
  }

  hget(key: string, field: string): Promise<Reply> {
    return this.command('HGET', key, field);
  }

  async hgetall(key: string): Promise<Readonly<Record<string, Reply>>> {
    const pairs = (await this.command('HGETALL', key)) as string[];
    const hash: Record<string, Reply> = {};
    for (let index = 0; index < pairs.length; index += 2) hash[pairs[index]!] = pairs[index + 1]!;
    return hash;
  }

  smembers(key: string): Promise<Reply> {
    return this.command('SMEMBERS', key);
  }

  command(...args: string[]): Promise<Reply> {
    let request = `*${args.length}\r\n`;
    for (const arg of args) request += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`;
    return this.#send(request);
  }

  close(): void {
    this.#socket.end();
  }

  #send(request: string): Promise<Reply> {
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
      const reply = this.#replyAt(data, at);
      if (reply === undefined) break;
      const pending = this.#next();
      if (reply instanceof Error) pending.reject(reply);
      else pending.resolve(reply);
      at = this.#end;
    }
    this.#tail = at === data.length ? NOTHING : data.subarray(at);
    if (this.#head === this.#pending.length) {
      this.#pending = [];
      this.#head = 0;
    }
  }

  /** The reply that starts at `at`, which then ends at `#end`; undefined if it is not whole. */
  #replyAt(data: Buffer, at: number): Reply | Error | undefined {
    const lineEnd = data.indexOf(CR, at + 1);
    if (lineEnd === -1 || lineEnd + 2 > data.length) return undefined;
    const start = lineEnd + 2;
    this.#end = start;
    switch (data[at]) {
      case DOLLAR: {
        const length = Number(data.latin1Slice(at + 1, lineEnd));
        if (length === -1) return null;
        this.#end = start + length + 2;
        return this.#end > data.length ? undefined : data.utf8Slice(start, start + length);
      }
      case STAR: {
        const replies: Reply[] = [];
        for (let left = Number(data.latin1Slice(at + 1, lineEnd)); left > 0; left -= 1) {
          const reply = this.#replyAt(data, this.#end);
          if (reply === undefined) return undefined;
          replies.push(reply as Reply);
        }
        return replies;
      }
      case PLUS:
      case COLON:
        return data.utf8Slice(at + 1, lineEnd);
      case MINUS:
        return new Error(data.utf8Slice(at + 1, lineEnd));
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
