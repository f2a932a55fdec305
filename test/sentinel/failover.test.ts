import type { RedisOptions } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Load, printFigures } from '../helpers/cluster/load.js';
import { SentinelGroup } from '../helpers/cluster/sentinel.js';
import { type Client, endWithTest, HOSTS, type Host, ioredis6, outcomes, ready } from '../helpers/hosts.js';

/** The long form runs the failovers with every host. */
const UNDER_LOAD = process.env.SOAK_MINUTES ? HOSTS : [ioredis6];

/** For the tests that leave it as it is. */
let group: SentinelGroup;

beforeAll(async () => {
  group = await new SentinelGroup().start();
});
afterAll(() => group?.stop());

function create(group: SentinelGroup, host: Host, options: RedisOptions = {}): Client {
  const Redis = host.Redis as unknown as new (options: RedisOptions) => Client;
  return endWithTest(new Redis({ sentinels: group.sentinels, name: group.name, ...options }));
}

describe.each(HOSTS)('$name with sentinels', (host) => {
  it.each([
    ['the master', { role: 'master' as const }],
    ['a replica', { role: 'slave' as const }],
  ])('answers as a plain client that is led to %s', async (_, options) => {
    const program = (client: Client) => [
      client.set('sentinel', '1'),
      client.get('sentinel'),
      client.hget('nothing', 'field'),
      client.call('role').then((reply) => (reply as unknown[])[0]),
      client.multi().get('sentinel').exec(),
    ];
    const plain = await outcomes(program(await ready(create(group, host, options))));
    const coalesced = coalesce(await ready(create(group, host, options)));
    await coalesced.ping();
    expect(await outcomes(program(coalesced))).toEqual(plain);
    expect(coalesced.coalescer.stats().fastCommands).toBeGreaterThan(0);
  });
});

/**
 * Redis replicates asynchronously, so a failover may lose what the old master acknowledged last, whatever the client:
 * a read may find an older value of its key. Nothing else may happen.
 */
describe.each(UNDER_LOAD)('$name with sentinels, under load', { timeout: 180_000 }, (host) => {
  it('follows an orderly failover, and then one from a master that is killed', async () => {
    const own = await new SentinelGroup().start();
    onTestFinished(() => own.stop());
    const client = coalesce(
      await ready(
        create(own, host, { maxRetriesPerRequest: null, retryStrategy: () => 50, sentinelRetryStrategy: () => 50 }),
      ),
    );
    const load = new Load(client);
    await load.more(1_000);
    const first = await own.master();
    await own.failOver();
    await load.more(2_000);
    const second = await own.master();
    expect(second.port).not.toBe(first.port);
    await own.killMaster();
    await load.more(2_000);
    const figures = await load.stop();
    printFigures(`${host.name}, two failovers by sentinels under load`, figures);
    expect((await own.master()).port).toBe(first.port);
    expect(figures).toMatchObject({ misdelivered: [], open: 0 });
    // A master that has just become a replica refuses writes until the connection ends.
    for (const error of Object.keys(figures.errors)) expect(error).toMatch(/READONLY|UNBLOCKED/);

    const after = new Load(client, { name: 'after' });
    await after.more(5_000);
    expect(await after.stop()).toMatchObject({ errors: {}, misdelivered: [], lost: 0, open: 0 });
    expect(client.coalescer.stats().inFlight).toBe(0);
  });
});
