import type { RedisOptions } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SecuredServer, startSecuredServer } from '../helpers/cluster/tls.js';
import { cold } from '../helpers/cold.js';
import { type Client, endWithTest, HOSTS, type Host, outcomes, ready, until } from '../helpers/hosts.js';

let secured: SecuredServer;

beforeAll(async () => {
  secured = await startSecuredServer();
});
afterAll(() => secured?.stop());

/** Every way to the server. */
const WAYS: Readonly<Record<string, () => RedisOptions>> = {
  TCP: () => ({ host: '127.0.0.1', port: secured.server.port }),
  'a unix socket': () => ({ path: secured.socket }),
  'TLS with certificates on both sides': () => ({
    host: '127.0.0.1',
    port: secured.tlsPort as number,
    tls: { servername: 'localhost', ca: secured.authority, ...secured.client },
  }),
};

const WAY_AND_USER = Object.keys(WAYS).flatMap((way) => [
  { way, user: 'the default user' },
  { way, user: 'a user of the ACL' },
]);

function create(host: Host, options: RedisOptions): Client {
  const Redis = host.Redis as unknown as new (options: RedisOptions) => Client;
  return endWithTest(new Redis(options));
}

const TEXTS = ['a', 'é ключ', '\r\n', '', 'x'.repeat(100_000)];

/** In one turn: fast and other commands, large values, errors of the server and of the ACL. */
const program = (client: Client): Promise<unknown>[] => [
  ...TEXTS.map((text, index) => client.set(`shop:${index}`, text)),
  ...TEXTS.map((_, index) => client.get(`shop:${index}`)),
  ...TEXTS.map((_, index) => client.getBuffer(`shop:${index}`).then((bytes) => ({ hex: bytes?.toString('hex') }))),
  client.hset('shop:h', { field: 'value', other: '2' }),
  client.hgetall('shop:h'),
  client.zadd('shop:z', 1.5, 'a'),
  client.zscore('shop:z', 'a'),
  cold(client, 'strlen', 'shop:0'),
  client.multi().incr('shop:n').get('shop:n').exec(),
  client.pipeline().get('shop:0').hget('shop:0', 'field').exec(),
  client.incr('shop:0'),
  client.get('of another'),
  client.keys('*').then((keys) => keys.sort()),
  client.acl('WHOAMI'),
  client.get('shop:0'),
  client.del('shop:h', 'shop:z', 'shop:n'),
];

async function run(client: Client) {
  await ready(client);
  await client.ping();
  const first = await outcomes(program(client));
  // Authenticated again, and with what was issued meanwhile.
  const closed = new Promise((resolve) => client.once('close', resolve));
  client.stream.destroy();
  await closed;
  const meanwhile = await outcomes(program(client));
  await until(() => client.status === 'ready', 'the client is connected again');
  return { first, meanwhile, again: await outcomes(program(client)) };
}

describe.each(HOSTS)('$name', (host) => {
  describe.each(host.name === 'ioredis 6' ? [2, 3] : [2])('RESP%i', (protocol) => {
    it.for(WAY_AND_USER)('answers as a plain client over $way, as $user', async ({ way, user }, { skip }) => {
      skip(way.startsWith('TLS') && secured.tlsPort === undefined, 'the server is built without TLS');
      const options: RedisOptions = {
        ...WAYS[way]?.(),
        ...(host.name === 'ioredis 6' && { protocol: protocol as 2 | 3 }),
        ...(user === 'a user of the ACL' && secured.user),
        retryStrategy: () => 5,
      };
      const plain = await run(create(host, options));
      const client = coalesce(create(host, options));
      expect(await run(client)).toEqual(plain);
      expect(client.coalescer.stats().fastCommands).toBeGreaterThan(2 * TEXTS.length);
      expect(plain.again).toContainEqual({ value: user === 'a user of the ACL' ? secured.user.username : 'default' });
      const refused = plain.first.filter(
        (reply) => typeof reply === 'object' && 'error' in reply && /NOPERM/.test(reply.error),
      );
      expect(refused).toHaveLength(user === 'a user of the ACL' ? 2 : 0);
    });
  });

  it('is refused as a plain client with a wrong password', async () => {
    const story = async (make: (client: Client) => Client) => {
      const errors: string[] = [];
      const options = { host: '127.0.0.1', port: secured.server.port, username: 'shop', password: 'wrong' };
      const client = make(create(host, { ...options, retryStrategy: () => null }));
      client.on('error', (error) => errors.push(String(error)));
      return { replies: await outcomes([client.get('shop:0'), cold(client, 'get', 'shop:0')]), errors };
    };
    const plain = await story((client) => client);
    expect(await story((client) => coalesce(client))).toEqual(plain);
    expect(JSON.stringify(plain)).toMatch(/WRONGPASS|NOAUTH/);
  });
});
