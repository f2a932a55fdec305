/** Commands around V8's longest string, 512 MiB: none of them may shift the replies of those behind it. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectAs, type Kind } from '../helpers/beside.js';
import { type Client, ioredis6, outcomesWithin, ready, sleep, until } from '../helpers/hosts.js';
import { type RedisServer, startServer } from '../helpers/redis.js';

async function server(): Promise<RedisServer> {
  const started = await startServer({ args: ['--client-query-buffer-limit', '4gb'] });
  onTestFinished(() => started.stop());
  const admin = await ready(ioredis6.create(started.url));
  await admin.mset('a', 'A', 'b', 'B');
  return started;
}

/** More than 512 MiB on the wire, of arguments that are each below every threshold. */
const HUGE: Record<string, () => unknown[]> = {
  'text beyond ASCII, fewer characters than bytes': () => Array(135_000).fill('€'.repeat(1_365)),
  'Buffers of 4 KiB': () => Array(135_000).fill(Buffer.alloc(4_096, 'x')),
  'Latin-1 text': () => Array(270_000).fill('é'.repeat(1_024)),
  'one Buffer among text beyond ASCII': () => [...Array(135_000).fill('€'.repeat(1_365)), Buffer.from('x')],
};

async function play(kind: Kind, make: () => unknown[]): Promise<unknown> {
  const { url } = await server();
  const client = await connectAs(kind, ioredis6, url);
  const issue = (send: (client: Client) => Promise<unknown>): Promise<unknown> => {
    try {
      return send(client);
    } catch (error) {
      return Promise.reject(new Error(`thrown: ${error}`));
    }
  };
  const replies = [
    client.echo('before'),
    issue((c) => c.rpush('list', ...([make()] as unknown as string[]))),
    client.get('a'),
    client.get('b'),
    client.echo('mine'),
  ];
  await Promise.race([Promise.allSettled(replies), sleep(15_000)]);
  return outcomesWithin(0, replies);
}

describe('one command of more bytes than a string can hold', () => {
  it.each(Object.keys(HUGE))('%s: is as for a plain client, and later callers get their own replies', async (title) => {
    const make = HUGE[title] as () => unknown[];
    const plain = await play('plain', make);
    expect(await play('coalesced', make)).toEqual(plain);
    expect((plain as unknown[]).slice(2)).toEqual([{ value: 'A' }, { value: 'B' }, { value: 'mine' }]);
  });

  it('ASCII, as many characters as bytes: a plain client throws, this one sends it', async () => {
    const make = () => Array(135_000).fill('x'.repeat(4_096));
    const [, thrown] = (await play('plain', make)) as unknown[];
    expect(JSON.stringify(thrown)).toContain('Invalid string length');
    const values = ['before', 135_000, 'A', 'B', 'mine'].map((value) => ({ value }));
    expect(await play('coalesced', make)).toEqual(values);
  });
});

describe('commands that wait under maxInFlight, of more bytes than a string can hold', () => {
  it.each([
    ['ASCII', 'x'.repeat(4_096)],
    ['text beyond ASCII', '€'.repeat(1_365)],
    ['Buffers', Buffer.alloc(4_096, 'x')],
  ])('%s: no call throws, and each caller gets its own reply', async (_, value) => {
    const { url, pid } = await server();
    const client = await ready(ioredis6.createCoalesced(url, {}, { maxInFlight: 8_000 }));
    process.kill(pid, 'SIGSTOP');
    const waiting = Array.from({ length: 8_000 }, () => client.get('a'));
    await sleep(10);
    const pushes = Array.from({ length: 900 }, () => client.rpush('list', ...Array<typeof value>(150).fill(value)));
    const behind = [client.get('a'), client.get('b'), client.echo('mine')];
    process.kill(pid, 'SIGCONT');
    let settled = false;
    const all = Promise.all([...waiting, ...pushes, ...behind]).finally(() => {
      settled = true;
    });
    await until(() => settled, 'all to be answered', 60_000);
    const replies = await all;
    expect(replies.slice(0, 8_000).every((reply) => reply === 'A')).toBe(true);
    expect(replies.slice(8_000, 8_900)).toEqual(Array.from({ length: 900 }, (_, index) => 150 * (index + 1)));
    expect(replies.slice(8_900)).toEqual(['A', 'B', 'mine']);
  });
});

it('one turn of more bytes than a string can hold: with the largest maxBatchBytes and maxBatchSize', async () => {
  const { url } = await server();
  const client = await ready(
    ioredis6.createCoalesced(url, {}, { maxBatchBytes: 2 ** 26, maxBatchSize: 1_000_000, maxInFlight: 1_000_000 }),
  );
  const pushes = Array.from({ length: 900 }, () => client.rpush('list', ...Array<string>(150).fill('x'.repeat(4_096))));
  const replies = await outcomesWithin(30_000, [...pushes, client.get('a'), client.get('b'), client.echo('mine')]);
  expect(replies.slice(-3)).toEqual([{ value: 'A' }, { value: 'B' }, { value: 'mine' }]);
  expect(replies[899]).toEqual({ value: 135_000 });
});
