import type { RedisOptions } from 'ioredis';
import { type Client, HOSTS, until } from '../helpers/hosts.js';
import { describeScenarios, type Scene, scenario, startServerOfScenes } from '../helpers/lifecycle/scene.js';
import { startProxy } from '../helpers/proxy.js';

startServerOfScenes();

const SCRIPTS = {
  add: { numberOfKeys: 1, lua: "return redis.call('APPEND', KEYS[1], ARGV[1])" },
  loose: { lua: "redis.call('RPUSH', 'calls', ARGV[1]); return {KEYS, ARGV}" },
  failing: { numberOfKeys: 1, lua: "return redis.call('LPUSH', KEYS[1], 'x', redis.call('GET', KEYS[1]))" },
  refusing: { numberOfKeys: 0, lua: "return redis.error_reply('MINE as it is')" },
  pretending: { numberOfKeys: 0, lua: "return redis.error_reply('NOSCRIPT says the script')" },
  broken: { numberOfKeys: 0, lua: 'return return' },
} satisfies RedisOptions['scripts'];

type Scripts = Record<keyof typeof SCRIPTS | 'addBuffer', (...args: unknown[]) => Promise<unknown>>;

const scriptsOf = (client: Client) => client as unknown as Scripts;

async function scripted(scene: Scene, options: RedisOptions = {}, from: { url?: string } = {}) {
  const client = await scene.ready({ scripts: SCRIPTS, ...options }, from);
  return { client, scripts: scriptsOf(client) };
}

/** Scripts between commands of other kinds. */
async function mixed({ track }: Scene, client: Client, name: string): Promise<void> {
  const scripts = scriptsOf(client);
  const pipelined = client.pipeline() as unknown as { add(...args: unknown[]): ReturnType<Client['pipeline']> };
  await Promise.all([
    track(`${name} append`, client.append('k', 'a')),
    track(`${name} defined add`, scripts.add('k', `${name} é`)),
    track(`${name} get`, client.get('k')),
    track(`${name} defined in pipeline`, pipelined.add('k', 'p').get('k').exec()),
    track(`${name} defined loose`, scripts.loose(2, 'k1', 'k2', name, Buffer.from([0xff]))),
    track(`${name} defined addBuffer`, scripts.addBuffer('k', Buffer.from([0xfe]))),
    track(`${name} defined failing`, scripts.failing('k')),
    track(`${name} defined cold`, scripts.add('k', { toString: () => 'cold' })),
    track(`${name} strlen`, client.strlen('k')),
  ]);
}

describeScenarios('scripts', HOSTS, {
  'values and errors, between commands of other kinds': async (scene) => {
    const { client, scripts } = await scripted(scene);
    await mixed(scene, client, 'first');
    await mixed(scene, client, 'second');
    await scene.track('defined refusing', scripts.refusing());
    await scene.track('defined failing', scripts.failing('none'));
  },

  'a script that does not compile, again and again': async (scene) => {
    const { scripts } = await scripted(scene);
    for (const turn of [1, 2, 3, 4]) await scene.track(`defined ${turn}`, scripts.broken());
  },

  'a script whose own error says NOSCRIPT runs again': async (scene) => {
    const { scripts } = await scripted(scene);
    await scene.track('defined 1', scripts.pretending());
    await scene.track('defined 2', scripts.pretending());
  },

  'SCRIPT FLUSH between calls, and between calls of one turn': async (scene) => {
    const { client, scripts } = await scripted(scene);
    await scene.track('defined loads', scripts.add('k', '1'));
    await (await scene.admin()).script('FLUSH');
    await Promise.all([
      scene.track('defined flushed', scripts.add('k', '2')),
      scene.track('defined flushed too', scripts.addBuffer('k', '2')),
      scene.track('get', client.get('other')),
    ]);
    await Promise.all([
      scene.track('defined before', scripts.add('k', '3')),
      scene.track('flush', client.script('FLUSH') as Promise<unknown>),
      scene.track('defined behind', scripts.add('k', '4')),
      scene.track('defined loose', scripts.loose(0, 'x')),
    ]);
    await scene.track('defined again', scripts.add('k', '5'));
  },

  'SCRIPT FLUSH and keyPrefix': async (scene) => {
    const { client, scripts } = await scripted(scene, { keyPrefix: 'p:' });
    await scene.track('defined loads', scripts.add('k', '1'));
    await client.script('FLUSH');
    await scene.track('defined prefixed once', scripts.add('k', '2'));
    await scene.track('defined loose', scripts.loose(1, 'k', 'argument'));
  },

  'scripts defined with numberOfKeys by the caller, in each form of array': async (scene) => {
    const { scripts } = await scripted(scene);
    await Promise.all([
      scene.track('defined 1', scripts.loose([1, 'k', 'a'])),
      scene.track('defined 2', scripts.loose(1, ['k', 'a'])),
      scene.track('defined 3', scripts.loose('2', 'k', Buffer.from('l'), 'a', null, true)),
      scene.track('defined 4', scripts.loose(5, 'k')),
      scene.track('defined 5', scripts.loose('x', 'k')),
    ]);
  },

  'requests lost with the connection: sent again, as EVAL on the new one': async (scene) => {
    const proxy = await startProxy(scene.url);
    const { client } = await scripted(scene, {}, { url: proxy.url });
    await mixed(scene, client, 'loaded');
    await (await scene.admin()).script('FLUSH');
    const lost = mixed(scene, client, 'lost');
    await proxy.loseRequests('lost é');
    await lost;
    await mixed(scene, client, 'online');
  },

  'replies lost with the connection: run twice': async (scene) => {
    const proxy = await startProxy(scene.url);
    const { client, scripts } = await scripted(scene, {}, { url: proxy.url });
    const replies = [scene.track('defined 1', scripts.add('k', '1')), scene.track('defined 2', scripts.add('k', '2'))];
    await proxy.loseReplies('evalsha');
    await Promise.all(replies);
    await scene.track('k', client.get('k'));
  },

  'lost with maxRetriesPerRequest: 0': async (scene) => {
    const proxy = await startProxy(scene.url);
    const { scripts } = await scripted(scene, { maxRetriesPerRequest: 0 }, { url: proxy.url });
    await scene.track('defined loads', scripts.add('k', '1'));
    const lost = [
      scene.track('defined lost', scripts.add('k', 'lost')),
      scene.track('defined too', scripts.refusing()),
    ];
    await proxy.loseRequests('lost');
    await Promise.all(lost);
    await scene.track('defined online', scripts.add('k', '2'));
  },

  'replies cut at every byte': async (scene) => {
    const proxy = await startProxy(scene.url);
    proxy.cutRepliesInto(1);
    const { client } = await scripted(scene, {}, { url: proxy.url });
    await mixed(scene, client, 'cut');
  },

  'before the client is ready, and in lazyConnect': async (scene) => {
    const early = scene.client({ scripts: SCRIPTS });
    await mixed(scene, early, 'early');
    await mixed(scene, early, 'ready');
    const lazy = scene.client({ scripts: SCRIPTS, lazyConnect: true }, { name: 'lazy' });
    await scene.track('defined lazy', scriptsOf(lazy).add('k', 'lazy'));
    await mixed(scene, lazy, 'connected');
  },

  'enableOfflineQueue: false': async (scene) => {
    const client = scene.client({ scripts: SCRIPTS, enableOfflineQueue: false });
    await scene.track('defined refused', scriptsOf(client).add('k', '1'));
    await until(() => client.status === 'ready', 'the client to be ready');
    await scene.track('defined', scriptsOf(client).add('k', '2'));
  },

  'select between calls': async (scene) => {
    const { client, scripts } = await scripted(scene);
    await Promise.all([
      scene.track('defined in 0', scripts.add('k', '0')),
      scene.track('select', client.select(1)),
      scene.track('defined in 1', scripts.add('k', '1')),
    ]);
    await (await scene.admin()).script('FLUSH');
    await scene.track('defined in 1 again', scripts.add('k', '1'));
  },

  'commandTimeout: a late NOSCRIPT reaches nobody': async (scene) => {
    const proxy = await startProxy(scene.url);
    const { client, scripts } = await scripted(scene, {}, { url: proxy.url });
    await scene.track('defined loads', scripts.add('k', '1'));
    await (await scene.admin()).script('FLUSH');
    // Not for what is answered in time: a busy machine may delay that.
    client.options.commandTimeout = 60;
    proxy.stall();
    await Promise.all([
      scene.track('defined late', scripts.add('k', 'late')),
      scene.track('defined late too', scripts.refusing()),
    ]);
    client.options.commandTimeout = 60_000;
    proxy.resume();
    await scene.track('defined then', scripts.add('k', '2'));
  },

  'reconnectOnError: 2 sends the script again': async (scene) => {
    let asked = 0;
    const { scripts } = await scripted(scene, {
      reconnectOnError(error) {
        scene.note('asked', error.message);
        asked += 1;
        return asked === 1 ? 2 : false;
      },
    });
    await scene.track('defined', scripts.refusing());
    await scene.track('defined behind', scripts.add('k', '1'));
  },

  'reconnectOnError: true at NOSCRIPT': async (scene) => {
    const { scripts } = await scripted(scene, {
      reconnectOnError(error) {
        scene.note('asked', error.message);
        return error.message.startsWith('NOSCRIPT');
      },
    });
    await scene.track('defined', scripts.add('k', '1'));
    await (await scene.admin()).script('FLUSH');
    await scene.track('defined again', scripts.add('k', '2'));
  },

  'within MULTI that is not pipelined, and with DISCARD': async (scene) => {
    const { client, scripts } = await scripted(scene);
    for (const end of ['exec', 'discard'] as const) {
      await Promise.all([
        scene.track('multi', client.multi({ pipeline: false }) as unknown as Promise<unknown>),
        scene.track('defined', scripts.add('k', end)),
        scene.track('defined loose', scripts.loose(1, 'k', end)),
        scene.track(end, client[end]() as Promise<unknown>),
      ]);
      await scene.track('defined behind', scripts.add('k', 'behind'));
    }
  },

  'quit and disconnect behind a script of the same turn': async (scene) => {
    const first = await scripted(scene);
    await Promise.all([scene.track('defined', first.scripts.add('k', '1')), scene.track('quit', first.client.quit())]);
    await scene.track('defined behind', first.scripts.add('k', 'never'));
    const second = await scripted(scene, { retryStrategy: () => null });
    const last = scene.track('defined, disconnected', second.scripts.add('k', '2'));
    second.client.disconnect();
    await last;
  },

  'under maxInFlight: 2': scenario({ coalesce: { maxInFlight: 2 } }, async (scene) => {
    const { client } = await scripted(scene);
    await mixed(scene, client, 'first');
    await (await scene.admin()).script('FLUSH');
    await mixed(scene, client, 'second');
  }),
});
