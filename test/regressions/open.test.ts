/** What a second attack found. */
import { Command } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { HOSTS, ioredis6, outcomes, outcomesAfter, ready, sleep } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('open');

describe.each(HOSTS)('$name: a schedule function that throttles', (host) => {
  it('flushes the batches of a new connection, too, although it forgets a flush while another one waits', async () => {
    const proxy = await startProxy(redisUrl());
    let waits = false;
    const schedule = (flush: () => void): void => {
      if (waits) return;
      waits = true;
      setTimeout(() => {
        waits = false;
        flush();
      }, 150);
    };
    const client = await ready(host.createCoalesced(proxy.url, { retryStrategy: () => 1 }, { schedule }));
    // Its flush is still to come when the connection is another one.
    client.echo('lost').catch(() => {});
    proxy.reset();
    await sleep(50);
    const replies = [client.echo('a')];
    await sleep(20);
    replies.push(client.echo('b'));
    expect(await outcomesAfter(800, replies)).toEqual([{ value: 'a' }, { value: 'b' }]);
  });
});

describe.each(HOSTS)('$name: shareReads and a commandTimeout that changes between two reads of a batch', (host) => {
  it.each<[string, (number | undefined)[]]>([
    ['none, then one', [undefined, 60]],
    ['one, then none', [60, undefined]],
    ['a long one, then a short one', [2_000, 60]],
    ['a short one, then a long one', [60, 2_000]],
  ])('%s: each read has its own', async (_, timeouts) => {
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      const client = await connectAs(kind, host, proxy.url, {}, { shareReads: true });
      proxy.stall();
      const replies = timeouts.map((ms) => {
        client.options.commandTimeout = ms as number;
        return client.get(`${prefix}k`);
      });
      return outcomesAfter(200, replies);
    });
  });
});

describe.each(HOSTS)('$name: shareReads in a transaction that', (host) => {
  it.each(['multi', 'MULTI'])('call(%j) in a pipeline has opened: EXEC has a reply for each command', async (name) => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), {}, { shareReads: true });
      const opened = client.pipeline().call(name).exec();
      const reads = [client.get(`${prefix}k`), client.get(`${prefix}k`), client.get(`${prefix}k`)];
      return outcomes([opened, ...reads, client.call('EXEC')]);
    });
  });

  it('was open when the client was coalesced: EXEC has a reply for each command', async () => {
    await expectAsPlain(async (kind) => {
      const client = await ready(host.create(redisUrl()));
      await client.multi({ pipeline: false });
      if (kind === 'coalesced') coalesce(client, { shareReads: true });
      // The first reply shows where replies begin; from then on commands are hot.
      const first = await client.echo('1');
      return outcomes([first, client.get(`${prefix}k`), client.get(`${prefix}k`), client.exec()] as never);
    });
  });
});

type CommandClass = {
  setArgumentTransformer(name: string, transform: (args: unknown[]) => unknown[]): void;
  readonly _transformer: { readonly argument: Record<string, unknown> };
};

describe('arguments that are made only once', () => {
  it('a transformer that returns the same array each time: what was in it at the call is sent', async () => {
    const commandClass = Command as unknown as CommandClass;
    const kept: unknown[] = [];
    commandClass.setArgumentTransformer('set', (given) => {
      kept.splice(0, kept.length, ...given);
      return kept;
    });
    onTestFinished(() => {
      Reflect.deleteProperty(commandClass._transformer.argument, 'set');
    });
    const keys = ['a', 'b', 'c'].map((name) => `${prefix}kept:${name}`);
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, ioredis6, redisUrl(), {}, { schedule: 'immediate' });
      await client.del(...keys);
      // The last of them makes the batch be encoded anew, from what is kept of each.
      const replies = keys.map((key, index) => client.set(key, index === 2 ? '€' : `${index}`));
      return outcomes([...replies, ...keys.map((key) => client.get(key))]);
    });
  });

  it('an array with a getter that sends the same command: each sends its own arguments', async () => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, ioredis6, redisUrl());
      const hset = client.hset as (...args: unknown[]) => Promise<unknown>;
      await client.del(`${prefix}outer`, `${prefix}nested`);
      let reads = 0;
      const nested: Promise<unknown>[] = [];
      const fields = Object.defineProperty(['field', '', 'flag', true], 1, {
        get() {
          reads += 1;
          nested.push(hset.call(client, `${prefix}nested`, `field ${reads}`, 'nested'));
          return 'value';
        },
        enumerable: true,
      });
      await hset.call(client, `${prefix}outer`, fields);
      const counts = await Promise.all(nested);
      return [reads, counts, await client.hgetall(`${prefix}outer`), await client.hgetall(`${prefix}nested`)];
    });
  });
});
