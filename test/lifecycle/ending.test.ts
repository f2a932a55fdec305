import { setImmediate as turn } from 'node:timers/promises';
import { cold } from '../helpers/cold.js';
import { type Client, HOSTS, ioredis6, until } from '../helpers/hosts.js';
import {
  describeScenarios,
  type Scenario,
  type Scene,
  scenario,
  startServerOfScenes,
} from '../helpers/lifecycle/scene.js';
import { startProxy } from '../helpers/proxy.js';

startServerOfScenes();

const ENDINGS: Readonly<Record<string, (client: Client, scene: Scene) => unknown>> = {
  'quit()': (client, { track }) => track('quit', client.quit()),
  'disconnect()': (client) => client.disconnect(),
  'disconnect(true)': (client) => client.disconnect(true),
  'end()': (client) => client.end(),
};

/** In the tick of a command: whatever was issued before has been written, as if the client were plain. */
function endInTheTick(ending: string): Scenario {
  return async (scene) => {
    const { ready, mixed, note } = scene;
    const client = await ready({ retryStrategy: () => 5 });
    const ends = new Promise((resolve) => client.once(ending === 'disconnect(true)' ? 'close' : 'end', resolve));
    const before = mixed(client, 'before');
    ENDINGS[ending]?.(client, scene);
    // Behind a quit, a plain client's writes race with the server's closing, and replies are lost or not.
    const behind = ending === 'quit()' ? undefined : mixed(client, 'behind');
    await ends;
    await Promise.all([before, behind ?? mixed(client, 'behind')]);
    if (ending === 'disconnect(true)') await until(() => client.status === 'ready', 'a new connection');
    note('status', client.status);
  };
}

/** With replies on their way. */
const endInFlight =
  (ending: string): Scenario =>
  async (scene) => {
    const { ready, mixed, note, track, admin } = scene;
    const client = await ready();
    const ends = new Promise((resolve) => client.once(ending === 'disconnect(true)' ? 'close' : 'end', resolve));
    const blocked = track('blpop', client.blpop('queue', 0));
    const behind = mixed(client, 'behind');
    await turn();
    await turn();
    ENDINGS[ending]?.(client, scene);
    if (ending === 'quit()') await (await admin()).rpush('queue', 'item');
    await ends;
    if (ending === 'disconnect(true)') {
      await until(() => client.status === 'ready', 'a new connection');
      await (await admin()).rpush('queue', 'item');
    }
    await Promise.all([blocked, behind]);
    note('status', client.status);
  };

for (const ending of Object.keys(ENDINGS)) {
  describeScenarios(ending, HOSTS, {
    'in the tick of commands of every kind': endInTheTick(ending),
    'with commands in flight': endInFlight(ending),
    'under maxInFlight': Object.assign(endInTheTick(ending), { coalesce: { maxInFlight: 3 } }),
  });
}

describeScenarios('connecting again after an end', HOSTS, {
  'quit(), then connect()': async ({ ready, track, mixed, note }) => {
    const client = await ready();
    await mixed(client, 'before the end');
    await track('quit', client.quit());
    await until(() => client.status === 'end', 'the end');
    await track('between', client.get('k'));
    await track('connect', client.connect());
    note('status', client.status);
    await mixed(client, 'after connect()');
  },

  'disconnect(), then connect() before it has closed': async ({ ready, track, mixed }) => {
    const client = await ready();
    await mixed(client, 'before the end');
    client.disconnect();
    void track('connect', client.connect());
    await until(() => client.status === 'end', 'the end');
    await track('connect, ended', client.connect());
    await mixed(client, 'after connect()');
  },

  'quit() twice, disconnect() behind it': async ({ ready, track }) => {
    const client = await ready();
    const replies = [track('set', client.set('k', 'v')), track('quit', client.quit()), track('quit', client.quit())];
    client.disconnect();
    await Promise.all(replies);
    await until(() => client.status === 'end', 'the end');
  },

  'a set whose promise nobody looks at, then disconnect()': async ({ ready, track, note, admin }) => {
    const client = await ready();
    client.set('k', 'v').catch(() => note('rejected'));
    client.disconnect();
    await until(() => client.status === 'end', 'the end');
    const other = await admin();
    // A plain client does not tell either when the server has stored it.
    while ((await other.exists('k')) === 0) await turn();
    await track('get', other.get('k'));
  },

  'quit() in the offline queue': async ({ client, track, mixed }) => {
    const early = client();
    const replies = mixed(early, 'early');
    await track('quit', early.quit());
    await replies;
    await until(() => early.status === 'end', 'the end');
    await track('connect', early.connect());
    await mixed(early, 'online');
  },

  'disconnect() in the tick of a reply, from its handler': async ({ ready, track, note }) => {
    const client = await ready();
    const replies = [
      client.echo('1').then((text) => {
        client.disconnect();
        return text;
      }),
      // One `then` more for these too: whether replies share a packet must not decide on the order.
      client.echo('2').then((text) => text),
      cold(client, 'ECHO', '3').then((text) => text),
      client.echo('4').then((text) => text),
    ];
    await Promise.all(replies.map((reply, index) => track(`reply ${index + 1}`, reply as Promise<unknown>)));
    await until(() => client.status === 'end', 'the end');
    note('status', client.status);
  },

  'duplicate() of an ended client is a client like any': async ({ ready, track, host, kind, note }) => {
    const client = await ready();
    await track('set', client.set('k', 'v'));
    client.disconnect();
    const copy = client.duplicate();
    await track('get', copy.get('k'));
    await track('fast', copy.append('k', '!'));
    note('coalesced as its original', 'coalescer' in copy === (kind === 'coalesced') || host.name);
    copy.disconnect();
    await until(() => copy.status === 'end', 'the end of the copy');
  },

  'the server ends it: CLIENT KILL': async ({ ready, track, admin }) => {
    const client = await ready();
    const id = await client.client('ID');
    const closed = new Promise((resolve) => client.once('close', resolve));
    await (await admin()).client('KILL', 'ID', id);
    await closed;
    await track('behind', client.set('k', 'v'));
    await track('fast', client.get('k'));
  },

  // A server that closes with replies unread is noticed as an error or as an end.
  'CLIENT KILL of oneself among other commands': scenario(
    { races: ['client: error Error/Error: read ECONNRESET'] },
    async ({ ready, track }) => {
      const client = await ready();
      const id = await client.client('ID');
      const replies = [
        track('before', client.incr('n')),
        track('kill', client.call('CLIENT', 'KILL', 'ID', id, 'SKIPME', 'no')),
      ];
      await Promise.all(replies);
      await track('behind', client.incr('n'));
    },
  ),
});

describeScenarios('quit() without an answer', [ioredis6], {
  'quit() to a server that does not answer: open until the connection is lost': async ({ ready, track, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    proxy.stall();
    const replies = [track('get', client.get('k')), track('quit', client.quit()), track('behind', client.get('k'))];
    await until(() => proxy.received().toLowerCase().includes('quit'), 'QUIT on the wire');
    proxy.reset();
    await Promise.all(replies);
  },
});
