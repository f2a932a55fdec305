/** `CLIENT REPLY OFF`: no reply will make room for the backlog of `maxInFlight`. */
import { describe, expect, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { type Client, HOSTS, ioredis6, outcomesWithin, ready, sleep, until } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { share } from '../helpers/share.js';

const COMMANDS = 300;

function uniqueKeys(): string[] {
  const prefix = uniquePrefix('no-replies');
  return Array.from({ length: COMMANDS }, (_, index) => `${prefix}${index}`);
}

/** How many of the keys exist, as soon as all do. */
async function stored(keys: readonly string[]): Promise<number> {
  const admin = await ready(ioredis6.create(redisUrl()));
  await until(async () => (await admin.exists(...keys)) === COMMANDS, 'all writes to be stored');
  return admin.del(...keys);
}

const SILENCED: Record<string, (client: Client) => Promise<unknown>> = {
  "client('REPLY', 'OFF')": (c) => c.client('REPLY', 'OFF'),
  "client('reply', Buffer 'off')": (c) => c.client('reply' as never, Buffer.from('off') as never),
  "call('CLIENT', 'REPLY', 'OFF')": (c) => c.call('CLIENT', 'REPLY', 'OFF'),
  "call('client', ['reply', 'off'])": (c) => c.call('client', ['reply', 'off']),
  'in a pipeline': (c) => c.pipeline().call('CLIENT', 'REPLY', 'OFF').exec(),
  'behind others in a pipeline': (c) => c.pipeline().echo('x').client('REPLY', 'OFF').exec(),
};

describe.each(HOSTS)('$name: CLIENT REPLY OFF, then more commands than maxInFlight', (host) => {
  it.each(share(Object.keys(SILENCED), 2))('%s: all is stored, and quit() ends the connection', async (title) => {
    const plain = await expectAsPlain(async (kind) => {
      const keys = uniqueKeys();
      const client = await connectAs(kind, host, redisUrl(), { retryStrategy: null as never }, { maxInFlight: 50 });
      SILENCED[title]?.(client).catch(() => {});
      const replies: Promise<unknown>[] = [];
      for (const [index, key] of keys.entries()) {
        // Over several turns, fast and cold.
        if (index % 40 === 0) await sleep(0);
        replies.push(index % 7 === 0 ? client.call('SET', key, 'v') : client.set(key, 'v'));
      }
      const settled = outcomesWithin(200, [...replies, client.quit()]);
      return { stored: await stored(keys), replies: await settled, status: client.status };
    });
    expect(plain.stored).toBe(COMMANDS);
  });

  it('replies that are switched on again answer the head of the queue, and make room again', async () => {
    await expectAsPlain(async (kind) => {
      const [key = ''] = uniqueKeys();
      const client = await connectAs(kind, host, redisUrl(), {}, { maxInFlight: 50 });
      const silenced = [client.client('REPLY', 'OFF'), ...Array.from({ length: 100 }, () => client.set(key, 'v'))];
      const on = Array.from({ length: 102 }, () => client.client('REPLY', 'ON'));
      const replies = await outcomesWithin(150, [...silenced, ...on]);
      return { replies, status: client.status };
    });
  });
});

describe.each(HOSTS)('$name: CLIENT REPLY SKIP under maxInFlight', (host) => {
  it('commands behind it are all sent, although fewer replies come than commands are in flight', async () => {
    const plain = await expectAsPlain((kind) => {
      const keys = uniqueKeys();
      return connectAs(kind, host, redisUrl(), {}, { maxInFlight: 2 }).then((client) => {
        for (const [index, key] of keys.entries()) {
          if (index % 3 === 0) client.client('REPLY', 'SKIP').catch(() => {});
          client.set(key, 'v').catch(() => {});
        }
        return stored(keys);
      });
    });
    expect(plain).toBe(COMMANDS);
  });
});

describe.each(HOSTS)('$name: shareReads after CLIENT REPLY', (host) => {
  it.each(['SKIP', 'OFF'])('%s: each read is sent, since the next replies are of later commands', async (mode) => {
    await expectAsPlain(async (kind) => {
      const [key = ''] = uniqueKeys();
      const client = await connectAs(kind, host, redisUrl(), {}, { shareReads: true });
      await client.set(key, 'v');
      const reads = () => [client.get(key), client.get(key), client.get(key)];
      const replies = [client.client('REPLY', mode as never), ...reads(), client.client('REPLY', 'ON'), ...reads()];
      // No sharing behind a transaction either.
      const piped = client.multi().echo('x').exec();
      replies.push(...reads(), ...['a', 'b', 'c', 'd', 'e', 'f'].map((text) => client.echo(text)));
      return outcomesWithin(80, [...replies, piped]);
    });
  });
});
