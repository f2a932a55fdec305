import { execFile } from 'node:child_process';
import { tracingChannel } from 'node:diagnostics_channel';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Redis as IORedis, type RedisOptions } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Client, type CoalescedClient, HOSTS, ioredis6, outcomes, ready, sleep, until } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_AUTO_PIPELINING');

const prefix = uniquePrefix('patched');
const run = promisify(execFile);

interface Command {
  name: string;
  args: unknown[];
  resolve: (value: unknown) => unknown;
  reject: (error: Error) => void;
  promise: Promise<unknown>;
}
type SendCommand = (this: unknown, command: Command, ...rest: unknown[]) => unknown;
type Patchable = Record<string, unknown> & { sendCommand: SendCommand };

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function fellBack(client: CoalescedClient): object {
  return Object.fromEntries(Object.entries(client.coalescer.stats().fallbacks).filter(([, count]) => count > 0));
}

/** Wraps `sendCommand` where it is found, as tracers do; returns what it saw and the way back. */
function patch(target: object): { seen: string[]; restore(): void } {
  const patchable = target as Patchable;
  const own = Object.hasOwn(patchable, 'sendCommand');
  const original = patchable.sendCommand;
  const seen: string[] = [];
  patchable.sendCommand = function traced(command, ...rest) {
    seen.push(`${command.name} ${String(command.args[0])}`);
    return original.call(this, command, ...rest);
  };
  return {
    seen,
    restore: () => {
      if (own) patchable.sendCommand = original;
      else Reflect.deleteProperty(patchable, 'sendCommand');
    },
  };
}

describe.each(HOSTS)('$name: wrapped methods of pipelines', (host) => {
  it.each<[string, 'sendCommand' | 'get', string[]]>([
    // As on a plain client: the pipeline holds its commands by then.
    ['sendCommand, replaced behind the last command and before exec(): not called', 'sendCommand', []],
    ['get, replaced before it is called: called', 'get', ['GET']],
  ])('%s', async (_, name, expected) => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const key = `${prefix}wrapped`;
    // So that its methods are known to be the host's.
    expect(await client.pipeline().set(key, '1').get(key).exec()).toHaveLength(2);
    const methods = Object.getPrototypeOf((host.Redis.prototype as Client).pipeline.call(client));
    const original = methods[name];
    const seen: string[] = [];
    const pipeline = client.pipeline().set(key, '2');
    if (name === 'sendCommand') pipeline.get(key);
    methods[name] = function wrapper(this: unknown, ...args: [{ name: string }]) {
      seen.push(name === 'get' ? 'GET' : args[0].name.toUpperCase());
      return original.apply(this, args);
    };
    try {
      if (name === 'get') pipeline.get(key);
      expect(await pipeline.exec()).toEqual([
        [null, 'OK'],
        [null, '2'],
      ]);
    } finally {
      methods[name] = original;
    }
    expect(seen).toEqual(expected);
    expect(fellBack(client)).toMatchObject({ patched: 1 });
  });
});

describe('a wrapper of sendCommand on the prototype', () => {
  it.each([
    ['before this package is loaded', 'patch(IORedis.prototype); const { Redis } = await import(index);'],
    ['after it is loaded', 'const { Redis } = await import(index); patch(IORedis.prototype);'],
  ])('set %s: sees every command', async (_, order) => {
    const program = `
      import { Redis as IORedis } from 'ioredis';
      const index = '${new URL('../../src/index.ts', import.meta.url).href}';
      const seen = [];
      const patch = (prototype) => {
        const { sendCommand } = prototype;
        prototype.sendCommand = function (command, ...rest) {
          seen.push(command.name);
          return sendCommand.call(this, command, ...rest);
        };
      };
      ${order}
      const redis = new Redis(process.env.TEST_URL);
      await new Promise((resolve) => redis.once('ready', resolve));
      seen.length = 0;
      await Promise.all([redis.echo('1'), redis.echo('2'), redis.call('ECHO', '3'), redis.getBuffer('none')]);
      console.log(JSON.stringify(seen));
      redis.disconnect();`;
    const { stdout } = await run(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
      env: { ...process.env, TEST_URL: redisUrl() },
    });
    expect(JSON.parse(stdout)).toEqual(['echo', 'echo', 'ECHO', 'get']);
  });

  it.each(HOSTS.map((host) => [host.name, host] as const))('set after coalesce() sees all: %s', async (_, host) => {
    const client = await ready(host.createCoalesced(redisUrl()));
    expect(await client.echo('fast')).toBe('fast');
    const { seen, restore } = patch(host.Redis.prototype as object);
    try {
      expect(await Promise.all([client.echo('1'), client.echo('2'), client.call('ECHO', '3')])).toEqual([
        '1',
        '2',
        '3',
      ]);
      expect(seen.map((line) => line.toLowerCase())).toEqual(['echo 1', 'echo 2', 'echo 3']);
    } finally {
      restore();
    }
    const { fastCommands } = client.coalescer.stats();
    expect(await client.echo('unseen')).toBe('unseen');
    expect(seen).toHaveLength(3);
    expect(client.coalescer.stats().fastCommands).toBe(fastCommands + 1);
  });

  it.each(HOSTS.map((host) => [host.name, host] as const))(
    'a command that code writes to the stream below it ends the connection: %s',
    async (_, host) => {
      const patched = patch(host.Redis.prototype);
      try {
        const client = await ready(host.createCoalesced(redisUrl(), { retryStrategy: () => 1 }));
        const errors: unknown[] = [];
        client.on('error', (error: Error & { code?: string }) => errors.push(error.code));
        await client.set(`${prefix}raw`, 'mine');
        const before = client.get(`${prefix}raw`);
        client.stream.write('*1\r\n$4\r\nPING\r\n');
        const after = client.get(`${prefix}raw`);
        expect(await Promise.all([before, after])).toEqual(['mine', 'mine']);
        expect(await client.get(`${prefix}raw`)).toBe('mine');
        expect(errors).toContain('COALESCE_ERR_REPLY');
      } finally {
        patched.restore();
      }
    },
  );

  it('is looked at once, not with each command', async () => {
    const patched = patch(IORedis.prototype);
    try {
      const client = await ready(ioredis6.createCoalesced(redisUrl()));
      const burst = () => Promise.all(Array.from({ length: 100 }, () => client.get(`${prefix}none`)));
      await burst();
      const reads = vi.spyOn(Function.prototype, 'toString');
      await burst();
      await client.get(`${prefix}none`);
      expect(reads).not.toHaveBeenCalled();
    } finally {
      patched.restore();
    }
  });

  it('patches of the prototype before a client is made and coalesced: see every command', async () => {
    const { seen, restore } = patch(IORedis.prototype);
    try {
      const client = coalesce(await ready(ioredis6.create(redisUrl())));
      await client.ping();
      seen.length = 0;
      await Promise.all([client.echo('1'), client.echo('2')]);
      expect(seen).toEqual(['echo 1', 'echo 2']);
      expect(client.coalescer.stats()).toMatchObject({ observedCommands: 2, fallbacks: { patched: 0 } });
    } finally {
      restore();
    }
  });
});

describe.each(HOSTS)('$name: methods of the client, replaced', (host) => {
  it('sendCommand as an own property is called while it is set', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const { seen, restore } = patch(client);
    await Promise.all([client.echo('1'), client.echo('2')]);
    expect(seen).toEqual(['echo 1', 'echo 2']);
    restore();
    await client.echo('3');
    expect(seen).toHaveLength(2);
  });

  it('a stub of sendCommand answers the commands itself', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    (client as unknown as Patchable).sendCommand = (command) => {
      command.resolve(Buffer.from(`stubbed ${command.name}`));
      return command.promise;
    };
    expect(await Promise.all([client.get('a'), client.call('ECHO', 'b')])).toEqual(['stubbed get', 'stubbed ECHO']);
    Reflect.deleteProperty(client, 'sendCommand');
    expect(await client.echo('real')).toBe('real');
  });

  it('vi.spyOn(client, "get") sees the calls', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const spy = vi.spyOn(client, 'get').mockResolvedValueOnce('mocked');
    expect(await client.get(`${prefix}none`)).toBe('mocked');
    expect(await client.get(`${prefix}none`)).toBeNull();
    expect(spy).toHaveBeenCalledTimes(2);
    spy.mockRestore();
    expect(await client.get(`${prefix}none`)).toBeNull();
    expect(spy).toHaveBeenCalledTimes(0);
  });

  it('vi.spyOn(Redis.prototype, "get") sees the calls, before and after coalesce()', async () => {
    const early = await ready(host.createCoalesced(redisUrl()));
    await early.get(`${prefix}none`);
    const spy = vi.spyOn(host.Redis.prototype as Client, 'get').mockResolvedValue('mocked');
    const late = await ready(host.createCoalesced(redisUrl()));
    expect(await Promise.all([early.get('a'), late.get('b')])).toEqual(['mocked', 'mocked']);
    expect(spy.mock.calls).toEqual([['a'], ['b']]);
    expect(await early.echo('others are fast')).toBe('others are fast');
    spy.mockRestore();
    expect(await early.get(`${prefix}none`)).toBeNull();
  });
});

describe.each(HOSTS.filter(({ features }) => features.tracing))(
  '$name: diagnostics_channel ioredis:command',
  (host) => {
    it('a subscriber sees each command once, from when it subscribes to when it leaves', async () => {
      const client = await ready(host.createCoalesced(redisUrl()));
      const channel = tracingChannel('ioredis:command');
      const started: string[] = [];
      const ended: string[] = [];
      const argument = (message: unknown) => String((message as { args: unknown[] }).args[0]);
      const subscribers = {
        start: (message: unknown) => void started.push(argument(message)),
        end: () => {},
        asyncStart: (message: unknown) => void ended.push(argument(message)),
        asyncEnd: () => {},
        error: () => {},
      };
      const keys = Array.from({ length: 30 }, (_, index) => `${prefix}none:${index}`);
      const before = keys.map(() => client.get('unseen'));
      channel.subscribe(subscribers);
      try {
        await Promise.all(keys.map((key, index) => (index % 3 === 0 ? client.call('GET', key) : client.get(key))));
        await Promise.all(before);
      } finally {
        channel.unsubscribe(subscribers);
      }
      expect(started).toEqual(keys);
      expect(ended).toEqual(keys);
      expect(fellBack(client)).toEqual({});
      const { fastCommands, observedCommands } = client.coalescer.stats();
      expect(observedCommands).toBe(30);
      await client.get('unseen');
      expect(started).toHaveLength(30);
      expect(client.coalescer.stats().fastCommands).toBe(fastCommands + 1);
    });
  },
);

describe('transformers of the user’s', () => {
  type Transform = (value: unknown) => unknown;
  const { Command } = IORedis as unknown as {
    Command: {
      setReplyTransformer(name: string, transform: Transform): void;
      setArgumentTransformer(name: string, transform: (args: unknown[]) => unknown[]): void;
      _transformer: { argument: Record<string, unknown>; reply: Record<string, unknown> };
    };
  };

  it.each(['before', 'after'] as const)('transformers set %s coalesce() work until removed', async (order) => {
    const { hgetall } = Command._transformer.reply;
    const { set } = Command._transformer.argument;
    const transform = () => {
      Command.setReplyTransformer('hgetall', (value) => ['own', value]);
      Command.setReplyTransformer('get', (value) => `<${String(value)}>`);
      Command.setArgumentTransformer('set', ([key, value]) => [key, JSON.stringify(value)]);
    };
    const k = `${prefix}${order}`;
    const h = `${k}:hash`;
    const use = (client: Client) =>
      outcomes([
        client.set(k, { a: 1 } as never),
        client.get(k),
        client.getBuffer(k),
        client.hset(h, { f: 'v' }),
        client.hgetall(h),
        client.del(k, h),
        client.get(k),
      ]);
    const plain = await ready(ioredis6.create(redisUrl()));
    const unset = await ready(ioredis6.create(redisUrl()));
    try {
      if (order === 'before') transform();
      const client = coalesce(unset);
      await client.ping();
      if (order === 'after') transform();
      expect(await use(client)).toEqual(await use(plain));
      expect(client.coalescer.stats().fastCommands).toBeGreaterThan(5);
    } finally {
      Command._transformer.reply.hgetall = hgetall;
      Reflect.deleteProperty(Command._transformer.reply, 'get');
      if (set === undefined) Reflect.deleteProperty(Command._transformer.argument, 'set');
    }
    expect(await use(coalesce(unset))).toEqual(await use(plain));
  });

  it('a transformer that throws rejects only its caller', async () => {
    const use = (client: Client) => outcomes([client.echo('a'), client.strlen('k'), client.echo('b')]);
    Command.setReplyTransformer('strlen', () => {
      throw new RangeError('by the transformer');
    });
    try {
      const settled = await use(await ready(ioredis6.createCoalesced(redisUrl())));
      expect(settled).toEqual(await use(await ready(ioredis6.create(redisUrl()))));
      expect(settled[1]).toMatchObject({ error: 'RangeError/RangeError: by the transformer' });
    } finally {
      Reflect.deleteProperty(Command._transformer.reply, 'strlen');
    }
  });
});

const warnings: (string | undefined)[] = [];
process.on('warning', ({ code }: Error & { code?: string }) => void warnings.push(code));

describe.each(HOSTS)('$name: options that the fast path leaves to the host', (host) => {
  const create = (options: RedisOptions) => ready(host.createCoalesced(redisUrl(), options));

  it.each(['incr', 'blpop'] as const)('showFriendlyErrorStack: the first frame is the caller of %s', async (method) => {
    const client = await create({ showFriendlyErrorStack: true });
    await client.set(`${prefix}text`, 'text');
    const reply: Promise<unknown> = method === 'incr' ? client.incr(`${prefix}text`) : client.blpop(`${prefix}text`, 1);
    const error = (await reply.catch((reason: unknown) => reason)) as Error;
    expect(error.stack?.split('\n')[1]).toContain('patched.test.ts');
    await client.del(`${prefix}text`);
    const { commands, fastCommands, mode } = client.coalescer.stats();
    expect({ fastCommands, mode }).toEqual({ fastCommands: 0, mode: 'cork' });
    expect(commands).toBeGreaterThanOrEqual(3);
    expect(Object.getPrototypeOf(client)).toBe(host.Redis.prototype);
  });

  it('showFriendlyErrorStack switched on later: commands are left to the host from then on', async () => {
    const client = await create({});
    await client.echo('a');
    client.options.showFriendlyErrorStack = true;
    const error = (await client.incrby(`${prefix}text`, 'x').catch((reason: unknown) => reason)) as Error;
    expect(error.stack).toContain('patched.test.ts');
    expect(fellBack(client)).toMatchObject({ options: 1 });
  });

  it.skipIf(!host.features.socketTimeout)(
    'socketTimeout: a silent connection is closed, one that answers is not',
    async () => {
      const proxy = await startProxy(redisUrl());
      const client = await ready(host.createCoalesced(proxy.url, { socketTimeout: 300, retryStrategy: () => 10 }));
      const errors: string[] = [];
      client.on('error', (error: Error) => errors.push(error.message));
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      for (let round = 0; round < 3; round += 1) {
        const replies = [client.echo('a'), client.echo('b')];
        client.coalescer.flush();
        vi.advanceTimersByTime(200);
        expect(await Promise.all(replies)).toEqual(['a', 'b']);
        vi.advanceTimersByTime(200);
      }
      expect(client.status).toBe('ready');
      proxy.stall();
      const reply = client.echo('resent');
      client.coalescer.flush();
      vi.advanceTimersByTime(299);
      await turn();
      expect(errors).toEqual([]);
      vi.advanceTimersByTime(1);
      vi.useRealTimers();
      await until(() => errors.length === 1, 'the socket timeout');
      proxy.resume();
      expect(errors[0]).toBe("Socket timeout. Expecting data, but didn't receive any in 300ms.");
      expect(await reply).toBe('resent');
      const { fastCommands, commands, fallbacks } = client.coalescer.stats();
      expect(fallbacks.options).toBe(0);
      expect(fastCommands / commands).toBeGreaterThan(0.5);
    },
  );

  it('enableAutoPipelining: commands queue in the client, and a warning says that it is redundant', async () => {
    const client = await create({ enableAutoPipelining: true });
    const again = await create({ enableAutoPipelining: true });
    expect(await Promise.all([client.echo('a'), client.echo('b'), again.echo('c')])).toEqual(['a', 'b', 'c']);
    expect(client.coalescer.stats().fastCommands).toBe(0);
    // The calls, and the pipeline that ioredis makes of them.
    expect(fellBack(client)).toEqual({ options: 3 });
    // It is attached, and what the client writes in one turn is one batch.
    const { batches, mode } = client.coalescer.stats();
    await Promise.all([client.pipeline().echo('a').exec(), client.pipeline().echo('b').exec()]);
    expect({ mode, batches: client.coalescer.stats().batches - batches }).toEqual({ mode: 'fast', batches: 1 });
    expect(fellBack(client)).toEqual({ options: 5 });
    // Once in this process, whichever host comes first.
    expect(warnings).toEqual(['COALESCE_WARN_AUTO_PIPELINING']);
  });
});

describe('a tracer like OpenTelemetry’s', () => {
  it('may replace resolve and reject of a re-sent fast command, and call them unbound', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(ioredis6.createCoalesced(proxy.url, { retryStrategy: () => 10, commandTimeout: 5_000 }));
    const k = `${prefix}otel`;
    const ask = (asked: Client) => [
      asked.get(k),
      asked.incr(k),
      asked.echo('é'),
      asked.getBuffer(k),
      asked.hgetall(`${k}:none`),
    ];
    await client.set(k, 'text');
    const plain = await outcomes(ask(await ready(ioredis6.create(redisUrl()))));
    proxy.stall();
    const replies = ask(client);
    await sleep(20);
    const spans: string[] = [];
    const original = IORedis.prototype.sendCommand as unknown as SendCommand;
    (IORedis.prototype as unknown as Patchable).sendCommand = function traced(command, ...rest) {
      const { resolve, reject, name } = command;
      const end = (how: string) => void spans.push(`${name} ${how}`);
      if (!['get', 'incr', 'echo', 'hgetall'].includes(name)) return original.call(this, command, ...rest);
      command.resolve = (value) => {
        end('ok');
        resolve(value);
        return undefined;
      };
      command.reject = (error) => {
        end('error');
        reject(error);
      };
      return original.call(this, command, ...rest);
    };
    try {
      proxy.reset();
      proxy.resume();
      expect(await outcomes(replies)).toEqual(plain);
      expect(spans).toEqual(['get ok', 'incr error', 'echo ok', 'get ok', 'hgetall ok']);
    } finally {
      (IORedis.prototype as unknown as Patchable).sendCommand = original;
    }
    await client.del(k);
  });
});
