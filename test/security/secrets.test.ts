import { inspect } from 'node:util';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAs, type Kind } from '../helpers/beside.js';
import { cold } from '../helpers/cold.js';
import { type Client, type CoalescedClient, HOSTS, type Host, ready } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { type RedisServer, startServer } from '../helpers/redis.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_UNKNOWN_CLIENT', 'COALESCE_WARN_AUTO_PIPELINING');

/** What must not come to light, each under the name it is searched by. */
const SECRETS = {
  password: 'Secret-password',
  auth: 'Secret-auth',
  key: 'Secret-key',
  field: 'Secret-field',
  value: 'Secret-value',
  buffer: 'Secret-buffer',
  script: 'Secret-script',
  reply: 'Secret-reply',
} as const;

const COMMANDS_BEHIND = 5;

let server: RedisServer;
let shown: string[];

beforeAll(async () => {
  server = await startServer({ args: ['--user', 'keeper', 'on', `>${SECRETS.password}`, '~*', '&*', '+@all'] });
});

afterAll(() => server?.stop());

const onWarning = (warning: Error): void => show(warning);

beforeEach(() => {
  shown = [];
  process.on('warning', onWarning);
  for (const method of ['log', 'info', 'warn', 'error', 'debug'] as const) {
    vi.spyOn(console, method).mockImplementation((...args: unknown[]) => show(...args));
  }
});

afterEach(() => {
  process.off('warning', onWarning);
  vi.restoreAllMocks();
});

/** Keeps all that can be found in something that was shown: own properties hidden or not, at any depth. */
function show(...things: unknown[]): void {
  for (const thing of things) shown.push(inspect(thing, { depth: Number.POSITIVE_INFINITY, showHidden: true }));
}

/** Which secrets are in what was shown, as text or as the bytes of a Buffer. */
function found(where: readonly string[] = shown): string[] {
  const all = where.join('\n').toLowerCase();
  return Object.entries(SECRETS)
    .filter(([, secret]) => [secret.toLowerCase(), ...bytesAsShown(secret)].some((text) => all.includes(text)))
    .map(([name]) => name);
}

/** `<Buffer 53 65 …>` as `inspect` has it, and `[83,101,…]` as JSON has it. */
function bytesAsShown(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [
    bytes.toString('hex').replace(/../g, '$& ').trim(),
    [...bytes].join(','),
    bytes.toString('base64').toLowerCase(),
  ];
}

function create(host: Host, kind: Kind, url: string, options: Parameters<Host['create']>[1] = {}): Client {
  const client = createAs(kind, host, url, { retryStrategy: () => 5, ...options });
  client.on('error', (error: Error) => show(error));
  return client;
}

/** Shows every error among what the promises come to, and no value: values are for the caller who asked for them. */
async function showErrors(promises: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(promises)) {
    if (result.status === 'rejected') show(result.reason);
  }
}

function commands(client: Client): Promise<unknown>[] {
  const { key, field, value, buffer, script } = SECRETS;
  return [
    client.set(key, value),
    client.hset(key, field, value),
    client.set(key, Buffer.from(buffer)),
    cold(client, 'SET', key, value),
    client.eval(`return redis.call('LPUSH', KEYS[1], ARGV[1]) -- ${script}`, 1, key, value),
    client.mget(key, field),
    client.pipeline().set(key, value).hget(key, field).exec(),
    client.multi().set(key, value).get(key).exec(),
  ];
}

/** Ways in which a client comes to report something. */
const OCCASIONS: Readonly<Record<string, (host: Host, kind: Kind) => Promise<CoalescedClient | Client>>> = {
  async 'commands that the server refuses'(host, kind) {
    const client = await ready(create(host, kind, server.url, { username: 'keeper', password: SECRETS.password }));
    await showErrors([
      ...commands(client),
      client.incr(SECRETS.key),
      client.call('NOTHING', SECRETS.value),
      client.evalsha('0'.repeat(40), 1, SECRETS.key, SECRETS.value),
      client.auth('keeper', SECRETS.auth),
      client.call('AUTH', SECRETS.auth),
    ]);
    return client;
  },

  async 'a password that is wrong'(host, kind) {
    const options = { username: 'keeper', password: SECRETS.auth, retryStrategy: null as never };
    const client = create(host, kind, server.url, options);
    await showErrors(commands(client));
    return client;
  },

  async 'commands that time out'(host, kind) {
    const proxy = await startProxy(server.url);
    const client = await ready(create(host, kind, proxy.url));
    // Only now: a busy machine may take longer for the handshake.
    client.options.commandTimeout = 20;
    proxy.stall();
    await showErrors(commands(client));
    return client;
  },

  async 'a connection that is lost for good'(host, kind) {
    const proxy = await startProxy(server.url);
    const client = await ready(create(host, kind, proxy.url, { retryStrategy: () => null }));
    const replies = commands(client);
    await proxy.loseReplies(SECRETS.script);
    await showErrors([...replies, client.get(SECRETS.key)]);
    return client;
  },

  async 'retries that run out'(host, kind) {
    const client = create(host, kind, 'redis://127.0.0.1:1', { maxRetriesPerRequest: 1 });
    await showErrors(commands(client));
    client.disconnect();
    return client;
  },

  async 'no offline queue'(host, kind) {
    const client = create(host, kind, server.url, { enableOfflineQueue: false });
    await showErrors(commands(client));
    return client;
  },

  async 'replies that make no sense'(host, kind) {
    const scripted = await startScriptedServer((command, connection) => {
      if (connection > 1) return handshake(command) ?? '+OK\r\n';
      return handshake(command) ?? (command[0] === 'incr' ? '?\r\n' : bulk(SECRETS.reply));
    });
    const client = await ready(create(host, kind, scripted.url));
    await showErrors([client.get(SECRETS.key), client.incr(SECRETS.key), client.set(SECRETS.key, SECRETS.value)]);
    return client;
  },
};

describe.each(HOSTS)('$name', (host) => {
  it.each(Object.keys(OCCASIONS))('%s: shows no more secrets than a plain client', async (name) => {
    const occasion = OCCASIONS[name] as (typeof OCCASIONS)[string];
    const client = await occasion(host, 'plain');
    const plain = found();
    client.disconnect();

    shown = [];
    const coalesced = (await occasion(host, 'coalesced')) as CoalescedClient;
    const withErrors = shown.length;
    show(
      coalesced.coalescer,
      JSON.stringify(coalesced.coalescer),
      coalesced.coalescer.stats(),
      JSON.stringify(coalesced.coalescer.stats()),
      coalesced.coalescer.options,
    );
    const errorsAlone = shown.slice(0, withErrors);
    expect(found().filter((secret) => !plain.includes(secret))).toEqual([]);
    // What errors are expected to show is looked for in the right place: ioredis puts a command's arguments in them.
    expect(found(errorsAlone).length > 0).toBe(plain.length > 0);
  });

  it('stats and options hold no argument, whatever was sent', async () => {
    const client = await ready(
      create(host, 'coalesced', server.url, { username: 'keeper', password: SECRETS.password }),
    );
    const replies = Array.from({ length: COMMANDS_BEHIND }, () => commands(client)).flat();
    const { coalescer } = client as CoalescedClient;
    show(coalescer, JSON.stringify(coalescer), coalescer.stats(), JSON.stringify(coalescer.stats()), coalescer.options);
    await Promise.allSettled(replies);
    show(coalescer.stats(), JSON.stringify(coalescer.stats()), coalescer.options);
    expect(found()).toEqual([]);
  });

  it('warnings hold no argument and no option', async () => {
    const odd = class extends host.Redis {
      override echo(): never {
        throw new Error('not the host’s own');
      }
    };
    const options = { lazyConnect: true, username: 'keeper', password: SECRETS.password };
    const pipelining = create(host, 'coalesced', server.url, { ...options, enableAutoPipelining: true });
    const batchingOnly = coalesce(new odd(server.url, options) as Client);
    batchingOnly.on('error', () => {});
    await Promise.allSettled([...commands(pipelining), ...commands(batchingOnly)]);
    batchingOnly.disconnect();
    expect(found()).toEqual([]);
    if (host === HOSTS[0]) {
      // Once per process, so with the first host.
      expect(shown.filter((text) => text.includes('CoalesceWarning'))).toHaveLength(2);
    }
  });
});

it('errors of coalesce() itself: do not quote their arguments', () => {
  const given: readonly (() => unknown)[] = [
    () => coalesce({ host: 'localhost', password: SECRETS.password }),
    () => coalesce([SECRETS.password]),
    () => coalesce(`redis://u:${SECRETS.password}@localhost` as never),
    () => coalesce(HOSTS[0]?.create(server.url) as Client, `redis://u:${SECRETS.password}@localhost` as never),
    () => coalesce(Object.assign(() => {}, { password: SECRETS.password })),
    () => coalesce(HOSTS[0]?.create(server.url) as Client, { password: SECRETS.password } as never),
    () => coalesce(HOSTS[0]?.create(server.url) as Client, { schedule: { password: SECRETS.password } } as never),
  ];
  for (const call of given) {
    try {
      call();
      expect.unreachable('expected an error');
    } catch (error) {
      show(error);
    }
  }
  expect(shown).toHaveLength(given.length);
  expect(found()).toEqual([]);
});

it('the search: finds secrets as text, as bytes, and deep in errors', () => {
  expect(found()).toEqual([]);
  show(Object.assign(new Error('x'), { command: { args: [Buffer.from(SECRETS.value)] } }));
  show(new Error('x', { cause: { hidden: SECRETS.key } }));
  expect(found()).toEqual(['key', 'value']);
});
