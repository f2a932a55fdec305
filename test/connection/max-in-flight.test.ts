import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Command } from 'ioredis';
import { type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { cold } from '../helpers/cold.js';
import { type CoalescedClient, HOSTS, ioredis6, outcomes, ready, until } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { bulk, handshake, type ScriptedServer, startScriptedServer } from '../helpers/scripted-server.js';

const prefix = uniquePrefix('in-flight');

/** A server that answers few commands at a time, as fast as a slow one. */
const slowServer = async (): Promise<ScriptedServer> =>
  startScriptedServer(
    (command) => {
      const name = command[0] as string;
      if (name === 'multi') return '+OK\r\n';
      if (name === 'exec') return '*0\r\n';
      return handshake(command) ?? bulk(command[1] ?? '');
    },
    { answersPerTurn: 3 },
  );

async function slow(options: CoalesceOptions): Promise<{ server: ScriptedServer; client: CoalescedClient }> {
  const server = await slowServer();
  const client = await ready(ioredis6.createCoalesced(server.url, { protocol: 2 }, options));
  return { server, client };
}

const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));

describe('maxInFlight', () => {
  it.each([1, 2, 10, 100])('%i: never more commands than that are on the wire, fast or cold', async (maxInFlight) => {
    const { server, client } = await slow({ maxInFlight });
    const texts = numbers(300);
    const replies = texts.map((text, index) => (index % 3 === 0 ? cold(client, 'ECHO', text) : client.echo(text)));
    expect(client.coalescer.stats()).toMatchObject({ inFlight: 300, queued: 300 - maxInFlight });
    expect(await Promise.all(replies)).toEqual(texts);
    expect(server.commands.map(([, text]) => text)).toEqual(texts);
    expect(server.maxUnanswered).toBeLessThanOrEqual(maxInFlight);
    expect(client.coalescer.stats()).toMatchObject({ inFlight: 0, queued: 0 });
  });

  it('a client that is coalesced amid a chunk sends the commands that waited for its replies', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { maxInFlight: 1_000 }));
    let late: Promise<string>[] | undefined;
    Command.setReplyTransformer('getrange', (reply: unknown) => {
      if (late === undefined) {
        client.coalescer.detach();
        coalesce(client, { maxInFlight: 1 });
        late = [client.echo('a'), client.echo('b')];
      }
      return reply;
    });
    try {
      await Promise.all([client.getrange(`${prefix}none`, 0, 1), client.getrange(`${prefix}none`, 0, 1)]);
      expect(await Promise.all(late ?? [])).toEqual(['a', 'b']);
    } finally {
      Reflect.deleteProperty(
        (Command as unknown as { _transformer: { reply: object } })._transformer.reply,
        'getrange',
      );
    }
  });

  it.each(['nothing', 'a layer'])(
    'limits commands that the host sends in each turn, %s over sendCommand',
    async (over) => {
      const { server, client } = await slow({ maxInFlight: 5 });
      const { sendCommand } = client;
      if (over === 'a layer') client.sendCommand = (...args) => sendCommand.apply(client, args);
      const texts = numbers(100);
      for (const _turn of [1, 2]) expect(await Promise.all(texts.map((text) => client.echo(text)))).toEqual(texts);
      expect(server.maxUnanswered).toBeLessThanOrEqual(5);
    },
  );

  it('counts commands that were in flight before coalesce()', async () => {
    const { server, client } = await slow({ maxInFlight: 10 });
    const texts = numbers(60);
    const replies: Promise<string>[] = [];
    for (const text of texts) {
      replies.push(client.echo(text));
      if (Number(text) % 4 === 0) await new Promise(setImmediate);
    }
    expect(await Promise.all(replies)).toEqual(texts);
    expect(server.maxUnanswered).toBeLessThanOrEqual(10);
  });

  it('a pipeline or transaction is sent whole; one that is larger than the limit is sent alone', async () => {
    const { server, client } = await slow({ maxInFlight: 4 });
    const seen: string[] = [];
    const tagged = (text: string) => client.echo(text).then(() => seen.push(text));
    const program: Promise<unknown>[] = [tagged('a'), tagged('b')];
    const pipeline = client.pipeline();
    for (let index = 0; index < 3; index += 1) pipeline.echo(`p${index}`);
    program.push(pipeline.exec(), tagged('c'));
    const large = client.pipeline();
    for (let index = 0; index < 12; index += 1) large.echo(`l${index}`);
    program.push(large.exec(), tagged('d'));
    await Promise.all(program);
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
    expect(server.commands.map(([, text]) => text).join(' ')).toBe(
      'a b p0 p1 p2 c l0 l1 l2 l3 l4 l5 l6 l7 l8 l9 l10 l11 d',
    );
    expect(server.maxUnanswered).toBe(12);
  });

  it('the host’s own pipeline goes at once where it fits, and alone where it is larger than the limit', async () => {
    for (const maxInFlight of [5, 8]) {
      const { client } = await slow({ maxInFlight });
      const { sendCommand } = client;
      client.sendCommand = (...args) => sendCommand.apply(client, args);
      const pipeline = client.pipeline();
      for (const text of numbers(8)) pipeline.echo(text);
      const replies = pipeline.exec();
      expect(client.coalescer.stats()).toMatchObject({ inFlight: 8, queued: 0 });
      expect(await replies).toEqual(numbers(8).map((text) => [null, text]));
    }
  });

  it('disconnect() rejects the backlog as a plain client does: its entries are in the host’s queue', async () => {
    const server = await startScriptedServer((command) => handshake(command));
    const run = async (client: ReturnType<typeof ioredis6.create>) => {
      await ready(client);
      const replies = [
        ...numbers(5).map((text) => client.echo(text)),
        cold(client, 'ECHO', 'cold'),
        client.echo('last'),
      ];
      setTimeout(() => client.disconnect(), 20);
      return outcomes(replies);
    };
    const options = { protocol: 2 as const };
    const plain = await run(ioredis6.create(server.url, options));
    expect(await run(ioredis6.createCoalesced(server.url, options, { maxInFlight: 2 }))).toEqual(plain);
    expect(plain).toHaveLength(7);
  });
});

/** Bytes of the heap that are in use, garbage excluded. */
function liveBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

describe.each(HOSTS)('$name: a burst', (host) => {
  /** `BURST_COMMANDS=1000000` is the full size. */
  const N = Number(process.env.BURST_COMMANDS ?? 200_000);

  it(`${N} commands in one tick settle in order, and the memory for them is given back`, async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    await client.set(`${prefix}burst`, 'v');
    let last = -1;
    let disorder = 0;
    const promises: Promise<void>[] = [];
    const before = liveBytes();
    for (let index = 0; index < N; index += 1) {
      const reply = index % 10 === 0 ? client.echo(String(index)) : client.get(`${prefix}burst`);
      promises.push(
        reply.then((value) => {
          if (index !== last + 1 || value !== (index % 10 === 0 ? String(index) : 'v')) disorder += 1;
          last = index;
        }),
      );
    }
    const { queued } = client.coalescer.stats();
    const grown = liveBytes() - before;
    await Promise.all(promises);
    expect(disorder).toBe(0);
    expect(last).toBe(N - 1);
    expect(queued).toBe(N - client.coalescer.options.maxInFlight);
    expect(client.coalescer.stats()).toMatchObject({ inFlight: 0, queued: 0 });
    // With the test's own promise and closures.
    expect(grown / N).toBeLessThan(1_200);
    promises.length = 0;
    await new Promise(setImmediate);
    expect((liveBytes() - before) / N).toBeLessThan(40);
    await client.del(`${prefix}burst`);
  });
});

describe('back-pressure', () => {
  it('large values beyond what the socket takes at once arrive whole and in order', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl()));
    const value = 'x'.repeat(1_000_000);
    const replies = numbers(40).map((text) => client.echo(text + value));
    const lengths = await Promise.all(replies.map(async (reply) => (await reply).slice(0, 2)));
    expect(lengths.map((text) => Number.parseInt(text, 10))).toEqual(numbers(40).map(Number));
  });

  it('the reply buffer of the server stays small under a burst', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { maxInFlight: 100 }));
    await client.set(`${prefix}big`, 'x'.repeat(10_000));
    const [id, admin] = [await client.client('ID'), await ready(ioredis6.create(redisUrl()))];
    let done = false;
    const burst = Promise.all(numbers(20_000).map(() => client.get(`${prefix}big`))).then(() => {
      done = true;
    });
    let most = 0;
    await until(() => {
      void admin.client('LIST', 'ID', id).then((line) => {
        most = Math.max(most, Number(/ tot-mem=(\d+)/.exec(String(line))?.[1] ?? 0));
      });
      return done;
    }, 'the burst to settle');
    await burst;
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThan(100 * 10_000 * 3);
    await client.del(`${prefix}big`);
  });
});
