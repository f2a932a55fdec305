import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server, type ServerOptions } from 'socket.io';
import { type Socket as ClientSocket, io } from 'socket.io-client';
import { onTestFinished } from 'vitest';

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
