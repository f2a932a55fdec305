/** Logs and error reports hold clients and pipelines: `JSON.stringify` and `util.inspect` of them, at any moment. */
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { connectAs, KINDS } from '../helpers/beside.js';
import { type Client, HOSTS, outcomes } from '../helpers/hosts.js';
import { redisUrl } from '../helpers/redis.js';

const SECRET = 'a password that no log may hold';

/** What plain and coalesced commands both show. */
type ShownCommand = { name: string; args: unknown[]; replyEncoding: unknown };

function commandsOf(pipeline: object): ShownCommand[] {
  const { _queue } = JSON.parse(JSON.stringify(pipeline)) as { _queue: ShownCommand[] };
  return _queue.map(({ name, args, replyEncoding }) => ({ name, args, replyEncoding }));
}

describe.each(HOSTS)('$name: shown as text', (host) => {
  it('a client with commands of every kind in flight', async () => {
    for (const kind of KINDS) {
      const client = await connectAs(kind, host, redisUrl());
      client.defineCommand('mine', { lua: 'return ARGV[1]', numberOfKeys: 0 });
      const mine = (client as unknown as { mine(text: string): Promise<unknown> }).mine;
      await mine.call(client, 'x');
      const replies = [client.get('key in flight'), client.call('GET', 'a'), mine.call(client, 'text in flight')];
      replies.push(client.mgetBuffer('a', 'b'), client.config('GET', 'nothing'));
      const text = JSON.stringify({ error: new Error('lost'), client });
      expect(text).toContain('key in flight');
      expect(text).toContain('text in flight');
      expect(inspect(client, { depth: 10 })).toContain('key in flight');
      await outcomes(replies);
    }
  });

  it.each(['pipeline', 'multi'] as const)('a %s as a plain one: recorded, sent and answered', async (form) => {
    const shown: ShownCommand[][][] = [];
    for (const kind of KINDS) {
      const client = await connectAs(kind, host, redisUrl());
      const pipeline = client[form]().get('a').set('b', 'é', 'EX', 10).getBuffer('c').hset('h', { f: 1 });
      const recorded = commandsOf(pipeline);
      const executed = pipeline.exec();
      // A plain client cannot show it before it is answered.
      if (kind === 'coalesced') expect(commandsOf(pipeline).length).toBe(form === 'multi' ? 6 : 4);
      if (kind === 'coalesced') expect(JSON.stringify(client)).toContain('"args":["a"]');
      inspect({ pipeline, client }, { depth: 10, showHidden: true });
      await executed;
      shown.push([recorded, commandsOf(pipeline)]);
    }
    expect(shown[1]).toEqual(shown[0]);
  });

  it('a command in flight shows no password, nor the options that hold it', async () => {
    const client = await connectAs('coalesced', host, redisUrl());
    client.options.password = SECRET;
    const pipeline = client.pipeline().get('a');
    const executed = [client.get('a'), pipeline.exec()];
    const { commandQueue } = client as unknown as { commandQueue: { toArray(): object[] } };
    const texts = commandQueue
      .toArray()
      .flatMap((command) => [inspect(command, { depth: 9 }), JSON.stringify(command)]);
    texts.push(inspect((client as Client & { coalescer: object }).coalescer, { depth: 9 }));
    await Promise.all(executed);
    expect(texts.join('\n')).not.toContain(SECRET);
    expect(texts.join('\n')).toContain('get');
  });
});
