import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { HOSTS, ready, sleep } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('one-write');
const keys = (count: number) => Array.from({ length: count }, (_, index) => `${prefix}none:${index}`);

describe.each(HOSTS)('$name: one write a turn', (host) => {
  it.each([
    [2, {}],
    [3, {}],
    [8, {}],
    [16, {}],
    [31, {}],
    // Without it no server counts as near, where large turns leave in parts (`parts.test.ts`).
    [50, { busyPoll: false }],
    [1_000, { busyPoll: false }],
  ])('the first Promise.all of %i GETs, and one after a pause, with %j', async (count, options) => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, options));
    const spy = spyOnSocket(client);
    await Promise.all(keys(count).map((key) => client.get(key)));
    expect(spy.writes).toHaveLength(1);
    await sleep(50);
    await Promise.all(keys(count).map((key) => client.get(key)));
    expect(spy.writes).toHaveLength(2);
  });

  it('the first Promise.all of 500 GETs: how far the server is, is not known yet', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const spy = spyOnSocket(client);
    await Promise.all(keys(500).map((key) => client.get(key)));
    expect(spy.writes).toHaveLength(1);
  });

  it('bursts of 500 with any number of lone commands between them', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { busyPoll: false }));
    const spy = spyOnSocket(client);
    for (const lone of [0, 1, 5, 20, 50]) {
      for (let number = 0; number < lone; number += 1) await client.ping();
      const before = spy.writes.length;
      await Promise.all(keys(500).map((key) => client.get(key)));
      expect(spy.writes.length - before).toBe(1);
    }
  });

  it('what the handlers of 20 sockets issue that are read in one turn', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const served: Socket[] = [];
    const handled: Promise<unknown>[] = [];
    const server = createServer((socket) => {
      served.push(socket);
      socket.on('data', () => handled.push(client.get(`${prefix}none`)));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const callers = Array.from({ length: 20 }, () => connect(port, '127.0.0.1'));
    onTestFinished(() => {
      for (const socket of [...callers, ...served]) socket.destroy();
      server.close();
    });
    await Promise.all(callers.map((caller) => once(caller, 'connect')));
    while (served.length < 20) await sleep(1);
    const spy = spyOnSocket(client);
    // All requests lie in the kernel before the loop reads the first of them.
    const requests = callers.map((caller) => new Promise<void>((resolve) => caller.write('request', () => resolve())));
    await Promise.all(requests);
    while (handled.length < 20) await sleep(1);
    await Promise.all(handled);
    expect(spy.writes).toHaveLength(1);
  });
});
