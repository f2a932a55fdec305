import { cold } from '../helpers/cold.js';
import { HOSTS, ioredis6, until } from '../helpers/hosts.js';
import { describeScenarios, type Scene, scenario, startServerOfScenes } from '../helpers/lifecycle/scene.js';
import { startProxy } from '../helpers/proxy.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';

startServerOfScenes();

/** A server that answers as scripted until it closes, and then, on the second connection, everything. */
const closesAfter = (replies: Readonly<Record<string, string>>) =>
  startScriptedServer((command, connection) => {
    const scripted = connection === 1 ? replies[command[1] ?? ''] : undefined;
    return scripted ?? handshake(command) ?? bulk(command[1] ?? '');
  });

describeScenarios('commands in flight when the connection is lost', HOSTS, {
  'autoResendUnfulfilledCommands: all kinds are sent again, in order': async ({ ready, mixed, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    const replies = mixed(client, 'lost');
    await proxy.loseRequests('lost:key');
    await replies;
    await mixed(client, 'online');
  },

  'autoResendUnfulfilledCommands: what the server has done is done twice': async ({ ready, track, note, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    const replies = [track('incr', client.incr('n')), track('call', cold(client, 'INCR', 'n'))];
    await proxy.loseReplies('INCR');
    await Promise.all(replies);
    note('n', await client.get('n'));
  },

  'autoResendUnfulfilledCommands: false, retryStrategy gives up': async ({ ready, mixed, note, url }) => {
    const proxy = await startProxy(url);
    const options = { autoResendUnfulfilledCommands: false, retryStrategy: () => null };
    const client = await ready(options, { url: proxy.url });
    const replies = mixed(client, 'lost');
    await proxy.loseRequests('lost:key');
    await replies;
    note('status', client.status);
  },

  // Host: earlier versions lose what was in flight twice, a plain client leaves it open.
  'in flight twice: the second connection is lost as well': scenario(
    { needs: 'socketTimeout' },
    async ({ ready, track, note, url }) => {
      const proxy = await startProxy(url);
      const client = await ready({}, { url: proxy.url });
      const texts = ['a', 'b', 'c'].map((text) => `${text}${'x'.repeat(10)}`);
      proxy.resetAfterReplyBytes(4);
      client.once('reconnecting', () => proxy.resetAfterReplyBytes(800));
      await Promise.all(texts.map((text) => track(text, client.echo(text))));
      await track(
        'big',
        client.echo('y'.repeat(1_000)).then((text) => text.length),
      );
      note('still there', await client.echo('here'));
    },
  ),

  'a pipeline with some of its replies': async ({ ready, track, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    proxy.resetAfterReplyBytes(9);
    const before = track('before', client.echo('a'));
    await track('pipeline', client.pipeline().echo('b').echo('c').exec());
    await before;
    await track('behind', client.echo('d'));
  },

  'a transaction with some of its replies': async ({ ready, track, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    proxy.resetAfterReplyBytes(16);
    const before = track('before', client.echo('a'));
    await track('multi', client.multi().set('k', 'v').get('k').exec());
    await before;
    await track('behind', client.get('k'));
  },

  'a transaction of single commands, lost before EXEC': async ({ ready, track, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    await track('multi', client.multi({ pipeline: false }));
    await track('set', client.set('k', 'v'));
    const closed = new Promise((resolve) => client.once('close', resolve));
    proxy.reset();
    await closed;
    const incr = track('incr', client.incr('n'));
    await track('exec', client.exec());
    await incr;
  },

  'maxRetriesPerRequest: 0 with commands of every kind in flight': async ({ ready, mixed, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({ maxRetriesPerRequest: 0 }, { url: proxy.url });
    const replies = mixed(client, 'lost');
    await proxy.loseRequests('lost:key');
    await replies;
    await until(() => client.status === 'ready', 'a new connection');
    await mixed(client, 'online');
  },

  'select: what is sent again runs where it was issued': async ({ ready, track, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({ db: 2 }, { url: proxy.url });
    const replies = [
      track('set in 2', client.set('k', 'two')),
      track('select 4', client.select(4)),
      track('set in 4', client.set('k', 'four')),
      track('select 99', client.select(99)),
      track('get in 4', client.get('k')),
      track('pipeline', client.pipeline().get('k').select(6).set('k', 'six').exec()),
      track('behind', client.get('k')),
    ];
    await proxy.loseRequests('four');
    await Promise.all(replies);
    await track('set at last', client.set('last', 'v'));
  },

  'select between two connections': async ({ ready, track, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({ retryStrategy: () => 50 }, { url: proxy.url });
    await track('select 3', client.select(3));
    proxy.reset();
    await until(() => client.status === 'reconnecting', 'the lost connection to be noticed');
    const replies = [
      track('set in 3', client.set('k', 'three')),
      track('select 5', client.select(5)),
      track('set in 5', client.set('k', 'five')),
    ];
    await Promise.all(replies);
    await track('get', client.get('k'));
    await track('online', client.append('k', '!'));
  },

  'a blocking command with fast ones behind it': async ({ ready, track, admin, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    const replies = [
      track('before', client.echo('before')),
      track('blpop', client.blpop('queue', 0)),
      track('behind', client.echo('behind')),
      track('cold', cold(client, 'ECHO', 'cold') as Promise<unknown>),
    ];
    await replies[0];
    proxy.reset();
    await until(
      () => proxy.connections === 2 && proxy.received().split('queue').length === 3,
      'BLPOP to be sent again',
    );
    await (await admin()).rpush('queue', 'item');
    await Promise.all(replies);
  },
});

describeScenarios('a server that closes within a reply', HOSTS, {
  'the server closes within a bulk string': async ({ ready, track }) => {
    const server = await closesAfter({ b: '$5\r\nhe', c: 'close' });
    const client = await ready({}, { url: server.url });
    await Promise.all(['a', 'b', 'c', 'd'].map((text) => track(text, client.echo(text))));
    await track('online', client.echo('e'));
  },

  'the server closes within the length of a reply to a cold command among fast ones': async ({ ready, track }) => {
    const server = await closesAfter({ b: '$1', c: 'close' });
    const client = await ready({}, { url: server.url });
    const echo = (text: string) => (text === 'b' ? cold(client, 'ECHO', text) : client.echo(text));
    await Promise.all(['a', 'b', 'c', 'd'].map((text) => track(text, echo(text) as Promise<unknown>)));
    await track('online', client.echo('e'));
  },

  'the server closes within an array': async ({ ready, track }) => {
    const server = await closesAfter({ b: '*3\r\n$1\r\nx\r\n:1\r\n', c: 'close' });
    const client = await ready({}, { url: server.url });
    const replies = [client.echo('a'), client.lrange('b', 0, -1), client.echo('c'), client.echo('d')];
    await Promise.all(replies.map((reply, index) => track(`reply ${index}`, reply as Promise<unknown>)));
    await track('online', client.echo('e'));
  },

  'the server closes within an error': async ({ ready, track }) => {
    const server = await closesAfter({ b: '-ERR half of an err', c: 'close' });
    const client = await ready({}, { url: server.url });
    await Promise.all(['a', 'b', 'c', 'd'].map((text) => track(text, client.echo(text))));
    await track('online', client.echo('e'));
  },

  'the server closes before the last line feed': async ({ ready, track }) => {
    const server = await closesAfter({ b: '$1\r\nb\r', c: 'close' });
    const client = await ready({}, { url: server.url });
    await Promise.all(['a', 'b', 'c', 'd'].map((text) => track(text, client.echo(text))));
    await track('online', client.echo('e'));
  },

  'the server closes within a reply and does not come back': async ({ ready, track, note }) => {
    const server = await closesAfter({ b: '$5\r\nhe', c: 'close' });
    const client = await ready({ retryStrategy: () => null }, { url: server.url });
    await Promise.all(['a', 'b', 'c', 'd'].map((text) => track(text, client.echo(text))));
    note('status', client.status);
  },
});

/** Under ioredis 6 every reply before the garbage is settled; an `error` listener runs while the decoder still does. */
async function issueFromErrorListener({ ready, track }: Scene, garbage: string): Promise<void> {
  const server = await closesAfter({ b: garbage });
  const client = await ready({}, { url: server.url });
  let listened = 0;
  client.on('error', () => {
    listened += 1;
    if (listened > 1) return;
    void track('from the listener', client.echo('fast'));
    void track('from the listener, cold', cold(client, 'ECHO', 'cold') as Promise<unknown>);
    void track('from the listener, pipeline', client.pipeline().echo('piped').exec());
  });
  await Promise.all(['a', 'b', 'c', 'd'].map((text) => track(text, client.echo(text))));
  await until(() => listened > 0, 'the error');
  await track('after', client.echo('after'));
}

describeScenarios('protocol garbage', HOSTS, {
  'between replies; an error listener issues commands': (scene) => issueFromErrorListener(scene, '?garbage\r\n'),
  'in an array; an error listener issues commands': (scene) =>
    issueFromErrorListener(scene, '*2\r\n$1\r\nx\r\n?garbage\r\n'),
  'without an error listener that does anything': async ({ ready, track }) => {
    const server = await closesAfter({ b: '\0\0\0\r\n' });
    const client = await ready({}, { url: server.url });
    await Promise.all(['a', 'b', 'c', 'd'].map((text) => track(text, client.echo(text))));
    await track('after', client.echo('after'));
  },
});

describeScenarios('reconnectOnError', HOSTS, {
  ...Object.fromEntries(
    ([1, 2, true, false] as const).map((answer) => [
      `returns ${answer}: fast, cold, in a pipeline and in a transaction`,
      async ({ ready, track, note, url }: Scene) => {
        const proxy = await startProxy(url);
        let asked = 0;
        const client = await ready(
          {
            reconnectOnError(error) {
              asked += 1;
              return asked === 1 && error.message.startsWith('WRONGTYPE') ? answer : false;
            },
          },
          { url: proxy.url },
        );
        await client.rpush('list', 'x');
        for (const name of ['fast', 'cold', 'pipeline', 'multi'] as const) {
          asked = 0;
          const failing = {
            fast: () => client.get('list'),
            cold: () => cold(client, 'GET', 'list'),
            pipeline: () => client.pipeline().get('list').echo('piped').exec(),
            multi: () => client.multi().get('list').echo('queued').exec(),
          }[name];
          const before = track(`${name}: before`, client.echo('a'));
          // With 1, what is behind the error is resent, or lost with the connection: in both clients alike.
          await track(name, failing());
          await before;
          await until(() => client.status === 'ready', 'the connection');
          await track(`${name}: after`, client.echo('b'));
          note(`${name}: connections`, proxy.connections);
        }
      },
    ]),
  ),
});

const SUBSCRIBER = {
  ...Object.fromEntries(
    [true, false].map((autoResubscribe) => [
      `autoResubscribe: ${autoResubscribe}`,
      async ({ ready, track, note, admin, url }: Scene) => {
        const proxy = await startProxy(url);
        const client = await ready({ autoResubscribe, db: 1 }, { url: proxy.url });
        let messages = 0;
        for (const event of ['message', 'pmessage']) {
          client.on(event, (...args: unknown[]) => {
            messages += 1;
            note(event, args);
          });
        }
        await track('fast before', client.set('k', 'v'));
        await track('subscribe', client.subscribe('a', 'b'));
        await track('psubscribe', client.psubscribe('p*'));
        await track('unsubscribe', client.unsubscribe('b'));
        proxy.reset();
        await until(() => proxy.connections === 2 && client.status === 'ready', 'a new connection');
        // Answered on the connection that the subscriptions, if any, were sent on before.
        await track('ping', client.ping());
        const other = await admin();
        const receivers: number[] = [];
        for (const channel of ['a', 'b', 'p1']) receivers.push(await other.publish(channel, 'again'));
        await until(() => messages === receivers.filter((count) => count > 0).length, 'the messages');
        note('receivers', receivers);
        // Host: `unsubscribe()` without arguments stays open as long as another kind of subscription is left.
        await track('unsubscribe', client.unsubscribe('a'));
        await track('punsubscribe', client.punsubscribe('p*'));
        await track('fast behind', client.get('k'));
      },
    ]),
  ),
};

describeScenarios('subscriptions over a reconnect', HOSTS, SUBSCRIBER);
describeScenarios('subscriptions over a reconnect, RESP2', [ioredis6], {
  'autoResubscribe, protocol 2': async ({ ready, track, note, admin, url }) => {
    const proxy = await startProxy(url);
    const client = await ready({ protocol: 2 }, { url: proxy.url });
    client.on('message', (channel, message) => note('message', [channel, message]));
    await Promise.all([track('set', client.set('k', 'v')), track('subscribe', client.subscribe('a'))]);
    proxy.reset();
    await until(() => proxy.connections === 2 && client.status === 'ready', 'a new connection');
    await track('ping', client.ping());
    await (await admin()).publish('a', 'again');
    await track('get, refused', client.get('k'));
    await track('unsubscribe', client.unsubscribe('a'));
    await track('get', client.get('k'));
  },
});
