import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server, type ServerOptions } from 'socket.io';
import { type Socket as ClientSocket, io } from 'socket.io-client';
import { expect, onTestFinished } from 'vitest';
import { until } from '../../helpers/hosts.js';

/** A Socket.IO server on loopback, and one client of it. */
export interface Site {
  readonly server: Server;
  readonly socket: ClientSocket;
  /** What the client got, as event and argument. */
  readonly received: [event: string, argument: unknown][];
}

/** How long an event may take, in ms; a loaded machine is slow. */
export const PATIENCE = 15_000;

type Adapter = ServerOptions['adapter'];

/** Two servers that know of each other through Redis alone. Both are closed when the running test ends. */
export async function connectPair(
  adapters: readonly [Adapter, Adapter],
  options: Partial<ServerOptions> = {},
): Promise<[Site, Site]> {
  const [first, second] = adapters.map((adapter) => createSite({ ...options, adapter })) as [
    Promise<Site>,
    Promise<Site>,
  ];
  return [await first, await second];
}

/** Sends many events from one server, and expects them in order at the clients of both. */
export async function expectBroadcasts(here: Site, there: Site): Promise<void> {
  const events: [event: string, argument: unknown][] = [
    ...Array.from({ length: 100 }, (_, count): [string, unknown] => ['tick', count]),
    ['bytes', Buffer.from([0, 13, 10, 255])],
    ['end', 'ünï ☕'],
  ];
  for (const event of events) here.server.emit(...event);
  for (const { received } of [here, there]) {
    await until(() => received.at(-1)?.[0] === 'end', 'the last event', PATIENCE);
    expect(received).toEqual(events);
  }
}

async function createSite(options: Partial<ServerOptions>): Promise<Site> {
  const http = createServer();
  const server = new Server(http, options);
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  server.on('connection', (socket) => {
    socket.on('join', async (room: string, joined: () => void) => {
      await socket.join(room);
      joined();
    });
  });
  const { port } = http.address() as AddressInfo;
  const socket = io(`http://127.0.0.1:${port}`, {
    transports: ['websocket'],
    reconnectionDelay: 20,
    reconnectionDelayMax: 20,
  });
  onTestFinished(async () => {
    socket.disconnect();
    await server.close();
  });
  const received: Site['received'] = [];
  socket.onAny((event: string, argument: unknown) => received.push([event, argument]));
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('connect_error', reject);
  });
  return { server, socket, received };
}
