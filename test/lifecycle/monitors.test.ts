/** A monitor is sent the arguments of other clients, of any length: it gets no reader, whichever way it was made. */
import { Redis } from 'ioredis-coalesce';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { expect, it, onTestFinished } from 'vitest';
import { endWithTest, HOSTS, ioredis6, ready, until } from '../helpers/hosts.js';
import { startServer } from '../helpers/redis.js';

type Monitor = ReturnType<typeof ioredis6.create> & { coalescer?: { enabled: boolean } };
type Make = (url: string) => Promise<Monitor>;

/** Host: it fails on a line that shares a packet with the reply to MONITOR, such as one of a client's handshake. */
const monitorOf = async (client: Parameters<typeof ready>[0]) => (await ready(client)).monitor() as Promise<Monitor>;

const MAKERS: Readonly<Record<string, Make>> = {
  ...Object.fromEntries(
    HOSTS.flatMap((host): [string, Make][] => [
      [`${host.name}: a plain client`, (url) => monitorOf(host.create(url))],
      [`${host.name}: a coalesced client`, (url) => monitorOf(host.createCoalesced(url))],
    ]),
  ),
  'the drop-in class': (url) => monitorOf(endWithTest(new Redis(url)) as never),
  'the drop-in class, by its option': async (url) => {
    const monitor = new Redis(url, { monitor: true } as object) as unknown as Monitor;
    await until(() => (monitor.status as string) === 'monitoring', 'to monitor');
    return monitor;
  },
  'coalesce() of a monitor': async (url) => coalesce(await monitorOf(ioredis6.create(url))) as Monitor,
};

const BECOMES_ORDINARY = new Set(['the drop-in class, by its option', 'coalesce() of a monitor']);

it.each(Object.keys(MAKERS))('monitor() of %s shows commands with arguments of any length', async (title) => {
  const server = await startServer();
  onTestFinished(() => server.stop());
  const other = await ready(ioredis6.create(server.url));
  const monitor = endWithTest(await (MAKERS[title] as Make)(server.url));
  const events: string[] = [];
  const lengths: number[] = [];
  monitor.on('error', (error) => events.push(`error ${error.message}`));
  monitor.on('close', () => events.push('close'));
  monitor.on('monitor', (_time: string, args: string[]) => {
    if (args[0] === 'set') lengths.push(args[2]?.length ?? 0);
  });
  await other.set('short', 'a');
  await other.set('long', 'x'.repeat(1_200_000));
  await other.set('binary', Buffer.alloc(270_000, 1));
  await other.set('short', 'ab');
  await until(() => lengths.length === 4 || events.length > 0, 'four lines');
  expect([events, lengths]).toEqual([[], [1, 1_200_000, 1_080_000, 2]]);
  // A client that was made as a monitor may become an ordinary one; a copy that monitor() has made stays plain.
  if (!BECOMES_ORDINARY.has(title)) expect(monitor.coalescer?.enabled ?? false).toBe(false);
});
