import { createAdapter } from '@socket.io/redis-streams-adapter';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Client, ready, sleep, until } from '../helpers/hosts.js';
import { uniquePrefix } from '../helpers/redis.js';
import { CLIENT_KINDS, type ClientKind, expectTookPart, recordDuplicates } from './helpers/clients.js';
import { connectPair, expectBroadcasts, PATIENCE, type Site } from './helpers/socket-io-pair.js';

describe.each(CLIENT_KINDS)('@socket.io/redis-streams-adapter with $name', (kind) => {
  it('broadcasts to the clients of the other server, in order, binary included', async () => {
    const { here, there, client } = await connect(kind);
    await expectBroadcasts(here, there);
    expectTookPart(kind, client, { batched: true, fast: true });
  });

  it('keeps to rooms, also those joined from the other server', async () => {
    const { here, there, client } = await connect(kind);
    await there.socket.emitWithAck('join', 'blue');
    here.server.to('blue').emit('for', 'blue');
    here.server.to('red').emit('for', 'red, in vain');
    here.server.in(there.socket.id!).socketsJoin('red');
    here.server.to('red').emit('for', 'red');
    await until(() => there.received.length === 2, 'two events', PATIENCE);
    expect(there.received).toEqual([
      ['for', 'blue'],
      ['for', 'red'],
    ]);
    expect(here.received).toEqual([]);
    expectTookPart(kind, client, { batched: true, fast: true });
  });

  it('finds the sockets of all servers and asks the other server', async () => {
    const { here, there, client } = await connect(kind);
    const sockets = await here.server.fetchSockets();
    expect(sockets.map(({ id }) => id).sort()).toEqual([here.socket.id, there.socket.id].sort());
    there.server.on('ask', (question: string, answer: (text: string) => void) => answer(`${question}: all well`));
    expect(await here.server.serverSideEmitWithAck('ask', 'there')).toEqual(['there: all well']);
    expectTookPart(kind, client, { batched: false, fast: true });
  });

  it('restores a client that lost its connection, with the missed events', async () => {
    const { here, there, client } = await connect(kind);
    there.server.emit('before', 'the loss');
    await until(() => here.received.length === 1, 'the event before the loss', PATIENCE);
    let present = true;
    here.server.of('/').on('connection', (socket) => {
      present = socket.recovered;
    });
    const before = here.socket.id;
    const lost = new Promise((resolve) => here.server.sockets.sockets.get(before!)!.once('disconnect', resolve));
    here.socket.io.engine.close();
    await lost;
    there.server.emit('during', 'the loss');
    await until(() => here.received.length === 2, 'the event that was missed', PATIENCE);
    expect(here.received.map(([event]) => event)).toEqual(['before', 'during']);
    expect([here.socket.recovered, here.socket.id, present]).toEqual([true, before, true]);
    expectTookPart(kind, client, { batched: true, fast: true });
  });
});

/** Two servers, each aware of the other. The adapter reads the stream, and subscribes, on duplicates of its client. */
async function connect(kind: ClientKind): Promise<{ here: Site; there: Site; client: Client }> {
  const prefix = uniquePrefix('streams');
  const options = { streamName: `${prefix}stream`, channelPrefix: prefix, sessionKeyPrefix: `${prefix}session:` };
  const clients = [await ready(kind.create()), await ready(kind.create())] as const;
  const duplicates = clients.map(recordDuplicates);
  onTestFinished(() => {
    for (const duplicate of duplicates.flat()) duplicate.disconnect();
  });
  const [here, there] = await connectPair([createAdapter(clients[0], options), createAdapter(clients[1], options)], {
    connectionStateRecovery: { maxDisconnectionDuration: 60_000 },
  });
  // Each adapter has a client to read with and one to subscribe with. It reads the stream from its end on, and nobody
  // says when that began: by the first message that arrives.
  expect(duplicates.map(({ length }) => length)).toEqual([2, 2]);
  const sites = [here, there];
  for (const { server } of sites) await settled(async () => (await server.of('/').adapter.serverCount()) === 2);
  await settled(async () => {
    for (const { server } of sites) server.emit('hello');
    await sleep(20);
    return sites.every(({ received }) => received.length > 1);
  });
  // What each server said before comes before its last word.
  for (const { server } of sites) server.emit('begin');
  const begun = ({ received }: Site) => received.filter(([event]) => event === 'begin').length === 2;
  await until(() => sites.every(begun), 'the beginning', PATIENCE);
  for (const { received } of sites) received.length = 0;
  for (const duplicate of duplicates.flat()) expectTookPart(kind, duplicate, { batched: false, fast: false });
  return { here, there, client: clients[0] };
}

async function settled(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition()));
}
