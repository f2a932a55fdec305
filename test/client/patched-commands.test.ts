/** Methods of the host's `Command` class, which its packages export: an APM or an encryption layer replaces them. */
import { CODES } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { connectAs, expectAsPlain, type Kind } from '../helpers/beside.js';
import { CLUSTER_HOSTS, type ClusterClient, createCluster, warm } from '../helpers/cluster/clients.js';
import { type Client, type CoalescedClient, HOSTS, type Host } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings(CODES.REPLACED, CODES.UNKNOWN_CLIENT);

const prefix = uniquePrefix('patched-commands');

interface Command {
  name: string;
  args: unknown[];
}
type Method = (this: Command, ...args: unknown[]) => unknown;

/** By the method that is wrapped: what the wrapper does before and after. */
const WRAPPED: Readonly<Record<string, { before?: (command: Command) => void; after?: (result: unknown) => unknown }>> =
  {
    transformReply: { after: (reply) => (typeof reply === 'string' ? `${reply}, read` : reply) },
    stringifyArguments: {
      before: (command) => {
        if (command.name === 'set') command.args[1] = `${String(command.args[1])}, written`;
      },
    },
    toWritable: {
      before: (command) => {
        if (command.name === 'set') command.args[1] = 'replaced';
      },
    },
    initPromise: {
      before: (command) => {
        if (command.name === 'set') command.args = [...command.args, 'EX', '100'];
      },
    },
    _convertValue: {},
    _iterateKeys: {},
    getKeys: {},
    getSlot: {},
    setTimeout: {},
  };

function wrap(host: Host, name: string): { calls: number; restore(): void } {
  const { prototype } = (host.Redis as unknown as { Command: { prototype: Record<string, Method> } }).Command;
  const original = prototype[name] as Method;
  const { before, after } = WRAPPED[name] as (typeof WRAPPED)[string];
  const wrapper = { calls: 0, restore: () => void Object.assign(prototype, { [name]: original }) };
  prototype[name] = function (...args) {
    wrapper.calls += 1;
    before?.(this);
    const result = original.apply(this, args);
    return after === undefined ? result : after(result);
  };
  onTestFinished(wrapper.restore);
  return wrapper;
}

async function use(client: Client | ClusterClient, key: string): Promise<unknown> {
  const values = await Promise.all([client.set(key, 'v'), client.get(key), client.call('get', key)]);
  const batches = [
    await client.pipeline().set(`${key}p`, 'v').get(`${key}p`).exec(),
    await client.multi().set(`${key}m`, 'v').get(`${key}m`).exec(),
  ];
  const ttls = await Promise.all([key, `${key}p`, `${key}m`].map(async (each) => (await client.ttl(each)) > 0));
  for (const each of [key, `${key}p`, `${key}m`]) await client.del(each);
  return { values, batches, ttls };
}

/** Uses a plain and a coalesced client with a method wrapped, before or after they were used without, and compares. */
async function expectWrappedAsPlain(
  host: Host,
  name: string,
  connect: (kind: Kind) => Promise<Client | ClusterClient>,
): Promise<void> {
  for (const moment of ['before', 'in use']) {
    await expectAsPlain(async (kind) => {
      const wrapped = moment === 'before' ? wrap(host, name) : undefined;
      const client = await connect(kind);
      const key = `${prefix}${name}`;
      const unwrapped = moment === 'before' ? undefined : await use(client, key);
      const now = wrapped ?? wrap(host, name);
      now.calls = 0;
      const used = await use(client, key);
      const { calls } = now;
      now.restore();
      return { unwrapped, used, calls };
    });
  }
}

describe.each(HOSTS)('$name: Command.prototype', (host) => {
  it.each(Object.keys(WRAPPED))('%s, wrapped before or while clients are in use', (name) =>
    expectWrappedAsPlain(host, name, (kind) => connectAs(kind, host, redisUrl())),
  );

  describe('under a Cluster', () => {
    let nodes: RedisCluster;
    beforeAll(async () => {
      nodes = await startCluster({ masters: 3, replicas: 0 });
    });
    afterAll(() => nodes?.stop());

    it.each(Object.keys(WRAPPED))('%s, wrapped before or while Clusters are in use', (name) =>
      expectWrappedAsPlain(host, name, (kind) => {
        const clusters = CLUSTER_HOSTS.find((each) => each.name === host.name) as (typeof CLUSTER_HOSTS)[number];
        return warm(createCluster(clusters, kind, nodes));
      }),
    );
  });

  it('unwrapped again: commands are fast again', async () => {
    const client = (await connectAs('coalesced', host, redisUrl())) as CoalescedClient;
    const { restore } = wrap(host, 'toWritable');
    await client.echo('x');
    expect(client.coalescer.stats()).toMatchObject({ fastCommands: 0, fallbacks: { patched: 1 } });
    restore();
    await client.echo('x');
    expect(client.coalescer.stats()).toMatchObject({ fastCommands: 1, fallbacks: { patched: 1 } });
  });
});
