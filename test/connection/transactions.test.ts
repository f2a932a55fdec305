import { describe, expect, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { type Client, HOSTS, outcomes, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('transactions');

describe.each(HOSTS)('$name: transactions', (host) => {
  /** Runs the same on both kinds of clients, on keys of its own, and expects the same. */
  const expectParity = (run: (client: Client, key: string) => Promise<unknown>): Promise<unknown> =>
    expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      const key = `${prefix}${host.name}`;
      const result = await run(client, key);
      await client.del(key, `${key}:2`);
      return result;
    });

  it('multi()…exec() works between fast commands, in every form', async () => {
    await expectParity((client, key) =>
      outcomes([
        client.set(key, '1'),
        client.multi().incr(key).get(key).set(`${key}:2`, 'é').exec(),
        client.get(`${key}:2`),
        client
          .multi([
            ['incr', key],
            ['get', key],
          ])
          .exec(),
        client.get(key),
        client.multi().getBuffer(key).hgetall(key).exec(),
        client.multi().exec(),
        client.get(key),
      ]),
    );
  });

  it('gives the errors of a plain client: a command that fails, and one that is refused when queued', async () => {
    await expectParity((client, key) =>
      outcomes([
        client.set(key, 'text'),
        client.multi().incr(key).get(key).exec(),
        client.multi().call('GET').get(key).exec(),
        client.get(key),
      ]),
    );
  });

  it('multi({ pipeline: false }) works with fast commands in between', async () => {
    const settled = await expectParity((client, key) =>
      outcomes([
        client.echo('before'),
        client.multi({ pipeline: false }),
        client.set(key, '1'),
        client.incr(key),
        client.getBuffer(key),
        client.hgetall(`${key}:2`),
        client.get(key),
        client.exec(),
        client.get(key),
      ]),
    );
    expect((settled as object[])[2]).toEqual({ value: 'QUEUED' });
  });

  it('discard() drops the queued commands', async () => {
    await expectParity((client, key) =>
      outcomes([
        client.set(key, '1'),
        client.multi({ pipeline: false }),
        client.incr(key),
        client.discard(),
        client.get(key),
        client.multi().incr(key).discard().exec(),
        client.get(key),
        client.exec(),
        client.discard(),
      ]),
    );
  });

  it('WATCH: EXEC answers null after a conflict, and runs without one', async () => {
    await expectParity(async (client, key) => {
      const other = await connectAs('coalesced', host, redisUrl());
      const first = await outcomes([client.set(key, '1'), client.watch(key), client.get(key)]);
      await other.set(key, 'changed');
      const conflict = await outcomes([client.multi().set(key, 'lost').exec(), client.get(key)]);
      const passed = await outcomes([
        client.watch(key),
        client.get(key),
        client.multi().set(key, 'won').get(key).exec(),
        client.get(key),
        client.watch(key),
        client.set(key, 'own write'),
        client.multi().set(key, 'lost').exec(),
        client.unwatch(),
        client.get(key),
      ]);
      return [first, conflict, passed];
    });
  });

  it('multi() without exec sends nothing', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const spy = spyOnSocket(client);
    const { commands } = client.coalescer.stats();
    client.multi().incr(`${prefix}never`);
    client.pipeline().incr(`${prefix}never`);
    expect(await client.get(`${prefix}never`)).toBeNull();
    expect(commandNames(spy.text())).toEqual(['get']);
    expect(client.coalescer.stats().commands).toBe(commands + 1);
  });

  it('counts the commands of a transaction and of a pipeline', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { schedule: 'immediate' }));
    const before = client.coalescer.stats();
    const pipeline = client.pipeline();
    for (let index = 0; index < 10; index += 1) pipeline.echo(index % 2 === 0 ? 'x' : Buffer.from('y'));
    await Promise.all([client.multi().echo('a').echo('b').exec(), pipeline.exec(), client.echo('fast')]);
    const after = client.coalescer.stats();
    expect(after.commands - before.commands).toBe(4 + 10 + 1);
    expect(after.fastCommands - before.fastCommands).toBe(4 + 10 + 1);
    expect(after.batches - before.batches).toBe(1);
  });
});
