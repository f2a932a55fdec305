import { setImmediate as turn } from 'node:timers/promises';
import { cold } from '../helpers/cold.js';
import { HOSTS, ioredis6, until } from '../helpers/hosts.js';
import { describeScenarios, scenario, startServerOfScenes } from '../helpers/lifecycle/scene.js';
import { startProxy } from '../helpers/proxy.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';

startServerOfScenes();

/** Nobody listens on it: port 1 is privileged, and no service has it. */
const NOBODY = 'redis://127.0.0.1:1';

describeScenarios('before the connection is there', HOSTS, {
  'the offline queue keeps the order of commands of every kind': async ({ client, mixed }) => {
    const early = client();
    await Promise.all([mixed(early, 'first'), mixed(early, 'second')]);
    await mixed(early, 'online');
  },

  'a queue that fills over several turns, and while it is emptied': async ({ client, mixed, track }) => {
    const early = client();
    early.once('connect', () => void track('at connect', early.incr('order')));
    early.once('ready', () => {
      void track('at ready', early.incr('order'));
      void track('at ready, cold', cold(early, 'INCR', 'order') as Promise<unknown>);
    });
    const first = track('1', early.incr('order'));
    await turn();
    const all = [first, track('2', cold(early, 'INCR', 'order')), track('3', early.incr('order'))];
    await Promise.all(all);
    await mixed(early, 'online');
  },

  'lazyConnect: the first command connects': async ({ client, mixed, note }) => {
    const lazy = client({ lazyConnect: true });
    note('status', lazy.status);
    await turn();
    const replies = mixed(lazy, 'first');
    note('status', lazy.status);
    await replies;
    await mixed(lazy, 'online');
  },

  'lazyConnect: connect(), twice, and commands in the same tick': async ({ client, track, mixed }) => {
    const lazy = client({ lazyConnect: true });
    void track('connect', lazy.connect());
    void track('connect again', lazy.connect());
    await mixed(lazy, 'first');
    await track('connect when ready', lazy.connect());
    await mixed(lazy, 'online');
  },

  'lazyConnect: disconnect() before any command, then connect()': async ({ client, track, mixed, note }) => {
    const lazy = client({ lazyConnect: true });
    lazy.disconnect();
    note('status', lazy.status);
    await track('get', lazy.get('k'));
    await track('connect', lazy.connect());
    await mixed(lazy, 'online');
  },

  'lazyConnect: quit() as the first command': scenario({ cold: true }, async ({ client, track, note }) => {
    const lazy = client({ lazyConnect: true });
    await track('quit', lazy.quit());
    await track('get', lazy.get('k'));
    note('status', lazy.status);
  }),

  'enableOfflineQueue: false refuses everything until ready': async ({ client, mixed, track, note }) => {
    const early = client({ enableOfflineQueue: false });
    await mixed(early, 'early');
    await new Promise((resolve) => early.once('connect', resolve));
    await track('at connect', early.get('k'));
    await until(() => early.status === 'ready', 'ready');
    note('status', early.status);
    await mixed(early, 'online');
  },

  'enableOfflineQueue: false and lazyConnect': async ({ client, track, mixed }) => {
    const lazy = client({ enableOfflineQueue: false, lazyConnect: true });
    await track('get', lazy.get('k'));
    await until(() => lazy.status === 'ready', 'ready');
    await mixed(lazy, 'online');
  },

  'keyPrefix and db hold for what was queued': async ({ client, mixed }) => {
    const early = client({ keyPrefix: 'prefix:', db: 3 });
    await mixed(early, 'early');
    await mixed(early, 'online');
  },
});

describeScenarios('a server that is not there', HOSTS, {
  'maxRetriesPerRequest: 0': scenario({ cold: true }, async ({ client, track }) => {
    const lost = client({ maxRetriesPerRequest: 0, retryStrategy: () => 20 }, { url: NOBODY });
    await Promise.all([track('get', lost.get('k')), track('call', cold(lost, 'GET', 'k'))]);
    await track('pipeline', lost.pipeline().get('k').get('k').exec());
    lost.disconnect();
  }),

  'maxRetriesPerRequest: 2, with commands between the attempts': scenario({ cold: true }, async ({ client, track }) => {
    const lost = client({ maxRetriesPerRequest: 2, retryStrategy: () => 20 }, { url: NOBODY });
    const replies = [track('get', lost.get('k')), track('multi', lost.multi().get('k').exec())];
    lost.once('reconnecting', () => void track('between', lost.set('k', 'v')));
    await Promise.all(replies);
    lost.disconnect();
  }),

  'maxRetriesPerRequest: null waits until it is there': async ({ client, mixed, note, url }) => {
    let attempts = 0;
    const late = client(
      {
        maxRetriesPerRequest: null,
        retryStrategy: (times) => {
          attempts = times;
          // The client reads its port at each attempt.
          if (times === 4) late.options.port = Number(new URL(url).port);
          return 5;
        },
      },
      { url: NOBODY },
    );
    await mixed(late, 'waited');
    note('attempts', attempts);
    await mixed(late, 'online');
  },

  'retryStrategy: null gives up at once': scenario({ cold: true }, async ({ client, track, note }) => {
    const lost = client({ retryStrategy: null as never }, { url: NOBODY });
    await Promise.all([track('get', lost.get('k')), track('call', cold(lost, 'GET', 'k'))]);
    note('status', lost.status);
    await track('after the end', lost.get('k'));
    await track('pipeline after the end', lost.pipeline().get('k').exec());
    await track('connect', lost.connect());
  }),

  'a retryStrategy that throws, or gives no number': scenario({ cold: true }, async ({ client, track, note }) => {
    const lost = client({ retryStrategy: (times) => (times < 3 ? 1 : ('soon' as never)) }, { url: NOBODY });
    await track('get', lost.get('k'));
    note('status', lost.status);
  }),

  'disconnect() while it waits to try again, then connect()': async ({ client, track, mixed, note, url }) => {
    const lost = client({ retryStrategy: () => 60_000, maxRetriesPerRequest: null }, { url: NOBODY });
    void track('get', lost.get('k'));
    await until(() => lost.status === 'reconnecting', 'the wait for the next attempt');
    lost.disconnect();
    note('status', lost.status);
    lost.options.port = Number(new URL(url).port);
    await track('connect', lost.connect());
    await mixed(lost, 'online');
  },
});

describeScenarios('handshakes that fail', HOSTS, {
  // Host: iovalkey says `ready` when the replies to AUTH and to INFO share a packet, whatever merged them.
  'a wrong password': scenario({ cold: true, races: ['client: ready'] }, async ({ client, track, admin }) => {
    await (await admin()).acl('SETUSER', 'locked', 'on', '>right', '~*', '+@all');
    const refused = client({ username: 'locked', password: 'wrong', retryStrategy: null as never });
    await Promise.all([track('get', refused.get('k')), track('call', cold(refused, 'GET', 'k'))]);
  }),

  'a right one': async ({ client, mixed, admin }) => {
    await (await admin()).acl('SETUSER', 'open', 'on', '>right', '~*', '+@all', '&*');
    const accepted = client({ username: 'open', password: 'right' });
    await mixed(accepted, 'early');
    await mixed(accepted, 'online');
  },

  'a user who may not do what the handshake does': scenario({ cold: true }, async ({ client, track, admin }) => {
    await (await admin()).acl('SETUSER', 'bare', 'on', 'nopass', '~*', '+get', '+info', '+hello', '+auth');
    const bare = client({ username: 'bare', password: 'x', connectionName: 'named', retryStrategy: null as never });
    await track('get', bare.get('k'));
  }),

  'a database that is not there': async ({ client, track }) => {
    const lost = client({ db: 99 });
    await track('set', lost.set('k', 'v'));
    await track('get', lost.get('k'));
  },

  'connections that are lost after half a reply to the handshake': async ({ client, mixed, url }) => {
    const server = await startScriptedServer(() => '$100\r\nhalf');
    const late = client(
      {
        retryStrategy(times) {
          if (times === 3) late.options.port = Number(new URL(url).port);
          return 5;
        },
      },
      { url: server.url },
    );
    late.on('connect', () => {
      if (late.options.port === Number(new URL(server.url).port)) {
        late.stream.once('data', () => late.stream.destroy());
      }
    });
    await mixed(late, 'early');
    await mixed(late, 'online');
  },

  'a server that is loading its data': async ({ client, track }) => {
    let asked = 0;
    const server = await startScriptedServer((command) => {
      if (command[0] === 'info') {
        asked += 1;
        return bulk(`redis_version:7.0.0\r\nloading:${asked < 3 ? 1 : 0}\r\nloading_eta_seconds:0.01\r\n`);
      }
      return handshake(command) ?? bulk(command[1] ?? '');
    });
    const early = client({}, { url: server.url });
    await Promise.all([track('echo', early.echo('a')), track('call', cold(early, 'ECHO', 'b'))]);
    await track('online', early.echo('c'));
  },
});

describeScenarios('RESP3', [ioredis6], {
  'HELLO refused: the wrong password': scenario({ cold: true }, async ({ client, track, admin }) => {
    await (await admin()).acl('SETUSER', 'locked', 'on', '>right', '~*', '+@all');
    const options = { username: 'locked', password: 'wrong', protocol: 3, retryStrategy: null as never } as const;
    const refused = client(options);
    await Promise.all([track('get', refused.get('k')), track('call', cold(refused, 'GET', 'k'))]);
  }),

  'HELLO not known: RESP2 from then on': async ({ client, track }) => {
    const server = await startScriptedServer((command) => {
      if (command[0] === 'hello') return "-ERR unknown command 'HELLO'\r\n";
      return handshake(command) ?? bulk(command[1] ?? '');
    });
    const old = client({ protocol: 3 }, { url: server.url });
    await Promise.all([track('echo', old.echo('a')), track('call', cold(old, 'ECHO', 'b'))]);
    await track('online', old.echo('c'));
  },

  'a connection lost in the middle of HELLO': async ({ client, mixed, url }) => {
    const proxy = await startProxy(url);
    proxy.resetAfterReplyBytes(20);
    const late = client({ protocol: 3 }, { url: proxy.url });
    await mixed(late, 'early');
    await mixed(late, 'online');
  },
});
