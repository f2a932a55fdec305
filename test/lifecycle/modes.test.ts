import { once } from 'node:events';
import { cold } from '../helpers/cold.js';
import { type Client, type CoalescedClient, HOSTS, ioredis6, until } from '../helpers/hosts.js';
import {
  describeScenarios,
  type Scenarios,
  type Scene,
  scenario,
  startServerOfScenes,
} from '../helpers/lifecycle/scene.js';
import { startProxy } from '../helpers/proxy.js';

startServerOfScenes();

const subscriber = (protocol: { protocol?: 2 | 3 }): Scenarios => ({
  'commands of every kind around subscribe and unsubscribe': async ({ ready, track, mixed }) => {
    const client = await ready(protocol);
    const replies = [
      mixed(client, 'before'),
      track('subscribe', client.subscribe('a', 'b')),
      track('psubscribe', client.psubscribe('p*')),
      track('ping', client.ping()),
    ];
    await Promise.all(replies);
    await mixed(client, 'subscribed');
    await Promise.all([
      track('unsubscribe', client.unsubscribe('a', 'b')),
      track('punsubscribe', client.punsubscribe('p*')),
    ]);
    await mixed(client, 'behind');
  },

  'subscribe in the offline queue, among other commands': async ({ client, track, note, admin }) => {
    const early = client(protocol);
    early.on('message', (channel, message) => note('message', [channel, message]));
    const message = once(early, 'message');
    await Promise.all([
      track('set', early.set('k', 'v')),
      track('subscribe', early.subscribe('a')),
      track('get', early.get('k')),
    ]);
    await (await admin()).publish('a', 'hello');
    await message;
    await track('unsubscribe', early.unsubscribe('a'));
    await track('get again', early.get('k'));
  },

  'messages with contents that look like replies': async ({ ready, track, note, admin }) => {
    const client = await ready(protocol);
    const contents = ['+OK\r\n', '$-1\r\n', '*1\r\n:1\r\n', '-ERR no\r\n', '', 'message', '\r\n'];
    const received: string[] = [];
    client.on('message', (_channel, message) => received.push(message));
    await track('fast', client.set('k', 'v'));
    await track('subscribe', client.subscribe('a'));
    const other = await admin();
    await Promise.all(contents.map((text) => other.publish('a', text)));
    await until(() => received.length === contents.length, 'all messages');
    note('received', received);
    await track('unsubscribe', client.unsubscribe());
    await track('fast behind', client.get('k'));
  },

  'quit() and disconnect() in subscriber mode': async ({ ready, track, note }) => {
    const [first, second] = [
      await ready(protocol, { name: 'quits' }),
      await ready(protocol, { name: 'disconnects' }),
    ] as const;
    for (const client of [first, second]) await track('fast', client.set('k', 'v'));
    for (const client of [first, second]) await track('subscribe', client.subscribe('a'));
    await Promise.all([once(first, 'end'), track('quit', first.quit())]);
    const ended = once(second, 'end');
    second.disconnect();
    await ended;
    note('statuses', [first.status, second.status]);
    await track('behind', first.get('k'));
  },

  'a subscription refused by ACL': async ({ ready, track, admin }) => {
    await (await admin()).acl('SETUSER', 'deaf', 'on', 'nopass', '~*', 'resetchannels', '+@all');
    const client = await ready({ ...protocol, username: 'deaf', password: 'x' });
    const replies = [
      track('before', client.set('k', 'v')),
      track('subscribe', client.subscribe('a')),
      track('behind', client.get('k')),
    ];
    await Promise.all(replies);
  },
});

describeScenarios(
  'subscriber mode',
  HOSTS.filter((host) => host !== ioredis6),
  subscriber({}),
);
describeScenarios('subscriber mode, RESP2', [ioredis6], subscriber({ protocol: 2 }));
describeScenarios('subscriber mode, RESP3', [ioredis6], subscriber({ protocol: 3 }));

type Monitor = Client & { monitor(): Promise<Client> };

/** A monitor sees what goes on at the server; the lines end with the text that is waited for. */
async function watchFor(monitor: Client, { admin }: Scene, act: () => Promise<unknown>, last: string) {
  const seen: string[] = [];
  const onLine = (_time: string, args: string[]): void => void seen.push(args.join(' '));
  monitor.on('monitor', onLine);
  // Host: its status says so before the server has executed MONITOR.
  const watched = await admin();
  await until(async () => {
    await watched.echo('watched');
    return seen.length > 0;
  }, 'the monitor to begin');
  await act();
  await until(() => seen.some((line) => line.includes(last)), 'the monitor to see it');
  monitor.off('monitor', onLine);
  return seen;
}

const ownsSendCommand = (client: Client) => Object.hasOwn(client, 'sendCommand');

/** Host: a status that its own types do not name. */
const isMonitoring = (client: Client) => (client.status as string) === 'monitoring';

describeScenarios('monitor', HOSTS, {
  'monitor() of a client: lines, refusals, and the original goes on': async (scene) => {
    const { ready, track, mixed, note } = scene;
    const client = await ready();
    const monitor = await (client as Monitor).monitor();
    monitor.on('error', (error) => note('monitor error', String(error)));
    note('plain', (monitor as unknown as Partial<CoalescedClient>).coalescer === undefined);
    const seen = await watchFor(monitor, scene, () => mixed(client, 'watched'), 'GET watched:key');
    note('seen', seen.length > 8);
    await track('get on the monitor', monitor.get('k'));
    await track('call on the monitor', cold(monitor, 'GET', 'k'));
    note('override', ownsSendCommand(monitor));
    const ended = once(monitor, 'end');
    monitor.disconnect();
    await ended;
    note('override after the end', ownsSendCommand(monitor));
    await mixed(client, 'behind');
  },

  // A reset is noticed as an error or as an end.
  'a coalesced monitor: its end deletes its override of sendCommand, and it starts anew': scenario(
    { races: ['monitor: error Error/Error: read ECONNRESET'] },
    async (scene) => {
      const { client, track, note, url, ready, mixed } = scene;
      const proxy = await startProxy(url);
      const monitor = client({ monitor: true } as never, { url: proxy.url, name: 'monitor' });
      // The override is there, and the status says ready still.
      monitor.on('ready', () => void track('at ready', monitor.get('k')));
      await until(() => isMonitoring(monitor), 'the monitor');
      const other = await ready({}, { name: 'other' });
      await watchFor(monitor, scene, () => mixed(other, 'first'), 'GET first:key');
      note('override', ownsSendCommand(monitor));
      await track('get', monitor.get('k'));
      const closed = new Promise<void>((resolve) => monitor.once('close', () => resolve()));
      proxy.reset();
      await closed;
      note('override at close', ownsSendCommand(monitor));
      await until(() => isMonitoring(monitor), 'the monitor again');
      note('override again', ownsSendCommand(monitor));
      await watchFor(monitor, scene, () => mixed(other, 'second'), 'GET second:key');
      await track('get again', monitor.get('k'));
    },
  ),

  'a monitor that becomes an ordinary client is fast': async ({ client, track, note, mixed }) => {
    const monitor = client({ monitor: true } as never);
    await until(() => isMonitoring(monitor), 'the monitor');
    await track('refused', monitor.set('k', 'v'));
    const ended = once(monitor, 'end');
    monitor.disconnect();
    await ended;
    Object.assign(monitor.options, { monitor: false });
    await track('connect', monitor.connect());
    note('override', ownsSendCommand(monitor));
    await mixed(monitor, 'ordinary');
  },
});

/** Host: a method that its own types do not name. */
type BufferScripts = { evalshaBuffer(sha: string, keys: number, ...args: string[]): Promise<unknown> };

describeScenarios('commands that the server refuses', HOSTS, {
  'NOSCRIPT: evalsha of a script that is not there, and that has gone': async ({ ready, track, admin }) => {
    const client = await ready();
    const sha = await client.script('LOAD', 'return ARGV[1]');
    const other = await admin();
    const none = '0'.repeat(40);
    await Promise.all([
      track('known', client.evalsha(sha as string, 0, 'a')),
      track('unknown', client.evalsha(none, 0, 'b')),
      track('behind', client.echo('c')),
      track('in a pipeline', client.pipeline().evalsha(none, 0).echo('d').exec()),
    ]);
    await other.script('FLUSH');
    await Promise.all([
      track('gone', client.evalsha(sha as string, 0, 'e')),
      track('evalshaBuffer', (client as unknown as BufferScripts).evalshaBuffer(sha as string, 0, 'f')),
      track('behind', client.echo('g')),
    ]);
  },

  'NOSCRIPT: defined commands load themselves again': async ({ ready, track, admin }) => {
    const client = await ready();
    client.defineCommand('shout', { numberOfKeys: 1, lua: 'return redis.call("APPEND", KEYS[1], ARGV[1] .. "!")' });
    const { shout } = client as unknown as { shout(key: string, text: string): Promise<number> };
    const call = (text: string) => shout.call(client, 'k', text);
    await Promise.all([
      track('defined, first', call('a')),
      track('fast', client.append('k', '-')),
      track('defined, second', call('b')),
    ]);
    await (await admin()).script('FLUSH');
    await Promise.all([
      track('defined, third', call('c')),
      track('fast', client.append('k', '-')),
      track('defined, fourth', call('d')),
    ]);
  },

  'ACL: a command, a key, and what is inside a transaction': async ({ ready, track, admin }) => {
    await (await admin()).acl(
      'SETUSER',
      'reader',
      'on',
      'nopass',
      'resetkeys',
      '~ok:*',
      '+@all',
      '-set',
      '-@dangerous',
    );
    await (await admin()).acl('SETUSER', 'reader', '+info', '+client');
    const client = await ready({ username: 'reader', password: 'x' });
    await Promise.all([
      track('allowed', client.append('ok:k', 'v')),
      track('command denied', client.set('ok:k', 'secret')),
      track('key denied', client.get('no:k')),
      track('call denied', cold(client, 'SET', 'ok:k', 'v')),
      track('dangerous', client.keys('*')),
      track('pipeline', client.pipeline().get('no:k').get('ok:k').exec()),
      track('multi', client.multi().get('ok:k').set('ok:k', 'v').exec()),
      track('behind', client.get('ok:k')),
    ]);
  },

  'ACL: rights that are taken away while commands are in flight': async ({ ready, track, admin }) => {
    const other = await admin();
    await other.acl('SETUSER', 'fading', 'on', 'nopass', '~*', '+@all');
    const client = await ready({ username: 'fading', password: 'x' });
    await track('allowed', client.set('k', 'v'));
    await other.acl('SETUSER', 'fading', '-get');
    await Promise.all([track('denied', client.get('k')), track('still allowed', client.append('k', '!'))]);
    await other.acl('SETUSER', 'fading', '+get');
    await track('allowed again', client.get('k'));
  },

  'AUTH while connected, wrong and right': async ({ ready, track, admin }) => {
    await (await admin()).acl('SETUSER', 'late', 'on', '>right', '~*', '+get', '+echo');
    const client = await ready();
    await track('set', client.set('k', 'v'));
    // By itself: Redis 8.2 gives no reply to a wrong AUTH among other commands of one packet, from any client.
    await track('wrong', client.auth('late', 'wrong'));
    await Promise.all([
      track('still allowed', client.append('k', '!')),
      track('right', client.auth('late', 'right')),
      track('denied', client.append('k', '?')),
      track('get', client.get('k')),
    ]);
  },

  'unknown commands and wrong arity, fast and cold': async ({ ready, track }) => {
    const client = await ready();
    const get = client.get as unknown as (...args: string[]) => Promise<unknown>;
    await Promise.all([
      track('none', get.call(client)),
      track('many', get.call(client, 'a', 'b', 'c')),
      track('unknown', client.call('NOTHING', 'x')),
      track('set', client.set('k', 'v', 'NOPE' as 'NX')),
      track('behind', client.echo('x')),
    ]);
  },
});

const BLOCKING: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  blpop: (client) => client.blpop('queue', 0),
  brpoplpush: (client) => client.brpoplpush('queue', 'other', 0),
  blmove: (client) => client.blmove('queue', 'other', 'LEFT', 'RIGHT', 0),
  'call(BLPOP)': (client) => client.call('BLPOP', 'queue', '0') as Promise<unknown>,
  'xread BLOCK': (client) => client.xread('BLOCK', 0, 'STREAMS', 'stream', '$'),
};

describeScenarios('blocking commands', HOSTS, {
  ...Object.fromEntries(
    Object.entries(BLOCKING).map(([name, block]) => [
      `${name} with commands of every kind behind it`,
      async ({ ready, mixed, track, admin }: Scene) => {
        const client = await ready();
        const before = mixed(client, 'before');
        const blocked = track('blocked', block(client));
        const behind = mixed(client, 'behind');
        await before;
        const other = await admin();
        while (!/blocked_clients:[1-9]/.test(await other.info('clients')));
        await Promise.all([other.rpush('queue', 'item'), other.xadd('stream', '1-1', 'f', 'v')]);
        await Promise.all([blocked, behind]);
      },
    ]),
  ),

  'CLIENT UNBLOCK, with an error and without': async ({ ready, track, admin }) => {
    const client = await ready();
    const other = await admin();
    const id = await client.client('ID');
    for (const how of ['TIMEOUT', 'ERROR'] as const) {
      const replies = [track(`blpop, ${how}`, client.blpop('queue', 0)), track('behind', client.echo(how))];
      while ((await other.call('CLIENT', 'UNBLOCK', id, how)) === 0);
      await Promise.all(replies);
    }
  },

  'disconnect() with a blocking command in flight': async ({ ready, mixed, track }) => {
    const client = await ready();
    await mixed(client, 'before');
    const replies = [track('blpop', client.blpop('queue', 0)), track('behind', client.echo('x'))];
    const ended = once(client, 'end');
    client.disconnect();
    await Promise.all([...replies, ended]);
  },
} satisfies Scenarios);
