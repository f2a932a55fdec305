import { tracingChannel } from 'node:diagnostics_channel';
import { type BatchEvent, CHANNELS, type ConnectionEvent, coalesce } from 'ioredis-coalesce/coalesce';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cold } from '../helpers/cold.js';
import {
  type Client,
  type CoalescedClient,
  HOSTS,
  type Host,
  ioredis6,
  outcomes,
  ready,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { handshake, startScriptedServer } from '../helpers/scripted-server.js';
import { spyOnSocket } from '../helpers/sockets.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_UNKNOWN_CLIENT');

const SECRET = uniquePrefix('secret');
const { host: ADDRESS } = new URL(redisUrl());

let unsubscribe: (() => void)[] = [];

function listen<T extends object>(name: string): { started: T[]; ended: T[] } {
  const channel = tracingChannel<string, T>(name);
  const heard = { started: [] as T[], ended: [] as T[] };
  const onStart = (event: unknown) => void heard.started.push(event as T);
  const onEnd = (event: unknown) => void heard.ended.push(event as T);
  channel.start.subscribe(onStart);
  channel.end.subscribe(onEnd);
  unsubscribe.push(() => {
    channel.start.unsubscribe(onStart);
    channel.end.unsubscribe(onEnd);
  });
  return heard;
}

let clients: Client[] = [];

/** Connections that end later would be events of the next test. */
afterEach(async () => {
  for (const leave of unsubscribe) leave();
  unsubscribe = [];
  for (const client of clients) client.disconnect();
  await until(() => clients.every(({ status }) => status === 'end'), 'the clients to end');
  clients = [];
});

async function warmed(
  host: Host,
  ...options: [Parameters<Host['create']>[1]?, Parameters<Host['createCoalesced']>[2]?]
) {
  const client = await ready(host.createCoalesced(redisUrl(), options[0], { schedule: 'immediate', ...options[1] }));
  clients.push(client);
  await client.echo('warm');
  return client;
}

it('the names: are stable, since users subscribe by them', () => {
  expect(CHANNELS).toEqual({ BATCH: 'ioredis-coalesce:batch', CONNECTION: 'ioredis-coalesce:connection' });
});

describe.each(HOSTS)('$name: ioredis-coalesce:batch', (host) => {
  it('reports the content of each batch, and `end` when its bytes were handed to the socket', async () => {
    const client = await warmed(host);
    const socket = spyOnSocket(client);
    const { started, ended } = listen<BatchEvent>(CHANNELS.BATCH);
    const writesAtStart: number[] = [];
    const onStart = () => void writesAtStart.push(socket.writes.length);
    tracingChannel(CHANNELS.BATCH).start.subscribe(onStart);
    unsubscribe.push(() => void tracingChannel(CHANNELS.BATCH).start.unsubscribe(onStart));

    const before = performance.now();
    await Promise.all([
      client.echo('a'),
      cold(client, 'ECHO', 'b'),
      client.echo('c'),
      client.pipeline().time().echo('d').exec(),
    ]);
    expect(started).toEqual([
      {
        size: 5,
        fastCommands: 4,
        fallbackCommands: 1,
        bytes: Buffer.concat(socket.writes).length,
        reason: 'schedule',
        waited: expect.any(Number),
        address: ADDRESS,
      },
    ]);
    expect(writesAtStart).toEqual([0]);
    expect(ended).toEqual(started);
    expect(started[0]?.waited).toBeGreaterThan(0);
    expect(started[0]?.waited).toBeLessThan(performance.now() - before);

    await client.echo('alone');
    expect(ended).toHaveLength(2);
    expect(ended[1]).toMatchObject({ size: 1, fastCommands: 1, fallbackCommands: 0, reason: 'schedule' });
  });

  it('agrees with the counters of stats()', async () => {
    const client = await warmed(host, {}, { maxBatchSize: 7 });
    const { ended } = listen<BatchEvent>(CHANNELS.BATCH);
    const before = client.coalescer.stats();
    await Promise.all(Array.from({ length: 30 }, (_, index) => (index % 3 ? client.echo('a') : cold(client, 'time'))));
    client.coalescer.flush();
    const lone = client.echo('sent by hand');
    client.coalescer.flush();
    await lone;
    const after = client.coalescer.stats();
    const sum = (key: 'size' | 'fastCommands' | 'bytes') => ended.reduce((total, event) => total + event[key], 0);
    expect(sum('size')).toBe(after.commands - before.commands);
    expect(sum('fastCommands')).toBe(after.fastCommands - before.fastCommands);
    expect(sum('bytes')).toBe(after.bytesWritten - before.bytesWritten);
    expect(ended).toHaveLength(after.batches - before.batches);
    expect(ended.map(({ reason }) => reason)).toEqual(['size', 'size', 'size', 'size', 'schedule', 'manual']);
    expect(ended.map(({ size }) => size)).toEqual([7, 7, 7, 7, 2, 1]);
  });

  it.each([{}, { maxInFlight: 2 }])('counts which commands of a pipeline the client has made, %j', async (options) => {
    const client = await warmed(host, {}, options);
    const { ended } = listen<BatchEvent>(CHANNELS.BATCH);
    const before = client.coalescer.stats().fastCommands;
    // The second one waits for room under `maxInFlight`.
    const pipelines = [1, 2].map(() => client.pipeline().echo('a').call('ECHO', 'b').echo('c').echo('d').exec());
    await Promise.all(pipelines);
    const sum = (key: 'size' | 'fastCommands' | 'fallbackCommands') =>
      ended.reduce((total, event) => total + event[key], 0);
    expect([sum('size'), sum('fastCommands'), sum('fallbackCommands')]).toEqual([8, 6, 2]);
    expect(client.coalescer.stats().fastCommands - before).toBe(6);
  });
});

describe('ioredis-coalesce:connection', () => {
  type Change = Pick<ConnectionEvent, 'change' | 'mode'> & { reason?: string };
  const changes = (events: readonly ConnectionEvent[]): Change[] =>
    events.map(({ change, mode, reason, address }) => {
      expect(address).toMatch(/^127\.0\.0\.1:\d+$/);
      return { change, mode, ...(reason === undefined ? {} : { reason }) };
    });

  it('reports attached, and detached by detach(), each with start and end', async () => {
    const { started, ended } = listen<ConnectionEvent>(CHANNELS.CONNECTION);
    const client = await warmed(ioredis6);
    expect(started).toEqual([{ change: 'attached', mode: 'fast', address: ADDRESS }]);
    client.coalescer.detach();
    expect(ended).toEqual([
      { change: 'attached', mode: 'fast', address: ADDRESS },
      { change: 'detached', mode: 'detached', reason: 'detach()', address: ADDRESS },
    ]);
    coalesce(client);
    expect(changes(ended.slice(2))).toEqual([{ change: 'attached', mode: 'fast' }]);
  });

  it('reports detached when a connection is lost, and attached with the next one', async () => {
    const proxy = await startProxy(redisUrl());
    const { ended } = listen<ConnectionEvent>(CHANNELS.CONNECTION);
    const client = await ready(ioredis6.createCoalesced(proxy.url, { retryStrategy: () => 5 }));
    clients.push(client);
    proxy.reset();
    await until(() => ended.length === 3, 'the connection to be lost and another one made');
    await client.quit();
    await until(() => ended.length === 4, 'the connection to be closed');
    const closed = { change: 'detached', mode: 'detached', reason: 'the connection is closed' };
    expect(changes(ended)).toEqual([
      { change: 'attached', mode: 'fast' },
      closed,
      { change: 'attached', mode: 'fast' },
      closed,
    ]);
  });

  it('reports mode cork, with the reason, for a client without the fast path', async () => {
    const { ended } = listen<ConnectionEvent>(CHANNELS.CONNECTION);
    clients.push(await ready(ioredis6.createCoalesced(redisUrl(), {}, { fastPath: false })));
    const odd = class extends ioredis6.Redis {
      override echo(): never {
        throw new Error('not the host’s own');
      }
    };
    const client = coalesce(new odd(redisUrl(), {}) as Client);
    clients.push(await ready(client));
    expect(changes(ended)).toEqual([
      { change: 'attached', mode: 'cork', reason: 'the option fastPath is false' },
      { change: 'attached', mode: 'cork', reason: expect.stringContaining('commander.echo was changed') },
    ]);
  });

  it('a reply that cannot be distinguished from the next one downgrades the connection', async () => {
    const server = await startScriptedServer(
      (command) => handshake(command) ?? (command[0] === 'incr' ? '?\r\n' : '+OK\r\n'),
    );
    const { ended } = listen<ConnectionEvent>(CHANNELS.CONNECTION);
    const client = await ready(ioredis6.createCoalesced(server.url, { retryStrategy: () => null }));
    clients.push(client);
    await client.echo('decoded');
    await outcomes([client.incr('a')]);
    expect(changes(ended).slice(0, 2)).toEqual([
      { change: 'attached', mode: 'fast' },
      {
        change: 'downgraded',
        mode: 'cork',
        reason: "replies, the queue or the stream's write are not as expected, the client decodes all replies",
      },
    ]);
  });
});

describe('the content of the events', () => {
  const use = (client: Client) =>
    outcomes([
      client.set(SECRET, SECRET),
      client.hset(`${SECRET}h`, { [SECRET]: SECRET }),
      cold(client, 'GET', SECRET),
      client.incr(SECRET),
      client.eval(`return '${SECRET}'`, 1, SECRET, SECRET),
      client.multi().get(SECRET).exec(),
      client.auth(SECRET),
      client.del(SECRET, `${SECRET}h`),
    ]);

  it('includes no argument, no name of a command and no option', async () => {
    const batches = listen<BatchEvent>(CHANNELS.BATCH);
    const connections = listen<ConnectionEvent>(CHANNELS.CONNECTION);
    const client = await warmed(ioredis6, { connectionName: SECRET });
    await use(client);
    client.coalescer.detach();
    const text = JSON.stringify([batches, connections]);
    expect(batches.ended.length).toBeGreaterThan(1);
    expect(connections.ended).toHaveLength(2);
    expect(text).not.toContain(SECRET);
    expect(text).not.toMatch(/"(?:set|hset|get|incr|eval|multi|auth|del)"/i);
    const keys = [...batches.ended, ...connections.ended].flatMap((event) => Object.keys(event));
    // Node's `traceSync` adds the result of what is traced, which is nothing.
    expect(new Set(keys)).toEqual(
      new Set([
        'result',
        'size',
        'fastCommands',
        'fallbackCommands',
        'bytes',
        'reason',
        'waited',
        'address',
        'change',
        'mode',
        'reason',
      ]),
    );
  });
});

describe('without subscribers', () => {
  let asked: number;
  let client: CoalescedClient;

  /** The address is part of every event and of nothing else, so building an event asks the socket for its peer. */
  beforeEach(async () => {
    asked = 0;
    client = await warmed(ioredis6);
    Object.defineProperty((client as unknown as { stream: object }).stream, 'remoteAddress', {
      get: () => {
        asked += 1;
        return '127.0.0.1';
      },
    });
  });

  it('builds no event', async () => {
    await Promise.all([client.echo('a'), cold(client, 'ECHO', 'b')]);
    client.coalescer.detach();
    expect(asked).toBe(0);
  });

  it('builds no event after unsubscribing; a subscriber of only `end` gets events', async () => {
    const channel = tracingChannel(CHANNELS.BATCH);
    const seen: unknown[] = [];
    const onEnd = (event: unknown) => void seen.push(event);
    channel.end.subscribe(onEnd);
    await client.echo('a');
    expect(seen).toMatchObject([{ size: 1, fastCommands: 1 }]);
    expect(asked).toBe(1);
    channel.end.unsubscribe(onEnd);
    await client.echo('b');
    expect(seen).toHaveLength(1);
    expect(asked).toBe(1);
  });
});

it('a subscriber that throws: harms neither the batch nor its commands', async () => {
  const client = await warmed(ioredis6);
  const errors: unknown[] = [];
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => errors.push(error));
  const channel = tracingChannel(CHANNELS.BATCH);
  const onStart = () => {
    throw new RangeError('by the subscriber');
  };
  channel.start.subscribe(onStart);
  try {
    expect(await Promise.all([client.echo('a'), client.echo('b')])).toEqual(['a', 'b']);
    await until(() => errors.length > 0, 'the error to be reported');
  } finally {
    channel.start.unsubscribe(onStart);
    process.removeAllListeners('uncaughtException');
    for (const listener of listeners) process.on('uncaughtException', listener);
  }
  expect(errors).toMatchObject([{ message: 'by the subscriber' }]);
  expect(await client.echo('c')).toBe('c');
});
