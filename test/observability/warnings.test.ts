import { CODES, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Client, type CoalescedClient, ioredis6, ready, sleep, until } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings(CODES.UNKNOWN_CLIENT, CODES.AUTO_PIPELINING, CODES.BLOCKING);

const prefix = uniquePrefix('warnings');

type Warning = Error & { readonly code?: string };
let warnings: Warning[] = [];
const onWarning = (warning: Warning) => void warnings.push(warning);

beforeAll(() => void process.on('warning', onWarning));
afterAll(() => void process.off('warning', onWarning));
afterEach(() => {
  warnings = [];
});

/** They are emitted in a later turn of the event loop. */
async function warned(): Promise<(string | undefined)[]> {
  await sleep(5);
  for (const { name, message } of warnings) {
    expect(name).toBe('CoalesceWarning');
    expect(message).toMatch(/^ioredis-coalesce: /);
    expect(message).not.toContain(prefix);
  }
  return warnings.map(({ code }) => code);
}

const createReady = async (...options: [object?, object?]): Promise<CoalescedClient> =>
  ready(ioredis6.createCoalesced(redisUrl(), ...options));

it('an ordinary service gets no warning', async () => {
  const client = await createReady({ keyPrefix: prefix, commandTimeout: 10_000 }, { shareReads: true });
  const subscriber = client.duplicate();
  await subscriber.subscribe('channel');
  await Promise.all(Array.from({ length: 200 }, (_, index) => client.set(`${index}`, index)));
  await Promise.all(Array.from({ length: 200 }, (_, index) => client.get(`${index}`)));
  await client.pipeline().get('1').get('2').exec();
  await client.multi().get('1').exec();
  await Promise.all([client.call('GET', '1'), client.publish('channel', 'message'), client.eval('return 1', 0)]);
  await client.unlink(...Array.from({ length: 200 }, (_, index) => `${index}`));
  client.coalescer.detach();
  await client.get('1');
  await subscriber.quit();
  expect(await warned()).toEqual([]);
});

it('unexpected internals warn once, for any number of clients', async () => {
  const odd = class extends ioredis6.Redis {
    override echo(): never {
      throw new Error('not the host’s own');
    }
  };
  const clients = [1, 2].map(() =>
    // A function says itself when turns are sent, however slow they are.
    coalesce(new odd(redisUrl(), { lazyConnect: true }) as Client, { schedule: (flush) => void setImmediate(flush) }),
  );
  expect(await warned()).toEqual([CODES.UNKNOWN_CLIENT]);
  expect(warnings[0]?.message).toContain('commander.echo was changed');
  // What it says holds: corked, and not encoded by the fast path.
  const [client] = clients as CoalescedClient[] as [CoalescedClient];
  await client.connect();
  const { batches } = client.coalescer.stats();
  await Promise.all([client.ping(), client.ping(), client.ping()]);
  expect(client.coalescer.stats()).toMatchObject({ batches: batches + 1, fastCommands: 0 });
  client.disconnect();
});

it('fastPath: false causes no warning', async () => {
  await (await createReady({}, { fastPath: false })).echo('a');
  expect(await warned()).toEqual([]);
});

it('enableAutoPipelining warns once, and says to turn the option off', async () => {
  for (const _ of ['one client', 'another']) {
    expect(await (await createReady({ enableAutoPipelining: true })).echo('a')).toBe('a');
  }
  expect(await warned()).toEqual([CODES.AUTO_PIPELINING]);
  expect(warnings[0]?.message).toContain('turn it off');
});

it('a blocking command with others behind it warns once per command name', async () => {
  const shared = await createReady();
  const streams = await createReady();
  const none = `${prefix}none`;
  const replies = [
    shared.blpop(none, 2),
    shared.get(none),
    streams.xread('BLOCK', 2_000, 'STREAMS', none, '$'),
    streams.call('ECHO', 'a'),
  ];
  await until(() => warnings.length === 2, 'a warning of each', 10_000);
  expect(await warned()).toEqual([CODES.BLOCKING, CODES.BLOCKING]);
  const messages = warnings.map(({ message }) => message).toSorted();
  expect(messages[0]).toContain('"blpop"');
  expect(messages[1]).toContain('"xread"');
  for (const message of messages) expect(message).toMatch(/a client of their own: client\.duplicate\(\)$/);
  expect(await Promise.all(replies)).toEqual([null, null, null, 'a']);

  warnings = [];
  const again = [shared.blpop(none, 2), shared.get(none)];
  // Nobody waits behind these: alone on their connection, answered in time, or not blocking at all.
  const lone = await createReady();
  const quick = await createReady();
  await quick.rpush(`${prefix}list`, 'a');
  const fine = [lone.brpop(none, 2), quick.blmove(`${prefix}list`, none, 'LEFT', 'LEFT', 2)];
  const plainReads = [quick.xread('STREAMS', none, '0'), quick.del(none)];
  await Promise.all([...again, ...fine, ...plainReads]);
  expect(await warned()).toEqual([]);
});

it('a detached client causes no warning', async () => {
  const shared = await createReady();
  const replies = [shared.brpop(`${prefix}none`, 2), shared.get(`${prefix}none`)];
  shared.coalescer.detach();
  expect(await Promise.all(replies)).toEqual([null, null]);
  expect(await warned()).toEqual([]);
});
