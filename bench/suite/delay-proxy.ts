import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { systemNow, TimedWriter } from './timed-writer.js';

/** What a piece takes through the proxy beside the delay: the loop is told of it, and the thread wakes. */
const OWN_MS = 0.06;

/** What clients connect to. */
export interface DelayProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** A server further away: passes everything on, each way half a round trip later. On loopback; TLS passes through. */
export async function openDelayProxy(target: string, roundTripMs: number): Promise<DelayProxy> {
  const { hostname, port } = new URL(target);
  const delayMs = Math.max(0, roundTripMs / 2 - OWN_MS);
  const sockets = new Set<Socket>();
  const writer = await TimedWriter.start();
  const listener = createServer({ noDelay: true }, async (client) => {
    const server = connect({ host: hostname, port: Number(port || 6379), noDelay: true });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      // The other side is told by `close`.
      from.on('error', () => {});
    }
    client.pause();
    await once(server, 'connect').catch(() => {});
    passOn(client, server);
    passOn(server, client);
  });
  const passOn = (from: Socket, to: Socket) => {
    const fd = descriptorOf(to);
    from.on('data', (piece: Buffer) => void writer.write(fd, piece, systemNow() + delayMs));
    from.resume();
  };
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const own = (listener.address() as AddressInfo).port;
  const isSecure = target.startsWith('rediss:');
  return {
    url: isSecure ? `rediss://localhost:${own}` : `redis://127.0.0.1:${own}`,
    async close(): Promise<void> {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of sockets) socket.destroy();
      await writer.close();
      await closed;
    },
  };
}

/** Node has no public name for it. -1 on Windows, and after the end. */
export function descriptorOf(socket: Socket): number {
  return (socket as Socket & { readonly _handle?: { readonly fd?: number } | null })._handle?.fd ?? -1;
}
