import type { Duplex } from 'node:stream';
import { expect } from 'vitest';
import { type Client, HOSTS, ioredis6, until } from '../helpers/hosts.js';
import { describeScenarios, type Scene, scenario, startServerOfScenes } from '../helpers/lifecycle/scene.js';
import { startProxy } from '../helpers/proxy.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';

startServerOfScenes();

/** A pipeline and a transaction between single commands, all of them fast. */
const issue = ({ track }: Pick<Scene, 'track'>, client: Client, name: string): Promise<unknown> =>
  Promise.all([
    track(`${name} before`, client.echo('a')),
    track(`${name} pipeline`, client.pipeline().set('k', 'v').incr('k').incr('n').get('n').exec()),
    track(`${name} multi`, client.multi().set('k', 'w').incr('n').get('k').exec()),
    track(`${name} behind`, client.get('n')),
  ]);

/** The client's next connection fails at once when something is written that holds this text. */
function failNextConnectionAt(client: Client, text: string): void {
  client.once('connect', () => {
    const { stream } = client as unknown as { stream: Duplex };
    const { _write } = stream;
    const fails = (...chunks: unknown[]) => chunks.some((chunk) => String(chunk).includes(text));
    const broken = () => Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    stream._write = (chunk, encoding, callback) =>
      fails(chunk) ? callback(broken()) : _write.call(stream, chunk, encoding, callback);
    stream._writev = (chunks, callback) =>
      fails(...chunks.map(({ chunk }) => chunk))
        ? callback(broken())
        : _write.call(
            stream,
            Buffer.concat(chunks.map(({ chunk }) => Buffer.from(chunk))),
            'buffer' as never,
            callback,
          );
  });
}

/**
 * Issues everything and resets the connection in the middle of the replies, behind each of their bytes in turn, or
 * behind one in each reply.
 */
async function resetAtEvery(what: 'byte' | 'reply', scene: Scene, options: object): Promise<void> {
  // No reply has fewer than 4 bytes.
  const step = what === 'byte' ? 1 : 3;
  const proxy = await startProxy(scene.url);
  const client = await scene.ready({ retryStrategy: () => 1, ...options }, { url: proxy.url });
  let byte = 0;
  for (let strikes = -1; strikes !== proxy.strikes; ) {
    strikes = proxy.strikes;
    byte += step;
    const { stream } = client;
    const last = stream.bytesRead + byte;
    proxy.resetAfterReplyBytes(byte, () => until(() => stream.bytesRead >= last, 'the client to read the last byte'));
    const { connections } = proxy;
    await issue(scene, client, String(byte));
    // The last byte has come, or there is none at which it strikes. What the client does about that comes later.
    if (proxy.strikes > strikes) await until(() => proxy.connections > connections, 'a new connection');
    await until(() => client.status === 'ready', 'the connection to be ready');
    proxy.resetAfterReplyBytes(Number.POSITIVE_INFINITY);
    await client.set('n', '0');
  }
  scene.note('bytes', byte);
  expect(byte).toBeGreaterThan(100);
}

const anyEvents = ['client: '];

describeScenarios('pipelines and transactions when the connection is lost', HOSTS, {
  'in every reply, sent again': scenario({ races: anyEvents }, (scene) => resetAtEvery('reply', scene, {})),

  'in every reply, maxRetriesPerRequest: 0': scenario({ races: anyEvents }, (scene) =>
    resetAtEvery('reply', scene, { maxRetriesPerRequest: 0 }),
  ),

  'before any reply: everything is sent again, in order': async (scene) => {
    const proxy = await startProxy(scene.url);
    const client = await scene.ready({}, { url: proxy.url });
    const settled = issue(scene, client, 'lost');
    await proxy.loseReplies('exec');
    await settled;
    await issue(scene, client, 'online');
  },

  'autoResendUnfulfilledCommands: false, and no new connection': async (scene) => {
    const proxy = await startProxy(scene.url);
    const options = { autoResendUnfulfilledCommands: false, retryStrategy: () => null };
    const client = await scene.ready(options, { url: proxy.url });
    const settled = issue(scene, client, 'lost');
    await proxy.loseReplies('exec');
    await settled;
  },

  ...Object.fromEntries(
    ['multi', 'incr', 'exec'].map((text) => [
      `when the next connection is lost too, as ${text} is sent again`,
      scenario({ races: anyEvents, coalesce: { maxBatchSize: 1 } }, async ({ url, ready, track }) => {
        const proxy = await startProxy(url);
        const client = await ready({}, { url: proxy.url });
        const settled = [
          track('multi', client.multi().incr('n').get('n').exec()),
          track('pipeline', client.pipeline().incr('n').get('n').exec()),
          track('behind', client.get('n')),
        ];
        failNextConnectionAt(client, text);
        await proxy.loseReplies('exec');
        await Promise.all(settled);
        await track('later', client.get('n'));
      }),
    ]),
  ),

  'select: sent again where it was issued': scenario({ races: anyEvents }, async (scene) => {
    const proxy = await startProxy(scene.url);
    const client = await scene.ready({ db: 2 }, { url: proxy.url });
    const settled = [
      issue(scene, client, 'two'),
      scene.track('select', client.select(5)),
      issue(scene, client, 'five'),
    ];
    await proxy.loseReplies('select');
    await Promise.all(settled);
  }),

  'commands that are added after exec() do not hold back what is sent again': async ({ url, ready, track }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    const pipeline = client.pipeline().incr('n').get('n');
    const settled = [track('pipeline', pipeline.exec()), track('behind', client.get('n'))];
    pipeline.get('added');
    await proxy.loseReplies('incr');
    await Promise.all(settled);
    await track('later', client.get('n'));
  },

  'exec() a second time while the first is being sent again': async ({ url, ready, track }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    const pipeline = client.pipeline().incr('n').get('n');
    const settled = [track('first', pipeline.exec()), track('second', pipeline.exec())];
    await proxy.loseReplies('incr');
    await Promise.all(settled);
    await track('n', client.get('n'));
  },

  'reconnectOnError: 2, within a pipeline and within a transaction': async ({ ready, track }) => {
    const client = await ready({ reconnectOnError: () => 2 });
    let failed = false;
    client.on('reconnecting', () => {
      if (failed) return;
      failed = true;
      client.options.reconnectOnError = () => false;
    });
    await track('text', client.set('t', 'v'));
    await track('pipeline', client.pipeline().get('t').incr('t').get('t').exec());
    client.options.reconnectOnError = () => 1;
    failed = false;
    await track('again', client.pipeline().incr('t').get('t').exec());
    client.options.reconnectOnError = () => 2;
    failed = false;
    await track('multi', client.multi().get('t').incr('t').exec());
    await track('behind', client.get('t'));
  },

  'disconnect() and quit() behind them': async ({ ready, track }) => {
    const client = await ready();
    const settled = [
      track('pipeline', client.pipeline().set('k', 'v').get('k').exec()),
      track('multi', client.multi().incr('n').exec()),
      track('quit', client.quit()),
    ];
    await Promise.all(settled);
    await until(() => client.status === 'end', 'the end');
    await client.connect();
    const dropped = [
      track('p', client.pipeline().incr('n').get('n').exec()),
      track('m', client.multi().incr('n').exec()),
    ];
    client.disconnect();
    await Promise.all(dropped);
  },
});

describeScenarios('pipelines and transactions when the connection is lost', [ioredis6], {
  'at every byte of the replies, sent again': scenario({ races: anyEvents }, (scene) =>
    resetAtEvery('byte', scene, {}),
  ),
});

describeScenarios('pipelines and transactions that are not answered in time', HOSTS, {
  'commandTimeout: each command by itself, and late replies reach nobody': async ({ url, ready, track }) => {
    const proxy = await startProxy(url);
    const client = await ready({}, { url: proxy.url });
    // Not for the handshake, nor for what is answered in time: a busy machine may delay both.
    client.options.commandTimeout = 60;
    proxy.stall();
    await Promise.all([
      track('pipeline', client.pipeline().set('k', 'v').get('k').exec()),
      track('multi', client.multi().incr('n').get('n').exec()),
      track('single', client.get('k')),
    ]);
    client.options.commandTimeout = 10_000;
    proxy.resume();
    await track('behind', client.get('n'));
    await track('pipeline in time', client.pipeline().get('k').incr('n').exec());
  },

  'commandTimeout, and some of the replies in time': async ({ ready, track, note }) => {
    const server = await startScriptedServer(
      (command) => handshake(command) ?? (command[1] === 'never' ? undefined : bulk(command[1] ?? '')),
    );
    const client = await ready({}, { url: server.url });
    client.options.commandTimeout = 1_500;
    await track('pipeline', client.pipeline().echo('a').echo('never').exec());
    note('commands', server.commands.length);
  },
});

describeScenarios('pipelines and transactions under maxInFlight', HOSTS, {
  'wait as a whole, in order': scenario({ coalesce: { maxInFlight: 5 } }, async (scene) => {
    const client = await scene.ready();
    await Promise.all(['a', 'b', 'c', 'd'].map((name) => issue(scene, client, name)));
    const large = client.pipeline();
    for (let index = 0; index < 20; index += 1) large.incr('n');
    await Promise.all([
      scene.track('large pipeline', large.exec()),
      scene.track('open', client.multi({ pipeline: false })),
      scene.track('inside pipeline', client.pipeline().incr('n').get('n').exec()),
      scene.track('exec', client.exec()),
      issue(scene, client, 'last'),
    ]);
  }),

  'sent again when they waited': scenario({ coalesce: { maxInFlight: 3 } }, async (scene) => {
    const proxy = await startProxy(scene.url);
    const client = await scene.ready({}, { url: proxy.url });
    const settled = ['a', 'b', 'c'].map((name) => issue(scene, client, name));
    await proxy.loseRequests('echo');
    await Promise.all(settled);
  }),
});

describeScenarios('pipelines and transactions with shareReads', HOSTS, {
  'nothing in them is shared, and reads around them are fresh': scenario(
    { coalesce: { shareReads: true } },
    async (scene) => {
      const { track } = scene;
      const client = await scene.ready();
      await Promise.all([
        track('a', client.get('k')),
        track('b pipeline', client.pipeline().get('k').set('k', '1').get('k').get('k').exec()),
        track('c', client.get('k')),
        track('d', client.get('k')),
        track('e multi', client.multi().incr('k').get('k').get('k').exec()),
        track('f', client.get('k')),
        track('g', client.get('k')),
      ]);
      await track('open', client.multi({ pipeline: false }));
      await Promise.all([
        track('queued', client.get('k')),
        track('m multi', client.multi().get('k').exec()),
        track('h', client.get('k')),
      ]);
    },
  ),
});
