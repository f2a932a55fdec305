import { describe, expect, it, onTestFinished } from 'vitest';
import { cold } from '../helpers/cold.js';
import { HostileProxy } from '../helpers/hostile/proxy.js';
import { seeded } from '../helpers/hostile/random.js';
import { type Client, HOSTS, outcomesWithin, ready, until } from '../helpers/hosts.js';
import { redisUrl } from '../helpers/redis.js';

/** With `autoResendUnfulfilledCommands: false` hosts forget what was in flight, and its callers wait for ever. */
describe.each(HOSTS)('$name without autoResendUnfulfilledCommands', (host) => {
  async function lose(create: (url: string) => Client): Promise<unknown> {
    const proxy = await HostileProxy.start(Number(new URL(redisUrl()).port), seeded(1));
    onTestFinished(() => proxy.close());
    const client = await ready(create(proxy.url));
    let connections = 0;
    client.on('ready', () => void connections++);
    const answered = [client.echo('before'), cold(client, 'ECHO', 'before, cold')];
    await Promise.all(answered);
    proxy.halfOpen();
    const lost = [
      client.echo('fast'),
      cold(client, 'ECHO', 'cold'),
      client.multi().echo('in a transaction').exec(),
      client.pipeline().echo('in a pipeline').exec(),
      client.echo('fast again'),
    ];
    await new Promise(setImmediate);
    proxy.reset();
    await until(() => client.status !== 'ready', 'the loss of the connection');
    const offline = [client.echo('offline'), cold(client, 'ECHO', 'offline, cold')];
    await until(() => connections === 1, 'a new connection');
    await Promise.all(offline);
    return outcomesWithin(100, [...answered, ...lost, ...offline, client.echo('after')]);
  }

  it('leaves the same promises open as a plain client, and no others', async () => {
    const options = { retryStrategy: () => 10, autoResendUnfulfilledCommands: false };
    const plain = await lose((url) => host.create(url, options));
    expect(plain).toContain('open');
    expect(await lose((url) => host.createCoalesced(url, options))).toEqual(plain);
  });
});
