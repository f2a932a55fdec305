import { setImmediate as turn } from 'node:timers/promises';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { EACH_HOST } from '../helpers/cut-replies.js';
import { connectFake } from '../helpers/fake-connection.js';
import {
  type Client,
  type CoalescedClient,
  HOSTS,
  type Host,
  LONG_ENOUGH,
  outcomes,
  outcomesWithin,
  ready,
  sleep,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { collectUncaught } from '../helpers/uncaught.js';
import { around, type Command, following, type Layer, layer, replacing, type Send } from './helpers/layers.js';

const prefix = uniquePrefix('layers');
const KEY = `${prefix}key`;
const HASH = `${prefix}hash`;
/** Larger than a chunk: its reply is split. */
const LARGE = 'ü'.repeat(200_000);

/** What layers may use of a command to read it. */
interface ReadCommand extends Command {
  replyEncoding: string | null;
  getKeys(): unknown;
  transformReply(reply: unknown): unknown;
}

type Play = (client: Client, log: unknown[]) => Promise<unknown>;
type Options = Parameters<Host['create']>[1];

/** What a plain client and a coalesced one come to below the same layers, and how many commands were fast. */
async function beside(host: Host, layers: (log: unknown[]) => Layer[], play: Play, options?: Options, coalesced = {}) {
  const found: { results: unknown; log: Record<string, unknown[]> }[] = [];
  let stats: ReturnType<CoalescedClient['coalescer']['stats']> | undefined;
  for (const kind of ['plain', 'coalesced'] as const) {
    const log: unknown[] = [];
    const client = layer(await ready(host.create(redisUrl(), options)), ...layers(log));
    if (kind === 'coalesced') coalesce(client, coalesced);
    await warm(client);
    await client.del(KEY, HASH, `${KEY}:other`);
    await warm(client);
    log.length = 0;
    const results = await play(client, log);
    await answeredAll(client);
    found.push({ results, log: byEvent(log) });
    if (kind === 'plain') continue;
    const { coalescer } = client as CoalescedClient;
    await until(() => coalescer.stats().inFlight === 0, 'all replies');
    stats = coalescer.stats();
  }
  const [plain, other] = found;
  expect(other).toEqual(plain);
  return { log: plain?.log ?? {}, results: plain?.results, stats: stats as NonNullable<typeof stats> };
}

/**
 * The lines of each kind in their order: how those of several kinds alternate depends on where chunks of replies end.
 */
function byEvent(log: readonly unknown[]): Record<string, unknown[]> {
  const found: Record<string, unknown[]> = {};
  for (const line of log) {
    const [event, ...rest] = line as [string, ...unknown[]];
    found[event] ??= [];
    found[event].push(rest);
  }
  return found;
}

/** Its reply shows where the next one begins. A layer may return nothing that could be awaited. */
async function warm(client: Client): Promise<void> {
  await client.echo('warm');
  await answeredAll(client);
}

/** Waits for the replies to all commands, those that layers send by themselves included. */
function answeredAll(client: Client): Promise<void> {
  const { commandQueue } = client as unknown as { commandQueue: { length: number } };
  return until(() => commandQueue.length === 0, 'the replies to all commands');
}

const everything: Play = async (client) => {
  const first = await outcomes([
    client.set(KEY, 'text'),
    client.get(KEY),
    client.getBuffer(KEY),
    client.incr(KEY),
    client.hset(HASH, { a: 1, b: 'ü' }),
    client.hgetall(HASH),
    client.hgetallBuffer(HASH),
    client.hmget(HASH, 'a', 'none'),
    client.mget([KEY, `${prefix}none`]),
    client.call('STRLEN', KEY),
    client.set(KEY, 12.5),
    client.incrbyfloat(KEY, 1),
    client.set(KEY, Buffer.from([0xff, 0])),
    client.getBuffer(KEY),
  ]);
  const second = await outcomes([client.set(KEY, LARGE), client.get(KEY), client.getBuffer(KEY), client.exists(KEY)]);
  return [...first, ...second];
};

describe.each(HOSTS)('layers over sendCommand, $name', (host) => {
  it.each([
    ['that replace resolve and reject', (log: unknown[]) => [replacing(log)]],
    ['that follow the promise', (log: unknown[]) => [following(log)]],
    ['of both kinds, twice', (log: unknown[]) => [replacing(log, '1'), following(log, '2'), replacing(log, '3')]],
  ])('%s see what they see of a plain client, and every command is fast', async (_, layers) => {
    const { log, stats } = await beside(host, layers, everything);
    expect(Object.values(log).flat().length).toBeGreaterThanOrEqual(18);
    expect(stats.observedCommands).toBeGreaterThanOrEqual(18);
    expect(stats.fallbacks.patched).toBe(0);
    // All but the error, the reply to `echo`, and what is too large for our reader.
    expect(stats.replies.fast).toBeGreaterThanOrEqual(16);
  });

  it('a script is loaded, called and loaded again as on a plain client', async () => {
    await beside(
      host,
      (log) => [replacing(log), following(log)],
      async (client) => {
        client.defineCommand('twice', {
          numberOfKeys: 1,
          lua: `return {KEYS[1], ARGV[1] .. '${client.constructor.name}'}`,
        });
        const { twice } = client as unknown as { twice: (key: string, argument: number) => Promise<unknown> };
        const call = () => twice.call(client, KEY, 2);
        const results = [await call(), await call()];
        await client.script('FLUSH');
        return [...results, await call(), await call()];
      },
    );
  });

  it('callers get the value that a layer puts in place of the reply', async () => {
    const shout = around((send, command) => {
      const returned = send();
      const { resolve } = command;
      command.resolve = (reply) => resolve(Buffer.from(`${String(reply)}!`));
      return returned;
    });
    const { results } = await beside(
      host,
      () => [shout, shout],
      (client) => outcomes([client.set(KEY, 'a'), client.get(KEY)]),
    );
    expect(results).toEqual([{ value: 'OK!!' }, { value: 'a!!' }]);
  });

  it('a layer may redefine resolve, as shimmer does', async () => {
    const log: unknown[] = [];
    const define = around((send, command) => {
      const { resolve } = command;
      const value = (reply: unknown) => {
        log.push(['resolved', reply]);
        return resolve(reply);
      };
      Object.defineProperty(command, 'resolve', { value, writable: true, configurable: true, enumerable: true });
      return send();
    });
    const { results } = await beside(
      host,
      () => [define],
      async (client) => {
        log.length = 0;
        return [await outcomes([client.set(KEY, 'a'), client.get(KEY)]), [...log]];
      },
    );
    expect(results).toMatchObject([
      {},
      [
        ['resolved', Buffer.from('OK')],
        ['resolved', Buffer.from('a')],
      ],
    ]);
  });

  const mapping = around((send, command) => {
    const returned = send();
    const { reject } = command;
    command.reject = (error) => reject(new Error(`mapped: ${error.message}`));
    return returned;
  });

  const ODD: Record<string, Layer> = {
    'keeps a command and resolves it later by itself': around<Client>((send, command, client) => {
      if (command.name !== 'get') return send();
      // Once the other commands have their replies.
      const resolve = () => {
        if (client.commandQueue.length > 0) setTimeout(resolve, 5);
        else command.resolve(Buffer.from('from elsewhere'));
      };
      setTimeout(resolve, 5);
      return command.promise;
    }),
    'resolves a command by itself, and its reply comes later': around((send, command) => {
      const returned = send();
      if (command.name === 'get') command.resolve(Buffer.from('early'));
      return returned;
    }),
    'rejects a command by itself, and its reply comes later': around((send, command) => {
      const returned = send();
      if (command.name === 'get') command.reject(new Error('refused'));
      return returned;
    }),
    'sends it twice': around((send) => {
      send();
      return send();
    }),
    'sends it when a promise has settled': around(async (send, { name }) => {
      await sleep(name === 'get' ? 5 : 1);
      return send();
    }),
    'changes an argument': around((send, { name, args }) => {
      if (name === 'append' || name === 'get') args[0] = `${String(args[0])}:other`;
      return send();
    }),
    'replaces all arguments': around((send, command) => {
      if (command.name === 'append') command.args = [command.args[0], 'ä', Buffer.from('too many')];
      return send();
    }),
    'makes it another command': around((send, command) => {
      if (command.name === 'append') command.name = 'set';
      if (command.name === 'strlen') command.name = 'hgetall';
      return send();
    }),
    'returns nothing': around((send) => void send()),
    'returns another promise': around((send) => (send() as Promise<unknown>).then((value) => [value])),
    'throws when it has called on': around((send, { name, promise }) => {
      void send();
      if (name === 'get') throw new Error('thrown');
      return promise;
    }),
    'throws before it calls on': around((send, { name }) => {
      if (name === 'get') throw new Error('thrown');
      return send();
    }),
    'sends another command before it': around<Client>((send, { name }, client) => {
      if (name === 'get') void client.append(KEY, '+');
      return send();
    }),
    'sends another command in its resolve': around<Client>((send, command, client) => {
      const returned = send();
      const { resolve } = command;
      command.resolve = (reply) => {
        if (command.name === 'get') void client.append(KEY, '-');
        return resolve(reply);
      };
      return returned;
    }),
    'measures its bytes, and sends it': around<Client>((send, command, { stream }) => {
      (command as { toWritable?(stream: unknown): unknown }).toWritable?.(stream);
      return send();
    }),
  };

  it.each(Object.entries(ODD))('a layer that %s', async (_, odd) => {
    const call = (action: () => Promise<unknown>): Promise<unknown> => {
      try {
        return Promise.resolve(action());
      } catch (error) {
        return Promise.reject(error as Error);
      }
    };
    await beside(
      host,
      (log) => [odd, replacing(log)],
      async (client) => {
        const round = () =>
          outcomes([
            call(() => client.append(KEY, 'a')),
            call(() => client.get(KEY)),
            call(() => client.strlen(KEY)),
            call(() => client.getBuffer(KEY)),
          ]);
        const results = [await round(), await round()];
        await sleep(10);
        return [results, await outcomes([call(() => client.exists(KEY)), call(() => client.echo('still in step'))])];
      },
    );
  });

  const CHANGES: Record<string, Layer> = {
    'changes an argument': ODD['changes an argument'] as Layer,
    'replaces all arguments': ODD['replaces all arguments'] as Layer,
    'makes it another command': ODD['makes it another command'] as Layer,
    'assigns to what it has read before': around((send, command) => {
      const { args } = command;
      if (command.name === 'append' && command.args.length === 2) args[1] = 'ü';
      return send();
    }),
    'takes Buffers': around((send, command) => {
      Object.assign(command, { replyEncoding: null });
      return send();
    }),
    'transforms replies': around((send, command) => {
      const read = command as ReadCommand;
      const { transformReply } = read;
      if (command.name === 'get') read.transformReply = (reply) => [transformReply.call(read, reply)];
      return send();
    }),
    'maps the error of a transformer that throws': around((send, command) => {
      const returned = mapping(send).call(undefined, command);
      if (command.name === 'strlen')
        (command as ReadCommand).transformReply = () => {
          throw new RangeError('by the transformer');
        };
      return returned;
    }),
  };

  it.each(Object.entries(CHANGES))('a layer that comes between pipeline() and exec(), and %s', async (_, change) => {
    await expectAsPlain(async (kind) => {
      const client = await ready(host.create(redisUrl()));
      if (kind === 'coalesced') coalesce(client);
      await client.del(KEY, HASH, `${KEY}:other`);
      await client.hset(HASH, { a: 1 });
      const pipelines = [client.pipeline(), client.multi()].map((pipeline) =>
        pipeline.append(KEY, 'a').get(KEY).strlen(KEY).getBuffer(KEY).hgetall(HASH).incr(HASH),
      );
      const unlayered = Object.getPrototypeOf(client) as object;
      const log: unknown[] = [];
      layer(client, change, replacing(log));
      const results = await outcomes(pipelines.map((pipeline) => pipeline.exec()));
      Object.setPrototypeOf(client, unlayered);
      return [results, byEvent(log), await outcomes([client.get(KEY), client.get(`${KEY}:other`)])];
    });
  });

  it.each([
    [2, 3, 'plain'],
    [3, 2, 'plain'],
    [2, 3, 'coalesced'],
  ] as const)('a layer sends commands of a client of RESP%i to one of RESP%i, %s', async (own, others, kind) => {
    const other = await connectAs(kind, host, redisUrl(), { protocol: others } as Options);
    const toOther = around((send, command) =>
      /^z/.test(command.name) ? (other as unknown as { sendCommand: Send }).sendCommand(command) : send(),
    );
    const { results } = await beside(
      host,
      () => [toOther],
      async (client) => {
        const key = `${KEY}:sorted`;
        await client.zadd(key, 1, 'a', 2.5, 'b');
        const range = () => client.zrange(key, '0', '-1', 'WITHSCORES');
        const pipeline = client.pipeline().zrange(key, '0', '0', 'WITHSCORES');
        const results = await outcomes([range(), pipeline.exec(), range()]);
        await client.del(key);
        return results;
      },
      { protocol: own } as Options,
    );
    expect(results).toMatchObject([{ value: ['a', '1', 'b', '2.5'] }, {}, {}]);
  });

  it('a layer that swallows a command: it is never sent, and its caller waits, as on a plain client', async () => {
    const swallow = around((send, { name, promise }) => (name === 'get' ? promise : send()));
    await beside(
      host,
      () => [swallow],
      async (client) => {
        let settled = false;
        const settle = () => {
          settled = true;
        };
        client.get(KEY).then(settle, settle);
        const others = await outcomes([client.set(KEY, 'a'), client.strlen(KEY), client.echo('after')]);
        await sleep(5);
        return [settled, others];
      },
    );
  });

  it.each<[string, (log: unknown[]) => Layer[]]>([
    ['resolve and reject', (log) => [replacing(log), mapping]],
    ['reject', () => [mapping]],
  ])('layers that replace %s get the error of a reply transformer that throws', async (_, layers) => {
    const { Command: Made } = host.Redis as unknown as {
      Command: { setReplyTransformer(name: string, by: (() => never) | undefined): void };
    };
    Made.setReplyTransformer('strlen', () => {
      throw new RangeError('by the transformer');
    });
    onTestFinished(() => Made.setReplyTransformer('strlen', undefined));
    const { results } = await beside(host, layers, (client) =>
      outcomes([client.strlen(KEY), client.get(KEY), client.strlen(KEY), client.echo('in step')]),
    );
    expect(results).toMatchObject([{ error: expect.stringContaining('mapped: by the transformer') }, {}, {}, {}]);
  });

  it('a resolve that throws ends no connection: the error is uncaught, and later replies reach their callers', async () => {
    const uncaught = collectUncaught();
    const client = await ready(
      layer(
        host.create(redisUrl()),
        around((send, command) => {
          const returned = send();
          const { resolve } = command;
          command.resolve = (reply) => {
            resolve(reply);
            if (command.name === 'get') throw new Error('of a tracer');
          };
          return returned;
        }),
      ),
    );
    coalesce(client);
    await client.echo('warm');
    expect(await Promise.all([client.get(`${prefix}none`), client.echo('a'), client.exists(`${prefix}none`)])).toEqual([
      null,
      'a',
      0,
    ]);
    await until(() => uncaught.length === 1, 'the error');
    expect(uncaught[0]?.message).toBe('of a tracer');
  });

  it('a layer sees of commands what it sees of a plain client', async () => {
    const seeing = (log: unknown[]): Layer =>
      around((send, command) => {
        const { name, isReadOnly, inTransaction, getSlot } = command as Command & Record<string, unknown>;
        log.push([name, isReadOnly, inTransaction, (getSlot as () => unknown).call(command)]);
        const returned = send();
        const { resolve } = command;
        command.resolve = (reply) => {
          const result = resolve(reply);
          log.push([name, result === command.promise]);
          return result;
        };
        return returned;
      });
    await beside(
      host,
      (log) => [seeing(log)],
      async (client) => {
        client.defineCommand('reads', { numberOfKeys: 1, lua: 'return KEYS[1]', readOnly: true });
        client.defineCommand('keyless', { numberOfKeys: 0, lua: 'return ARGV[1]' });
        const { reads, keyless } = client as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
        return outcomes([
          client.get(KEY),
          client.set(KEY, 1),
          client.echo('x'),
          client.ping(),
          client.mget(KEY, HASH),
          client.call('GET', KEY),
          reads?.call(client, KEY) as Promise<unknown>,
          keyless?.call(client, 'x') as Promise<unknown>,
        ]);
      },
    );
  });

  it('a layer that comes before a command is sent again may read it', async () => {
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      const client = await ready(layer(host.create(proxy.url, { retryStrategy: () => 1 })));
      if (kind === 'coalesced') coalesce(client);
      await client.echo('warm');
      const lost = proxy.loseRequests('last');
      const replies = [client.get(KEY), client.pipeline().getBuffer(KEY).exec(), client.echo('last')];
      const log: unknown[] = [];
      const reading = around((send, command) => {
        const read = command as ReadCommand;
        const { name, args, replyEncoding } = read;
        if (/^(get|echo)/.test(name))
          log.push([name, args, replyEncoding, read.getKeys(), read.transformReply(Buffer.from('é'))]);
        return send();
      });
      const prototype = Object.getPrototypeOf(client) as { sendCommand: Send };
      Object.defineProperty(prototype, 'sendCommand', { value: reading(prototype.sendCommand), configurable: true });
      await lost;
      const found = await outcomesWithin(LONG_ENOUGH, replies);
      Reflect.deleteProperty(prototype, 'sendCommand');
      return [found, log];
    });
  });

  it('a command that timed out is rejected through the layers, and its late reply reaches no caller', async () => {
    const run = async (kind: 'plain' | 'coalesced') => {
      const proxy = await startProxy(redisUrl());
      const log: unknown[] = [];
      const client = await ready(layer(host.create(proxy.url), replacing(log)));
      if (kind === 'coalesced') coalesce(client);
      await client.echo('warm');
      log.length = 0;
      proxy.stall();
      const options = client.options as { commandTimeout: number | undefined };
      options.commandTimeout = 30;
      const results = await outcomes([client.get(KEY), client.strlen(KEY)]);
      options.commandTimeout = undefined;
      proxy.resume();
      return { results, log: [...log], later: await client.echo('later'), after: log };
    };
    const plain = await run('plain');
    expect(plain.log.filter((line) => JSON.stringify(line).includes('timed out'))).toHaveLength(2);
    expect(await run('coalesced')).toEqual(plain);
  });

  it('commands that time out together are all rejected, although the reject of a layer throws', async () => {
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      const throwing = around((send, command) => {
        const returned = send();
        const { reject } = command;
        command.reject = (error) => {
          reject.call(command, error);
          if (error.message.includes('timed out')) throw new Error(`by the layer of ${command.name}`);
        };
        return returned;
      });
      const client = await ready(layer(host.create(proxy.url), throwing));
      if (kind === 'coalesced') coalesce(client);
      await client.echo('warm');
      const uncaught = collectUncaught();
      proxy.stall();
      const options = client.options as { commandTimeout: number | undefined };
      options.commandTimeout = 30;
      const results = await outcomesWithin(LONG_ENOUGH, [client.get(KEY), client.strlen(KEY)]);
      options.commandTimeout = undefined;
      await until(() => uncaught.length === 2, 'both errors to surface');
      proxy.resume();
      return [results, uncaught.map(({ message }) => message), await client.echo('later')];
    });
  });

  it('a recorded command that timed out is rejected through layers that came before exec()', async () => {
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      const log: unknown[] = [];
      const client = await ready(host.create(proxy.url));
      if (kind === 'coalesced') coalesce(client);
      await warm(client);
      const pipelines = [client.pipeline(), client.multi()].map((pipeline) => pipeline.get(KEY).strlen(KEY));
      layer(client, replacing(log));
      // EXEC is the host's command, and may time out before those recorded here.
      const seen = () => log.map((line) => JSON.stringify(line)).sort();
      proxy.stall();
      const options = client.options as { commandTimeout: number | undefined };
      options.commandTimeout = 30;
      const results = await outcomes(pipelines.map((pipeline) => pipeline.exec()));
      options.commandTimeout = undefined;
      const timed = seen();
      expect(timed.filter((line) => line.includes('timed out'))).toHaveLength(6);
      proxy.resume();
      return [results, timed, await client.echo('later'), seen()];
    });
  });

  it.each<[string, Options, (proxy: Awaited<ReturnType<typeof startProxy>>, client: Client) => void]>([
    ['sent again after a reconnect', { retryStrategy: () => 5 }, (proxy) => proxy.reset()],
    ['rejected with the connection', { retryStrategy: () => null }, (proxy) => proxy.reset()],
    [
      'flushed',
      {},
      (proxy, client) => {
        (client as unknown as { flushQueue(error: Error): void }).flushQueue(new Error('flushed'));
        proxy.reset();
      },
    ],
    [
      'in flight while coalescing is switched off',
      {},
      (_, client) => (client as Client & Partial<Pick<CoalescedClient, 'coalescer'>>).coalescer?.detach(),
    ],
  ])('commands that are %s settle through the layers', async (_, options, fault) => {
    const run = async (kind: 'plain' | 'coalesced') => {
      const proxy = await startProxy(redisUrl());
      const log: unknown[] = [];
      const client = await ready(layer(host.create(proxy.url, options), replacing(log), following(log)));
      if (kind === 'coalesced') coalesce(client);
      await client.set(KEY, 'value');
      log.length = 0;
      proxy.stall();
      const replies = outcomes([client.get(KEY), client.hgetall(HASH), client.getBuffer(KEY), client.echo('marked')]);
      await until(() => proxy.received().includes('marked'), 'the commands to be on the wire');
      fault(proxy, client);
      proxy.resume();
      const results = await replies;
      if (client.status === 'end') return { results, log: byEvent(log) };
      await ready(client);
      return {
        results,
        log: byEvent(log.filter((line) => !['info', 'client', 'hello'].includes((line as string[])[1] as string))),
        more: await client.get(KEY),
      };
    };
    const plain = await run('plain');
    expect(Object.values(plain.log).flat().length).toBeGreaterThan(7);
    expect(await run('coalesced')).toEqual(plain);
  });

  it.each([{}, { maxInFlight: 2 }, { fastPath: false }])(
    'SELECTs come between pipelines sent again, %j',
    async (options) => {
      const later = around(async (send) => {
        await null;
        return send();
      });
      const run = async (kind: 'plain' | 'coalesced') => {
        const proxy = await startProxy(redisUrl());
        const client = await ready(layer(host.create(proxy.url, { retryStrategy: () => 5 }), later));
        if (kind === 'coalesced') coalesce(client, options);
        const errors: unknown[] = [];
        client.on('error', (error) => errors.push(error));
        // Host: before each command that it sends again it asks which database is selected, and the layer has not sent
        // SELECT yet.
        await client.select(1);
        await client.del(KEY);
        const replies = outcomesWithin(LONG_ENOUGH, [
          client.strlen(`${KEY}:first`),
          client.multi().set(KEY, 5).get(KEY).exec(),
          client.incr(KEY),
          client.multi().set(KEY, 7).get(KEY).exec(),
          client.get(KEY),
        ]);
        await proxy.loseRequests(`${KEY}:first`);
        const results = [await replies];
        for (let round = 0; round < 2; round += 1) {
          const pipeline = client.pipeline().incr(KEY).get(KEY);
          results.push(await outcomesWithin(LONG_ENOUGH, [client.get(KEY), pipeline.exec(), client.hgetall(HASH)]));
        }
        const { coalescer } = client as CoalescedClient;
        if (kind === 'coalesced' && !('fastPath' in options))
          expect(coalescer.stats().fallbacks.downgraded).toBeGreaterThan(0);
        return { results, errors };
      };
      const plain = await run('plain');
      const lastExec = [
        [null, 'OK'],
        [null, '7'],
      ];
      expect(plain.results[0]?.slice(-2)).toEqual([{ value: lastExec }, { value: '7' }]);
      expect(await run('coalesced')).toEqual(plain);
    },
  );

  it('a layer that delays the last command of a pipeline: replies that come meanwhile are read', async () => {
    const delay = around(async (send, { name }) => {
      await (name === 'exec' ? sleep(20) : null);
      return send();
    });
    const { stats } = await beside(
      host,
      () => [delay],
      async (client) => {
        const early = outcomes([client.strlen(KEY), client.multi().set(KEY, 5).get(KEY).exec()]);
        return [await early, await outcomes([client.incr(KEY), client.get(KEY)])];
      },
    );
    expect(stats.fallbacks.downgraded).toBe(0);
  });

  it('reconnectOnError 2 sends a command again through the layers', async () => {
    const run = async (kind: 'plain' | 'coalesced') => {
      const log: unknown[] = [];
      let errors = 0;
      const reconnectOnError = (error: Error) => (error.message.includes('WRONGTYPE') && errors++ === 0 ? 2 : false);
      const client = await ready(
        layer(host.create(redisUrl(), { reconnectOnError, retryStrategy: () => 5 }), replacing(log)),
      );
      if (kind === 'coalesced') coalesce(client);
      await client.set(KEY, 'value');
      log.length = 0;
      const results = await outcomes([client.hgetall(KEY), client.get(KEY)]);
      return { results, errors, log: log.filter((line) => /hgetall/.test(JSON.stringify(line))) };
    };
    const plain = await run('plain');
    expect(plain.errors).toBe(2);
    expect(await run('coalesced')).toEqual(plain);
  });

  it('callbacks, an open MULTI, maxInFlight and shareReads', async () => {
    const { stats } = await beside(
      host,
      (log) => [replacing(log), following(log)],
      async (client, log) => {
        const called = new Promise((resolve) => {
          client.get(KEY, (error, value) => {
            log.push(['callback', error, value]);
            resolve(value);
          });
        });
        const open = outcomes([
          client.multi({ pipeline: false }) as unknown as Promise<unknown>,
          client.set(KEY, 'a'),
          client.hgetall(HASH),
          client.exec() as Promise<unknown>,
        ]);
        const many = outcomes(Array.from({ length: 30 }, (_, index) => client.setrange(KEY, index, 'ä')));
        const shared = outcomes([client.get(KEY), client.get(KEY), client.append(KEY, 'b'), client.get(KEY)]);
        return [await called, await open, await many, await shared];
      },
      {},
      { maxInFlight: 4, shareReads: true },
    );
    expect(stats.fallbacks.patched).toBe(1);
    expect(stats.sharedReads).toBe(0);
  });

  it('a command can be read, copied, derived from and wrapped, as a plain one', async () => {
    const { Command: Made } = host.Redis as unknown as {
      Command: new (name: string, args: unknown[], options: object) => Command;
    };
    const using = (change: (command: ReadCommand, log: unknown[]) => Command) => (log: unknown[]) => [
      (original: Send): Send =>
        function (command, ...rest) {
          return original.call(this, change(command as ReadCommand, log), ...rest);
        },
    ];
    const layers = [
      using((command, log) => {
        log.push(['keys', command.getKeys(), command.replyEncoding]);
        return command;
      }),
      using((command, log) => {
        const { name, isResolved } = { ...command } as ReadCommand & { isResolved: boolean };
        log.push(['copy', name, isResolved]);
        const settled = () =>
          log.push(['settled', name, (command as typeof command & { isResolved: boolean }).isResolved]);
        command.promise.then(settled, settled);
        return command;
      }),
      using(({ name, args, replyEncoding }) => new Made(name, args, { replyEncoding })),
      using((command) => Object.create(command) as Command),
      using((command) => new Proxy(command, {})),
      using((command) => {
        const { transformReply } = command;
        command.transformReply = (reply) => [transformReply.call(command, reply)];
        return command;
      }),
      using((command) => Object.assign(command, { replyEncoding: null })),
      using((command, log) => {
        const { resolve } = command;
        command.resolve = (reply) => {
          log.push(['value', command.transformReply(reply)]);
          return resolve.call(command, reply);
        };
        return command;
      }),
    ];
    const play: Play = (client) =>
      outcomes([
        client.set(KEY, 'text'),
        client.get(KEY),
        client.getBuffer(KEY),
        client.incr(KEY),
        client.hset(HASH, { a: 1, b: 'ü' }),
        client.hgetall(HASH),
        client.mget([KEY, `${prefix}none`]),
      ]);
    for (const each of layers) await beside(host, each, play);
  });

  it('a write below layers comes between two reads that would share a reply', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { shareReads: true }));
    await client.set(KEY, 'old');
    await client.set(KEY, 'old');
    const unlayered = Object.getPrototypeOf(client) as object;
    const before = client.get(KEY);
    layer(client, replacing([]));
    const written = client.set(KEY, 'new');
    Object.setPrototypeOf(client, unlayered);
    expect(await Promise.all([before, written, client.get(KEY)])).toEqual(['old', 'OK', 'new']);
    expect(client.coalescer.stats().observedCommands).toBe(1);
  });

  it('a stub on the client itself gets commands of the host', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const stub = (command: Command) => Promise.resolve(command.constructor.name);
    (client as unknown as { sendCommand: unknown }).sendCommand = stub;
    expect(await client.get(KEY)).toBe('Command');
    expect(client.coalescer.stats().fallbacks.patched).toBe(1);
  });
});

it.each(EACH_HOST)(
  'a layer that replaces resolve amid the reply gets all of it, $hostName, RESP$protocol',
  async (options) => {
    await expectAsPlain(async (kind) => {
      const { client, socket } = await connectFake(options);
      let last: Command | undefined;
      layer(
        client,
        (original) =>
          function (command, ...rest) {
            last = command;
            return original.call(this, command, ...rest);
          },
      );
      const coalescer = kind === 'coalesced' ? coalesce(client).coalescer : undefined;
      const warm = client.echo('warm');
      await turn();
      socket.feed('$4\r\nwarm\r\n');
      await warm;
      const value = client.get(KEY);
      await turn();
      socket.feed('$11\r\nof two');
      const { resolve } = last as unknown as Command;
      const seen: unknown[] = [];
      (last as unknown as Command).resolve = (reply) => {
        seen.push(reply);
        return resolve(Buffer.from('replaced'));
      };
      socket.feed(' ends\r\n');
      seen.push(await value);
      if (coalescer !== undefined) expect(coalescer.stats().observedCommands).toBe(1);
      client.disconnect();
      return seen;
    });
  },
);
