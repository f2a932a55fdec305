import { createAdapter, createShardedAdapter } from '@socket.io/redis-adapter';
import type { ServerOptions } from 'socket.io';
import { describe, expect, it } from 'vitest';
import { type Client, endWithTest, ready, until } from '../helpers/hosts.js';
import { uniquePrefix } from '../helpers/redis.js';
import { CLIENT_KINDS, type ClientKind, expectTookPart } from './helpers/clients.js';
import { connectPair, expectBroadcasts, PATIENCE, type Site } from './helpers/socket-io-pair.js';

interface Variant {
  readonly adapter: string;
  create(publisher: Client, subscriber: Client, key: string): ServerOptions['adapter'];
}

const VARIANTS: readonly Variant[] = [
  { adapter: 'the adapter', create: (publisher, subscriber, key) => createAdapter(publisher, subscriber, { key }) },
  {
    adapter: 'the sharded adapter',
    create: (publisher, subscriber, key) =>
      createShardedAdapter(publisher, subscriber, { channelPrefix: key, subscriptionMode: 'dynamic' }),
  },
];
const COMBINATIONS = VARIANTS.flatMap((variant) => CLIENT_KINDS.map((kind) => ({ ...variant, kind, name: kind.name })));

describe.each(COMBINATIONS)('@socket.io/redis-adapter: $adapter with $name', ({ create, kind }) => {
  it('broadcasts to the clients of the other server, in order, binary included', async () => {
    const { here, there, publisher } = await connect(create, kind);
    await expectBroadcasts(here, there);
    expectTookPart(kind, publisher, { batched: true, fast: true });
  });

  it('keeps to rooms, also those joined from the other server', async () => {
    const { here, there, publisher } = await connect(create, kind);
    // A sharded adapter subscribes to a room when its first member joins, and nobody says when that took effect.
    await there.socket.emitWithAck('join', 'blue');
    await untilSeen(there, 'blue', () => here.server.to('blue').emit('for', 'blue'));
    here.server.to('red').emit('for', 'red, in vain');
    here.server.in(there.socket.id!).socketsJoin('red');
    await until(() => there.server.of('/').adapter.rooms.has('red'), 'the remote join', PATIENCE);
    await untilSeen(there, 'red', () => here.server.to('red').emit('for', 'red'));
    expect(new Set(there.received.map(([, room]) => room))).toEqual(new Set(['blue', 'red']));
    expect(here.received).toEqual([]);
    expectTookPart(kind, publisher, { batched: false, fast: true });
  });

  it('finds the sockets of all servers and asks the other server', async () => {
    const { here, there, publisher } = await connect(create, kind);
    const sockets = await here.server.fetchSockets();
    expect(sockets.map(({ id }) => id).sort()).toEqual([here.socket.id, there.socket.id].sort());

    there.server.on('ask', (question: string, answer: (text: string) => void) => answer(`${question}: all well`));
    expect(await here.server.serverSideEmitWithAck('ask', 'there')).toEqual(['there: all well']);

    there.socket.on('question', (answer: (text: string) => void) => answer('there'));
    here.socket.on('question', (answer: (text: string) => void) => answer('here'));
    const answers = (await here.server.timeout(10_000).emitWithAck('question')) as string[];
    expect(answers.sort()).toEqual(['here', 'there']);
    expectTookPart(kind, publisher, { batched: false, fast: true });
  });
});

/** Two servers, each with a publisher and a duplicate of it to subscribe with, and each aware of the other. */
async function connect(
  create: Variant['create'],
  kind: ClientKind,
): Promise<{ here: Site; there: Site; publisher: Client }> {
  const key = uniquePrefix('socket.io');
  const publishers = [await ready(kind.create()), await ready(kind.create())] as const;
  const subscribers = publishers.map((publisher) => endWithTest(publisher.duplicate())) as [Client, Client];
  const [here, there] = await connectPair([
    create(publishers[0], subscribers[0], key),
    create(publishers[1], subscribers[1], key),
  ]);
  for (const { server } of [here, there]) {
    while ((await server.of('/').adapter.serverCount()) !== 2);
  }
  for (const subscriber of subscribers) expectTookPart(kind, subscriber, { batched: false, fast: false });
  return { here, there, publisher: publishers[0] };
}

async function untilSeen(site: Site, argument: string, emit: () => void): Promise<void> {
  await until(
    () => {
      emit();
      return site.received.some(([, seen]) => seen === argument);
    },
    `an event with ${argument}`,
    PATIENCE,
  );
}
