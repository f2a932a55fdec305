import { afterEach, expect, it, vi } from 'vitest';
import { cold } from '../helpers/cold.js';
import { HOSTS, ioredis6, ready, sleep, until } from '../helpers/hosts.js';
import { describeScenarios, startServerOfScenes } from '../helpers/lifecycle/scene.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl } from '../helpers/redis.js';

startServerOfScenes();

/** As `vi.useFakeTimers()` has it by default, with what the server's side of a test needs left real. */
const CLIENTS_CLOCK = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] as const;

afterEach(() => {
  vi.useRealTimers();
});

describeScenarios('under a fake clock', HOSTS, {
  'commands are sent and answered without its being turned': async ({ ready, mixed }) => {
    const client = await ready();
    vi.useFakeTimers();
    await mixed(client, 'fake');
    vi.useRealTimers();
    await mixed(client, 'real');
  },

  'a client made under it connects': async ({ client, mixed }) => {
    vi.useFakeTimers({ toFake: [...CLIENTS_CLOCK] });
    const early = client();
    await mixed(early, 'early');
    await mixed(early, 'online');
    vi.useRealTimers();
  },

  'it reconnects when it is turned, and not before': async ({ ready, track, note, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({ retryStrategy: () => 60_000 }, { url: proxy.url });
    vi.useFakeTimers({ toFake: [...CLIENTS_CLOCK] });
    proxy.reset();
    await new Promise((resolve) => client.once('reconnecting', resolve));
    const replies = [track('set', client.set('k', 'v')), track('call', cold(client, 'APPEND', 'k', '!'))];
    vi.advanceTimersByTime(59_999);
    note('connections', proxy.connections);
    vi.advanceTimersByTime(1);
    await Promise.all(replies);
    note('connections', proxy.connections);
    await track('fast', client.append('k', '?'));
    vi.useRealTimers();
  },

  'commandTimeout runs by it': async ({ ready, track, note, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({ commandTimeout: 30_000 }, { url: proxy.url });
    await track('fast', client.set('k', 'v'));
    proxy.stall();
    vi.useFakeTimers({ toFake: [...CLIENTS_CLOCK] });
    const replies = [track('get', client.get('k')), track('call', cold(client, 'GET', 'k'))];
    await until(() => proxy.received().split('\r\nk\r\n').length > 3, 'the commands to be on the wire');
    let settled = 0;
    for (const reply of replies) void reply.then(() => (settled += 1));
    vi.advanceTimersByTime(29_999);
    await sleep(5);
    note('settled too early', settled);
    vi.advanceTimersByTime(1);
    await Promise.all(replies);
    vi.useRealTimers();
    proxy.resume();
    await track('behind', client.get('k'));
  },

  'the real clock comes back while commands are on their way': async ({ ready, track }) => {
    const client = await ready({ commandTimeout: 30_000 });
    vi.useFakeTimers();
    const replies = [track('set', client.set('k', 'v')), track('call', cold(client, 'APPEND', 'k', '!'))];
    vi.useRealTimers();
    replies.push(track('get', client.get('k')));
    await Promise.all(replies);
  },
});

it('a copy that is loaded under the fake timers of Vitest sends commands all the same', async () => {
  vi.useFakeTimers();
  vi.resetModules();
  const { coalesce } = await import('../../src/coalesce.js');
  const client = coalesce(ioredis6.create(redisUrl()));
  const replies = Array.from({ length: 20 }, (_, index) => client.echo(String(index)));
  expect(await Promise.all(replies)).toEqual(Array.from({ length: 20 }, (_, index) => String(index)));
  vi.useRealTimers();
  expect(await Promise.all([client.echo('real'), (await ready(client)).echo('too')])).toEqual(['real', 'too']);
});
