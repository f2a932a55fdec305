import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server that says what it is told to, for replies that no real one gives; closed when the running test ends. */
export interface ScriptedServer {
  readonly url: string;
  /** Commands received on all connections, without those of the handshake. */
  readonly commands: readonly (readonly string[])[];
  /** The most commands that were received and not answered at one time, on any connection. */
  readonly maxUnanswered: number;
}

/** The reply to a command as RESP, `'close'` to end the connection, or nothing to leave the command unanswered. */
export type Script = (command: readonly string[], connection: number) => string | undefined;

export interface ScriptedServerOptions {
  /** Commands answered at a time; the next ones wait for the next turn of the event loop. @default unlimited */
  answersPerTurn?: number;
}

const HANDSHAKE = new Set(['hello', 'client', 'info', 'select', 'auth', 'readonly']);

/** The replies of a server that is ready and speaks RESP2 only. */
export function handshake([name = '']: readonly string[]): string | undefined {
  switch (name) {
    case 'hello':
      return '-NOPROTO unsupported protocol version\r\n';
    case 'info':
      return bulk('redis_version:7.0.0\r\nloading:0\r\n');
    default:
      return HANDSHAKE.has(name) ? '+OK\r\n' : undefined;
  }
}

export function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

export async function startScriptedServer(
  script: Script,
  { answersPerTurn = Number.POSITIVE_INFINITY }: ScriptedServerOptions = {},
): Promise<ScriptedServer> {
  const sockets = new Set<Socket>();
  const commands: (readonly string[])[] = [];
  let connections = 0;
  let maxUnanswered = 0;

  const server = createServer({ noDelay: true }, (socket) => {
    const connection = ++connections;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    const parser = new RequestParser();
    const unanswered: (readonly string[])[] = [];
    let head = 0;
    let answering = false;
    const answer = (): void => {
      answering = false;
      let replies = '';
      for (let count = 0; head < unanswered.length && count < answersPerTurn; count += 1) {
        const reply = script(unanswered[head] as readonly string[], connection);
        head += 1;
        if (reply === 'close') {
          socket.end(replies);
          return;
        }
        replies += reply ?? '';
      }
      if (replies !== '') socket.write(replies);
      if (head < unanswered.length) schedule();
    };
    const schedule = (): void => {
      if (answering) return;
      answering = true;
      setImmediate(answer);
    };
    socket.on('data', (chunk) => {
      for (const command of parser.read(chunk)) {
        unanswered.push(command);
        if (HANDSHAKE.has(command[0] as string)) continue;
        commands.push(command);
        maxUnanswered = Math.max(maxUnanswered, unanswered.length - head);
      }
      schedule();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    commands,
    get maxUnanswered() {
      return maxUnanswered;
    },
  };
}

/** Request bytes to commands, over any number of chunks; the name in lower case. */
class RequestParser {
  #rest = '';

  *read(chunk: Buffer): Generator<string[]> {
    // Latin-1 keeps a character a byte; what scripts look at is ASCII.
    const text = this.#rest + chunk.toString('latin1');
    let done = 0;
    for (;;) {
      const parsed = parseRequest(text, done);
      if (parsed === undefined) break;
      done = parsed.end;
      yield [(parsed.args[0] as string).toLowerCase(), ...parsed.args.slice(1)];
    }
    this.#rest = text.slice(done);
  }
}

function parseRequest(text: string, start: number): { args: string[]; end: number } | undefined {
  let position = start;
  const length = (): number => {
    const end = text.indexOf('\r\n', position);
    if (end < 0) return -1;
    const value = Number(text.slice(position + 1, end));
    position = end + 2;
    return value;
  };
  const count = length();
  if (count < 1) return undefined;
  const args: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const size = length();
    if (size < 0 || text.length < position + size + 2) return undefined;
    args.push(text.slice(position, position + size));
    position += size + 2;
  }
  return { args, end: position };
}
