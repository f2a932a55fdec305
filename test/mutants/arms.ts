import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ReplyDecoder } from '../../src/resp/decoder.js';
import { canonical } from '../helpers/fidelity/canonical.js';

/** What plain and coalesced clients differ in is found by steps: texts that must be equal, in order. */
export type Transcript = string[];

/** A step differs from plain's. */
export class Stopped extends Error {}

/** A step stays open, as it does on plain clients if there are any to compare with: its scene ends there. */
export class Open extends Error {}

/** Milliseconds after which a step counts as open. */
const OPEN_MS = 5_000;

/** Writes down what happens in a scene on one kind of client, and compares it with what has happened on plain ones. */
export class Stage {
  readonly transcript: Transcript = [];
  /** Messages of errors that nobody caught. */
  readonly uncaught: string[] = [];

  constructor(readonly plain: Transcript | undefined) {}

  record(title: string, text: string): void {
    const line = `${title}: ${text}`;
    const expected = this.plain?.[this.transcript.length];
    this.transcript.push(line);
    if (this.plain !== undefined && line !== expected) {
      throw new Stopped(`plain: ${clip(expected)}\n     here: ${clip(line)}`);
    }
    if (text === 'open') throw new Open(title);
  }

  /** One step for each of the calls, which are issued together, and one for the order in which they settle. */
  async steps(title: string, calls: Record<string, () => unknown>, order = false): Promise<void> {
    const settled: string[] = [];
    const found = new Map<string, string>();
    const promises = Object.entries(calls).map(async ([name, call]) => {
      try {
        found.set(name, canonical(await call()));
      } catch (error) {
        found.set(name, `rejected: ${canonical(error)}`);
      }
      settled.push(name);
    });
    await Promise.race([Promise.all(promises), sleep(OPEN_MS, undefined, { ref: true })]);
    for (const name of Object.keys(calls)) this.record(`${title} ${name}`, found.get(name) ?? 'open');
    if (order) this.record(`${title} order`, settled.join());
  }

  async step(title: string, call: () => unknown): Promise<void> {
    await this.steps(title, { '': call });
  }

  /** Waits until something has happened. */
  async until(title: string, condition: () => boolean): Promise<void> {
    for (let waitedMs = 0; !condition() && waitedMs < OPEN_MS; waitedMs += 5) await sleep(5);
    this.record(title, condition() ? 'has happened' : 'open');
  }
}

function clip(text = '(nothing)'): string {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** A connection that uses nothing of the host. */
export class Admin {
  readonly #socket: Socket;
  readonly #waiting: ((reply: unknown) => void)[] = [];
  #bytes = Buffer.alloc(0);

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1');
    this.#socket.on('data', (chunk) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      this.#read();
    });
  }

  #read(): void {
    while (this.#bytes.length > 0) {
      const decoder = new ReplyDecoder(
        { resp3Types: false, replyMapping: 'legacy', stringNumbers: false },
        (bytes) => bytes,
      );
      let end = this.#bytes.indexOf('\r\n') + 2;
      let reply: unknown = this.#bytes.toString('latin1', 0, end);
      if (this.#bytes[0] !== 45) {
        reply = decoder.decode(this.#bytes, 0, true, false);
        if (typeof reply === 'symbol') return;
        end = decoder.end;
      }
      this.#bytes = this.#bytes.subarray(end);
      this.#waiting.shift()?.(reply);
    }
  }

  send(...args: (string | number)[]): Promise<unknown> {
    const parts = args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`);
    this.#socket.write(`*${args.length}\r\n${parts.join('')}`);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  end(): void {
    this.#socket.destroy();
  }
}

/** A way to a server that can be closed. */
export async function startGate(serverPort: number) {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(serverPort, '127.0.0.1');
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => [near, far].map((each) => each.destroy()));
    }
    near.pipe(far).pipe(near);
  });
  const open = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  await open(0);
  const { port } = server.address() as { port: number };
  return {
    port,
    open: () => open(port),
    close: () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      sockets.clear();
      return closed;
    },
  };
}
