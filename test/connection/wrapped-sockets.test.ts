/** A socket whose `push` or `emit` is not Node's own gets all bytes, to decode them or to count them. */
import { execFile } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { Duplex, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Coalesced } from 'ioredis-coalesce';
import { type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAs, expectAsPlain, KINDS, type Kind } from '../helpers/beside.js';
import { bundled } from '../helpers/bundled.js';
import { cold } from '../helpers/cold.js';
import { connectorOf } from '../helpers/connector.js';
import { type Client, HOSTS, type Host, ioredis6, LONG_ENOUGH, outcomesWithin, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { Relay, type Treatment } from '../helpers/relay.js';
import { bulk } from '../helpers/scripted-server.js';
import { expectWarnings } from '../helpers/warnings.js';

type Write = Socket['write'];

const PROGRAM = fileURLToPath(new URL('programs/metered-before.ts', import.meta.url));

const LONG = 'long '.repeat(30_000);

/** Each byte of the replies is another one on the wire: a test double for encryption or compression. */
const swap = (bytes: Buffer): Buffer => Buffer.from(bytes.map((byte) => byte ^ 0x55));

class SwappedReplies extends Relay {
  protected treat(): Treatment {
    return { spoil: swap };
  }
}

class SwappingPush extends Socket {
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    return super.push(chunk && swap(chunk), encoding);
  }
}

class SwappingEmit extends Socket {
  override emit(event: string | symbol, ...args: unknown[]): boolean {
    return event === 'data' ? super.emit(event, swap(args[0] as Buffer)) : super.emit(event as string, ...args);
  }
}

/** A client whose connections are sockets of this class. */
function connect(kind: Kind, host: Host, url: string, Class: new () => Socket = Socket): Promise<Client> {
  const open = () => new Class().connect(Number(new URL(url).port), '127.0.0.1');
  const options = { Connector: connectorOf(open), retryStrategy: () => null };
  return ready(kind === 'plain' ? host.create('', options) : host.createCoalesced('', options));
}

async function use(client: Client, key: string): Promise<unknown> {
  await Promise.all([client.set(key, 'v'), client.set(`${key}long`, LONG)]);
  return Promise.all([
    client.get(key),
    client.getBuffer(key),
    client.get(`${key}long`),
    client.incr(key).catch(String),
  ]);
}

/**
 * Replaces a method of `owner` by one that adds up the bytes that come through `stream`, until the test has finished.
 */
function meter(owner: object, method: 'push' | 'emit', stream: Socket): { bytes: number } {
  const meter = { bytes: 0 };
  const own = Object.getOwnPropertyDescriptor(owner, method);
  const original = (owner as Record<'push' | 'emit', (...args: unknown[]) => unknown>)[method];
  Object.defineProperty(owner, method, {
    configurable: true,
    writable: true,
    value(this: unknown, ...args: unknown[]) {
      const bytes = method === 'push' ? args[0] : args[0] === 'data' && args[1];
      if (this === stream && bytes instanceof Buffer) meter.bytes += bytes.length;
      return Reflect.apply(original, this, args);
    },
  });
  onTestFinished(() => {
    Reflect.deleteProperty(owner, method);
    if (own) Object.defineProperty(owner, method, own);
  });
  return meter;
}

describe.each(HOSTS)('a socket of $name', (host) => {
  it.each([SwappingPush, SwappingEmit])('decodes what it reads: %o', async (Class) => {
    const relay = new SwappedReplies(Number(new URL(redisUrl()).port));
    await relay.listen();
    onTestFinished(() => relay.close());
    const key = uniquePrefix('wrapped');
    await expectAsPlain(async (kind) => use(await connect(kind, host, relay.url, Class), key));
  });

  it.each([
    ['push', 'the socket', undefined],
    ['emit', 'the socket', undefined],
    ['push', 'net.Socket', Socket.prototype],
    ['emit', 'net.Socket', Socket.prototype],
    ['push', 'Readable', Readable.prototype],
    ['emit', 'EventEmitter', EventEmitter.prototype],
  ] as const)('in use: counts what it reads, by %s of %s', async (method, _, owner) => {
    const key = uniquePrefix('wrapped');
    await expectAsPlain(async (kind) => {
      const client = await connect(kind, host, redisUrl());
      await use(client, key);
      const { stream } = client as unknown as { stream: Socket };
      const before = stream.bytesRead;
      const counted = meter(owner ?? stream, method, stream);
      const values = await use(client, key);
      expect(counted.bytes).toBe(stream.bytesRead - before);
      return values;
    });
  });
});

it.each(['push', 'emit'])("a meter that replaces Node's %s before this package loads counts all", async (method) => {
  const program = await bundled(PROGRAM);
  for (const kind of KINDS) {
    const args = [program, method, kind, redisUrl(), uniquePrefix('metered')];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const { counted, read } = JSON.parse(stdout) as { counted: number; read: number };
    expect(read).toBeGreaterThan(100_000);
    expect([kind, counted]).toEqual([kind, read]);
  }
});

/** A server in memory, whose replies to a write are there before it returns. */
class Answering extends Duplex {
  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const names = chunk
      .toString()
      .toLowerCase()
      .matchAll(/\*\d+\r\n\$\d+\r\n(\w+)(?:\r\n\$\d+\r\n([^\r]*))?/g);
    for (const [, name = '', text = ''] of names) {
      this.push(name === 'echo' ? bulk(text) : (ANSWERS[name] ?? '+OK\r\n'));
    }
    done();
  }

  setNoDelay(): void {}
  setKeepAlive(): void {}
  setTimeout(): void {}
}

const ANSWERS: Record<string, string> = {
  hello: '%1\r\n+proto\r\n:3\r\n',
  info: bulk('redis_version:7.0.0\r\n'),
  get: bulk('value'),
};

it.for(HOSTS)('$name: a stream that answers within its write works as for a plain client', async (host, { skip }) => {
  const use = (kind: Kind) => {
    const options = { Connector: connectorOf(() => new Answering()), retryStrategy: () => null };
    const client = createAs(kind, host, '', options);
    const sent = [client.get('a'), client.call('GET', 'b'), client.pipeline().get('c').exec(), client.set('d', '1')];
    return outcomesWithin(LONG_ENOUGH, sent);
  };
  const plain = await use('plain');
  skip(plain.includes('open' as never), 'ioredis 5.0.0 takes such answers for those of other commands');
  expect(await use('coalesced')).toEqual(plain);
});

/** The same, for several writes in one piece. */
class AnsweringTogether extends Answering {
  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'buffer' as BufferEncoding, done);
  }
}

// Node drops what is written within `_writev`, so no reply may be read there.
it.each(HOSTS)('$name: commands that such a stream makes room for amid a write of many are sent', async (host) => {
  const options = { Connector: connectorOf(() => new AnsweringTogether()), retryStrategy: () => null };
  const client = await ready(host.createCoalesced('', options, { maxInFlight: 3 }));
  const said = Array.from({ length: 20 }, (_, index) => `said ${index}`);
  const echoed = said.map((text, index) => (index % 3 === 0 ? cold(client, 'echo', text) : client.echo(text)));
  expect(await outcomesWithin(LONG_ENOUGH, echoed)).toEqual(said.map((value) => ({ value })));
});

describe.each(HOSTS)('$name: a wrapper of write that holds bytes back, set after coalesce()', (host) => {
  it('keeps the order of commands, on the fast path or not', async () => {
    await expectAsPlain(async (kind) => {
      const client = await connect(kind, host, redisUrl());
      const { stream } = client as unknown as { stream: Socket };
      const own = stream.write;
      stream.write = (...args: unknown[]) => {
        setTimeout(() => own.apply(stream, args as never), 5);
        return true;
      };
      const values = await Promise.all([
        cold(client, 'echo', 'left to the host'),
        client.echo('fast'),
        client.pipeline().echo('piped').exec(),
        client.echo('last'),
      ]);
      stream.write = own;
      return [values, await client.echo('put back')];
    });
  });

  it('and is taken off before it has written: each command is executed once', async () => {
    await expectAsPlain(async (kind) => {
      const key = uniquePrefix(`delayed-write-${kind}`);
      const client = await connect(kind, host, redisUrl());
      await client.get(key);
      const { stream } = client as unknown as { stream: Socket };
      const own = stream.write;
      stream.write = (...args: unknown[]) => {
        setImmediate(() => own.apply(stream, args as never));
        return true;
      };
      const sent = [client.incr(key), client.pipeline().incr(key).incr(key).exec()];
      stream.write = own;
      const outcomes = await outcomesWithin(LONG_ENOUGH, sent);
      return [outcomes, await client.get(key), stream === (client as unknown as { stream: Socket }).stream];
    });
  });
});

describe.each(HOSTS)('$name: a wrapper of write, set after coalesce()', (host) => {
  const wrap = (client: Client) => {
    const { stream } = client as unknown as { stream: Socket };
    const { write } = stream;
    stream.write = ((...args: Parameters<Write>) => write.apply(stream, args)) as Write;
  };

  it('leaves showFriendlyErrorStack its effect', async () => {
    await expectAsPlain(async (kind) => {
      const key = uniquePrefix('friendly');
      const client = await ready(createAs(kind, host, redisUrl()));
      await client.set(key, 'text');
      client.options.showFriendlyErrorStack = true;
      wrap(client);
      const error = await client.incr(key).catch((thrown: Error) => thrown);
      await client.del(key);
      return /wrapped-sockets\.test/.test((error as Error).stack ?? '');
    });
  });

  it('leaves enableAutoPipelining its order', async () => {
    expectWarnings('COALESCE_WARN_AUTO_PIPELINING');
    await expectAsPlain(async (kind) => {
      const key = uniquePrefix(`auto-${kind}`);
      const client = await ready(createAs(kind, host, redisUrl(), { enableAutoPipelining: true }));
      await client.set(key, 'old');
      wrap(client);
      const outcomes = await Promise.all([client.set(key, 'new'), client.pipeline().get(key).exec()]);
      await client.del(key);
      return outcomes;
    });
  });
});

it.each(HOSTS)('$name: a meter that replaces Socket.prototype.write later counts what is sent', async (host) => {
  const own = Object.getOwnPropertyDescriptor(Socket.prototype, 'write');
  const { write } = Socket.prototype;
  onTestFinished(() => {
    Reflect.deleteProperty(Socket.prototype, 'write');
    if (own) Object.defineProperty(Socket.prototype, 'write', own);
  });
  const client = await connect('coalesced', host, redisUrl());
  await client.echo('first');
  const { stream } = client as unknown as { stream: Socket };
  const before = stream.bytesWritten;
  let counted = 0;
  Socket.prototype.write = function (this: Socket, ...args: Parameters<Write>) {
    if (this === stream) counted += Buffer.byteLength(args[0]);
    return Reflect.apply(write, this, args) as boolean;
  } as Write;
  await Promise.all([client.echo('fast'), cold(client, 'echo', 'left to the host'), client.echo('naïve')]);
  expect(counted).toBeGreaterThan(0);
  expect(counted).toBe(stream.bytesWritten - before);
});

/** The parts of a write, past all hooks. */
const bare = (stream: Socket): Write =>
  function write(...args: unknown[]) {
    return Socket.prototype.write.apply(stream, args as never);
  } as Write;

describe.each(HOSTS)('$name: a write that does not call what it replaces', (host) => {
  const prefix = uniquePrefix('replaced-write');
  const keys = ['a', 'b', 'c'].map((name) => `${prefix}${name}`) as [string, string, string];
  const [a, b, c] = keys;
  const connectWith = async (
    kind: Kind,
    options: CoalesceOptions = {},
    onConnect: (stream: Socket) => void = () => {},
  ) => {
    const client = createAs('plain', host, redisUrl());
    client.once('connect', () => onConnect((client as unknown as { stream: Socket }).stream));
    await ready(client);
    if (kind === 'coalesced') coalesce(client, options);
    // Once the host has decoded a reply, commands are fast.
    await cold(client, 'mset', ...keys.flatMap((key) => [key, `of ${key}`]));
    return { client, stream: (client as unknown as { stream: Socket }).stream };
  };

  it('is not overtaken by what was sent before, nor overtakes it', async () => {
    const values = await expectAsPlain(async (kind) => {
      const { client, stream } = await connectWith(kind);
      const first = client.get(a);
      stream.write = bare(stream);
      return Promise.all([first, client.get(b), cold(client, 'get', c)]);
    });
    expect(values).toEqual(keys.map((key) => `of ${key}`));
  });

  it('may be that of before coalesce()', async () => {
    await expectAsPlain(async (kind) => {
      let takeOff = () => {};
      const { client } = await connectWith(kind, {}, (stream) => {
        const { write } = stream;
        stream.write = ((...args: Parameters<Write>) => write.apply(stream, args)) as Write;
        takeOff = () => {
          stream.write = write;
        };
      });
      const first = client.get(a);
      takeOff();
      return Promise.all([first, client.get(b), cold(client, 'get', c)]);
    });
  });

  it('may be put in place again and again', async () => {
    await expectAsPlain(async (kind) => {
      const { client, stream } = await connectWith(kind);
      const { write } = stream;
      const own = bare(stream);
      const sent: Promise<unknown>[] = [];
      for (const key of keys) {
        sent.push(client.get(key));
        stream.write = own;
        sent.push(client.strlen(key));
        stream.write = write;
      }
      return Promise.all(sent);
    });
  });

  it("between two commands of the host's leaves the connection as it is", async () => {
    await expectAsPlain(async (kind) => {
      const { client, stream } = await connectWith(kind);
      const first = cold(client, 'get', a);
      stream.write = bare(stream);
      const values = await Promise.all([first, cold(client, 'get', b)]);
      return [values, await client.get(c), stream === (client as unknown as { stream: Socket }).stream];
    });
  });

  it('comes after a backlog', async () => {
    await expectAsPlain(async (kind) => {
      const { client, stream } = await connectWith(kind, { maxInFlight: 2 });
      const held = [a, a, a, b].map((key) => client.get(key));
      await new Promise(setImmediate);
      stream.write = bare(stream);
      return Promise.all([...held, client.get(c), client.strlen(c)]);
    });
  });

  it('is put back before the replies: each command is executed once', async () => {
    await expectAsPlain(async (kind) => {
      const key = `${prefix}${kind}`;
      const { client, stream } = await connectWith(kind);
      const { write } = stream;
      const first = cold(client, 'incr', key);
      stream.write = bare(stream);
      const second = cold(client, 'incr', key);
      stream.write = write;
      const values = await Promise.all([first, second, client.incr(key)]);
      await client.del(key);
      return [values, stream === (client as unknown as { stream: Socket }).stream];
    });
  });

  it.each(['shareReads', 'fuseReads'] as const)('has written MULTI: with %s, EXEC has all results', async (option) => {
    await expectAsPlain(async (kind) => {
      const { client, stream } = await connectWith(kind, { [option]: true });
      await client.get(a);
      const { write } = stream;
      stream.write = bare(stream);
      await client.get(a);
      await client.multi({ pipeline: false });
      stream.write = write;
      return outcomesWithin(LONG_ENOUGH, [client.get(a), client.get(a), client.exec()]);
    });
  });

  it('comes after the rest of a backlog that ends with commands of the host', async () => {
    await expectAsPlain(async (kind) => {
      const { client, stream } = await connectWith(kind, { maxInFlight: 2 });
      const first = client.get(a);
      const sent = [client.blpop(`${prefix}none`, 0.2), cold(client, 'echo', 'one'), cold(client, 'echo', 'two')];
      await first;
      stream.write = bare(stream);
      return Promise.all([first, ...sent, cold(client, 'echo', 'three')]);
    });
  });

  it('comes after a backlog that ends with a command of the host', async () => {
    await expectAsPlain(async (kind) => {
      const { client, stream } = await connectWith(kind, { maxInFlight: 2 });
      const held = [client.get(a), client.get(b), cold(client, 'get', c)];
      stream.write = bare(stream);
      return Promise.all([...held, cold(client, 'echo', 'said')]);
    });
  });

  it('that the host calls first, ends the connection: its command and what is pending are sent again', async () => {
    await expectAsPlain(async (kind) => {
      const { client, stream } = await connectWith(kind);
      const errors: Error[] = [];
      client.on('error', (error) => errors.push(error));
      const first = client.get(a);
      stream.write = bare(stream);
      const values = await Promise.all([first, cold(client, 'get', b), client.get(c)]);
      expect(errors.map((error) => (error as Error & { code?: string }).code)).toEqual(
        kind === 'plain' ? [] : ['COALESCE_ERR_REPLY'],
      );
      return values;
    });
  });
});

describe.each(HOSTS)(
  '$name: the data listener of a coalesced connection, wrapped by code that delays replies',
  (host) => {
    it.each(['goes on', 'is detached'])('gets all replies: it %s', async (how) => {
      const key = uniquePrefix('delayed');
      await expectAsPlain(async (kind) => {
        const client = await connect(kind, host, redisUrl());
        await client.set(key, 'v');
        const { stream } = client as unknown as { stream: Socket };
        const listeners = stream.listeners('data') as ((chunk: Buffer) => void)[];
        stream.removeAllListeners('data');
        stream.on('data', (chunk: Buffer) =>
          setTimeout(() => {
            for (const each of listeners) each.call(stream, chunk);
          }, 5),
        );
        if (how === 'is detached') (client as Partial<Coalesced>).coalescer?.detach();
        const first = await outcomesWithin(LONG_ENOUGH, [client.get(key)]);
        // The host decodes an error.
        const second = await outcomesWithin(LONG_ENOUGH, [client.incr(key), client.get(key)]);
        const third = await outcomesWithin(LONG_ENOUGH, [client.get(key), cold(client, 'echo', 'said')]);
        return [...first, ...second, ...third].map((outcome) => JSON.stringify(outcome));
      });
    });
  },
);

describe.each(HOSTS)('$name: the data listener, wrapped by code that the host calls for a reply', (host) => {
  it('goes on, and gets all replies', async () => {
    const key = uniquePrefix('wrapped-within');
    await expectAsPlain(async (kind) => {
      let stream: Socket | undefined;
      const reconnectOnError = () => {
        const listeners = stream?.listeners('data') as ((chunk: Buffer) => void)[];
        stream?.removeAllListeners('data');
        stream?.on('data', (chunk: Buffer) => {
          for (const each of listeners) each.call(stream, chunk);
        });
        return false;
      };
      const client = await ready(createAs(kind, host, redisUrl(), { reconnectOnError }));
      await client.set(key, 'v');
      stream = (client as unknown as { stream: Socket }).stream;
      const first = await outcomesWithin(LONG_ENOUGH, [client.incr(key), client.get(key)]);
      const second = await outcomesWithin(LONG_ENOUGH, [client.get(key), cold(client, 'echo', 'said')]);
      (client as Partial<Coalesced>).coalescer?.detach();
      const third = await outcomesWithin(LONG_ENOUGH, [client.get(key), client.del(key)]);
      return [...first, ...second, ...third].map((outcome) => JSON.stringify(outcome));
    });
  });
});

describe.each(HOSTS)('$name: text beyond ASCII, on a stream that ignores the encoding of a write', (host) => {
  /** A tunnel that passes text on as UTF-8, Node's default. */
  class Tunnel extends Duplex {
    readonly socket: Socket;

    constructor(port: number) {
      super({ decodeStrings: false });
      this.socket = new Socket().connect(port, '127.0.0.1');
      this.socket.on('data', (chunk) => this.push(chunk));
      this.socket.on('close', () => this.destroy());
    }

    override _read(): void {}
    override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
      this.socket.write(chunk, done);
    }
    override _final(done: () => void): void {
      this.socket.end(done);
    }
    setNoDelay(): void {}
    setKeepAlive(): void {}
    setTimeout(): void {}
  }

  const useWith = (open: (port: number) => Duplex) =>
    expectAsPlain(async (kind) => {
      const url = redisUrl();
      const options = { Connector: connectorOf(() => open(Number(new URL(url).port))), retryStrategy: () => null };
      const client = await ready(createAs(kind, host, '', options));
      const key = uniquePrefix('naïve');
      const sent = [
        client.set('ascii', 'ascii'),
        client.set(key, 'naïve café'),
        client.get(key),
        client.getBuffer(key),
      ];
      return outcomesWithin(LONG_ENOUGH, sent);
    });

  it("is that of a plain client: a Connector's stream", () => useWith((port) => new Tunnel(port)));

  it('is that of a plain client: a socket whose _write passes on the data alone', () => {
    type Chunk = { chunk: string | Buffer; encoding: BufferEncoding };
    const encodingOf = (chunk: unknown) => (typeof chunk === 'string' ? 'utf8' : 'buffer') as BufferEncoding;
    class Loose extends Socket {
      override _write(chunk: unknown, _encoding: BufferEncoding, done: () => void): void {
        super._write(chunk, encodingOf(chunk), done);
      }
      override _writev(chunks: Chunk[], done: () => void): void {
        super._writev?.(
          chunks.map(({ chunk }) => ({ chunk, encoding: encodingOf(chunk) })),
          done,
        );
      }
    }
    return useWith((port) => new Loose().connect(port, '127.0.0.1'));
  });

  it('is that of a plain client: a wrapper that passes on the data alone', () =>
    useWith((port) => {
      const socket = new Socket().connect(port, '127.0.0.1');
      const { write } = socket;
      socket.write = ((data: string) => write.call(socket, data)) as Write;
      return socket;
    }));
});

it('a write that is not the one of before, and has written SET: a cached read after it gets the new value', async () => {
  await expectAsPlain(async (kind) => {
    const key = uniquePrefix(`cached-${kind}`);
    const client = await ready(createAs(kind, ioredis6, redisUrl(), {}, { cache: true }));
    await client.set(key, 'old');
    const hits = () => (client as Partial<Coalesced>).coalescer?.stats().cache?.hits ?? 1;
    while (hits() === 0) expect(await client.get(key)).toBe('old');
    const { stream } = client as unknown as { stream: Socket };
    const { write } = stream;
    stream.write = bare(stream);
    const set = client.set(key, 'new');
    stream.write = write;
    return outcomesWithin(LONG_ENOUGH, [set, client.get(key), client.del(key)]);
  });
});

/** A stream of a Connector that has what ioredis calls, and no more. */
class Bare extends EventEmitter {
  readonly #socket: Socket;
  writable = true;
  destroyed = false;

  constructor(port: number) {
    super();
    this.#socket = new Socket().connect(port, '127.0.0.1');
    for (const event of ['data', 'error', 'end', 'close'])
      this.#socket.on(event, (...args) => this.emit(event, ...args));
  }

  setNoDelay(): void {}
  setKeepAlive(): void {}
  setTimeout(): void {}

  resume(): void {
    this.#socket.resume();
  }

  write(data: string | Buffer): boolean {
    return this.#socket.write(data);
  }

  end(): void {
    this.writable = false;
    this.#socket.end();
  }

  destroy(): void {
    this.destroyed = true;
    this.#socket.destroy();
  }
}

it.each(HOSTS)('$name: a stream without cork() works as for a plain client', async (host) => {
  await expectAsPlain(async (kind) => {
    const open = () => new Bare(Number(new URL(redisUrl()).port)) as unknown as Duplex;
    const options = { Connector: connectorOf(open), retryStrategy: () => null };
    const client = await ready(createAs(kind, host, '', options));
    const key = uniquePrefix('bare');
    const piped = client.pipeline().get(key).exec();
    return outcomesWithin(LONG_ENOUGH, [client.set(key, 'v'), cold(client, 'echo', 'x'), client.get(key), piped]);
  });
});
