import { setImmediate as turn } from 'node:timers/promises';
import { types } from 'node:util';
import { Command } from 'ioredis';
import Redis from 'ioredis-coalesce';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { UNLISTED } from '../../src/commands/fast-commands.js';
import { type Entry, variantOf } from '../../src/core/entry.js';
import { TransactionState } from '../../src/core/transaction-state.js';
import { SharedReads } from '../../src/reads/shared-reads.js';
import { CommandHeads } from '../../src/resp/encoder.js';
import { cold } from '../helpers/cold.js';
import { coalescedFake } from '../helpers/fake-connection.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

describe('SharedReads', () => {
  const get = variantOf({ ...UNLISTED, name: 'get', shareable: true }, 'utf8');
  const getBuffer = variantOf(get.command, null);
  const newEntry = (encoded: string | string[], variant = get) =>
    ({ variant, encodeAssumingAscii: () => encoded }) as unknown as Entry;
  /** Whether it follows another one; else it leads. */
  const joins = (shared: SharedReads, entry: Entry) => {
    const name = shared.nameOf(entry, entry.encodeAssumingAscii());
    if (name === undefined) return false;
    const follows = shared.follow(name, entry, undefined);
    if (!follows) shared.lead(name, entry);
    return follows;
  };

  it('makes a read follow an identical one of the same variant', () => {
    const shared = new SharedReads(new TransactionState());
    const [leader, follower] = [newEntry('get a'), newEntry('get a')];
    expect(joins(shared, leader)).toBe(false);
    expect(joins(shared, follower)).toBe(true);
    expect(leader.followers).toEqual([follower]);
    expect(joins(shared, newEntry('get b'))).toBe(false);
    expect(joins(shared, newEntry('get a', getBuffer))).toBe(false);
  });

  it('keeps text that states characters apart from text that states bytes', () => {
    const shared = new SharedReads(new TransactionState());
    const [assumed, exact] = ['*2\r\n$3\r\nget\r\n$2\r\nÃ©\r\n', ['*2\r\n$3\r\nget\r\n$2\r\nÃ©\r\n']];
    expect(joins(shared, newEntry(assumed))).toBe(false);
    expect(joins(shared, newEntry(exact))).toBe(false);
    expect(joins(shared, newEntry(assumed))).toBe(true);
    expect(joins(shared, newEntry(exact))).toBe(true);
  });
});

describe('shareReads on a connection', () => {
  it('a reply transformer that throws fails the caller whose value it was given, and no other caller', async () => {
    const { _transformer: transformers } = Command as unknown as { _transformer: { reply: Record<string, unknown> } };
    let calls = 0;
    transformers.reply.get = (value: unknown) => {
      calls += 1;
      if (calls === 1) throw new RangeError('the first');
      return value;
    };
    onTestFinished(() => void Reflect.deleteProperty(transformers.reply, 'get'));
    const { client, socket } = await coalescedFake({ shareReads: true });
    const outcomes = Promise.allSettled([client.get('k'), client.get('k'), client.get('k')]);
    await turn();
    socket.feed('$1\r\nv\r\n');
    expect(await outcomes).toEqual([
      { status: 'rejected', reason: new RangeError('the first') },
      { status: 'fulfilled', value: 'v' },
      { status: 'fulfilled', value: 'v' },
    ]);
    client.disconnect();
  });

  async function commandsOnWire(issue: (client: Redis) => void): Promise<string[]> {
    const { client, socket } = await coalescedFake({ shareReads: true });
    issue(client as unknown as Redis);
    await turn();
    client.disconnect();
    const commands = socket.written.toString().split(/\*\d+\r\n/);
    return commands.slice(1).map((command) =>
      command
        .split('\r\n')
        .filter((_, index) => index % 2 === 1)
        .join(' '),
    );
  }

  const ignore = (...promises: Promise<unknown>[]): void => {
    for (const promise of promises) promise.catch(() => {});
  };

  it('sends identical reads once', async () => {
    const sent = await commandsOnWire((c) => ignore(c.get('a'), c.get('b'), c.get('a'), c.hget('h', 'f'), c.get('b')));
    expect(sent).toEqual(['get a', 'get b', 'hget h f']);
  });

  it.each<[string, (client: Redis) => Promise<unknown>, string[]]>([
    ['a write', (c) => c.set('x', '1'), ['set x 1']],
    ['a script', (c) => c.eval('return 1', 0), ['eval return 1 0']],
    ['a command unknown to us', (c) => c.call('mymodule.touch', 'a'), ['mymodule.touch a']],
    ['a read of the host', (c) => cold(c, 'get', 'a'), ['get a']],
    ['a command that is left to the host', (c) => c.call('info'), ['info']],
    ['a random read', (c) => c.srandmember('s'), ['srandmember s']],
    ['an explicit pipeline', (c) => c.pipeline().get('y').exec(), ['get y']],
  ])('sends a read again after %s', async (_title, between, wire) => {
    const sent = await commandsOnWire((c) => ignore(c.get('a'), between(c), c.get('a'), c.get('a')));
    expect(sent).toEqual(['get a', ...wire, 'get a']);
  });

  it.each(['srandmember', 'spop', 'hrandfield', 'zrandmember'] as const)('never shares %s', async (name) => {
    expect(await commandsOnWire((c) => ignore(c[name]('s'), c[name]('s')))).toEqual([`${name} s`, `${name} s`]);
  });

  it('encodes each read once, and names it by that', async () => {
    const { client } = await coalescedFake({ shareReads: true });
    const heads = vi.spyOn(CommandHeads.prototype, 'for');
    onTestFinished(() => heads.mockRestore());
    ignore(client.get('a'), client.get('ü'), client.hget('h', 'f'));
    expect(heads).toHaveBeenCalledTimes(3);
    client.disconnect();
  });

  it('does not share between a Buffer and text of the same bytes as characters', async () => {
    const sent = await commandsOnWire((c) => ignore(c.get('ż'), c.get(Buffer.from('ż')), c.get('ż')));
    expect(new Set(sent)).toEqual(new Set(['get ż']));
  });

  it('gives each caller of a shared read its own error when the connection is lost', async () => {
    const { client } = await coalescedFake({ shareReads: true });
    const reads = [client.get('a'), client.get('a'), client.get('a')];
    client.disconnect();
    const settled = await Promise.allSettled(reads);
    const errors = settled.map((result) => (result.status === 'rejected' ? (result.reason as Error) : undefined));
    expect(errors.map((error) => error?.message)).toEqual(Array(3).fill('Connection is closed.'));
    expect(new Set(errors).size).toBe(3);
  });

  it.each(['whole', 'cut'])(
    'gives each caller of a shared read the reply, or an error of its own (%s)',
    async (way) => {
      const { client, socket } = await coalescedFake({ shareReads: true });
      const texts = [client.get('a'), client.get('a')];
      const buffers = [client.getBuffer('a'), client.getBuffer('a'), client.getBuffer('a')];
      const objects = [client.hgetall('h'), client.hgetall('h')];
      const errors = [client.llen('s'), client.llen('s')];
      await turn();
      const bytes = Buffer.from('$1\r\nx\r\n$1\r\nx\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n-WRONGTYPE wrong\r\n');
      for (const chunk of way === 'whole' ? [bytes] : Array.from(bytes, (byte) => Buffer.from([byte])))
        socket.feed(chunk);
      expect(await Promise.all(texts)).toEqual(['x', 'x']);
      const [first, ...others] = await Promise.all(buffers);
      first?.fill('-');
      expect(others).toEqual([Buffer.from('x'), Buffer.from('x')]);
      const [one, two] = await Promise.all(objects);
      expect([one, two]).toEqual([{ f: 'v' }, { f: 'v' }]);
      expect(one).not.toBe(two);
      const reasons = (await Promise.allSettled(errors)).map(
        (result) => (result as PromiseRejectedResult).reason as Error,
      );
      expect(reasons.map(({ message }) => message)).toEqual(['WRONGTYPE wrong', 'WRONGTYPE wrong']);
      expect(reasons[0]).not.toBe(reasons[1]);
      expect(Object.getPrototypeOf(reasons[0])).toBe(Object.getPrototypeOf(reasons[1]));
      client.disconnect();
    },
  );
});

describe.each([2, 3] as const)('shareReads on a server, RESP%i', (protocol) => {
  const prefix = uniquePrefix('shared-reads');
  let redis: Redis;

  beforeAll(() => {
    redis = new Redis(redisUrl(), { protocol, keyPrefix: prefix, coalesce: { shareReads: true } });
  });
  beforeEach(async () => {
    await redis.ping();
    await redis.set('key', 'value');
    await redis.hset('hash', { a: '1', b: '2' });
  });
  afterAll(async () => {
    await redis.del('key', 'hash', 'counter');
    await redis.quit();
  });

  it('answers a burst of identical reads with one reply', async () => {
    const before = redis.coalescer.stats();
    const values = await Promise.all(Array.from({ length: 100 }, () => redis.get('key')));
    expect(values).toEqual(Array(100).fill('value'));
    const after = redis.coalescer.stats();
    expect(after.sharedReads - before.sharedReads).toBe(99);
    expect(after.commands - before.commands).toBe(1);
  });

  it('never answers a read with a reply from before a write that was issued in between', async () => {
    const answers: unknown[] = [];
    const writes: Promise<unknown>[] = [];
    for (let index = 0; index < 50; index += 1) {
      writes.push(redis.set('counter', index));
      answers.push(redis.get('counter'), redis.get('counter'));
      if (index % 5 === 0)
        writes.push(cold(redis, 'append', 'counter', '!'), redis.multi().append('counter', '?').exec());
      answers.push(redis.get('counter'));
    }
    await Promise.all(writes);
    const expected = Array.from({ length: 50 }, (_, index) => [
      `${index}`,
      `${index}`,
      index % 5 ? `${index}` : `${index}!?`,
    ]);
    expect(await Promise.all(answers)).toEqual(expected.flat());
  });

  it("each caller's error is about its own command, with the key as it was given", async () => {
    const client = new Redis(redisUrl(), { protocol, coalesce: { shareReads: true } });
    const key = `${prefix}é`;
    await client.ping();
    // Behind text that is not ASCII, text is encoded as bytes are, and shares with them.
    await client.rpush(key, 'é');
    const keys = [key, Buffer.from(key), key];
    const found = await Promise.allSettled(keys.map((each) => client.get(each)));
    const commands = found.map((one) => ((one as PromiseRejectedResult).reason as { command: unknown }).command);
    expect(commands).toEqual(keys.map((each) => ({ name: 'get', args: [each] })));
    expect(client.coalescer.stats().sharedReads).toBe(2);
    await client.del(key);
    await client.quit();
  });

  it('gives each caller of a shared read its own error or object', async () => {
    const wrong = await Promise.allSettled([redis.llen('key'), redis.llen('key')]);
    for (const result of wrong) {
      expect(result).toMatchObject({ status: 'rejected', reason: { name: 'ReplyError', command: { name: 'llen' } } });
      const { reason } = result as PromiseRejectedResult;
      expect(types.isNativeError(reason)).toBe(true);
      expect(reason.stack).toContain('WRONGTYPE');
      expect(Object.keys(reason)).toEqual(['command']);
      expect(structuredClone(reason).message).toBe(reason.message);
    }
    const [first, second] = wrong.map((result) => (result as PromiseRejectedResult).reason as Error);
    expect(second).not.toBe(first);
    // Where the reply was decoded, as in a plain client's errors.
    expect(second?.stack).toBe(first?.stack);
    const [one, two] = await Promise.all([redis.hgetall('hash'), redis.hgetall('hash')]);
    expect([one, two]).toEqual([
      { a: '1', b: '2' },
      { a: '1', b: '2' },
    ]);
    expect(one).not.toBe(two);
  });
});
