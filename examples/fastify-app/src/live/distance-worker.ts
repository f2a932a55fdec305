/**
 * The process of the delaying proxy: forwards data, each way half a round trip later. Timers are accurate only to a
 * millisecond, so it checks the clock every turn while data waits, which would load the service's own loop.
 */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { DistanceMessage, DistanceRequest } from './distance.js';

const send = (message: DistanceMessage): void => {
  process.send?.(message);
};

// However the service ends, its proxy ends with it.
process.on('disconnect', () => process.exit());
process.on('message', ({ redisUrl, roundTripMs }: DistanceRequest) => {
  const { protocol, hostname, port } = new URL(redisUrl);
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) };
  const proxy = createServer({ noDelay: true }, (client) => {
    const server = protocol === 'rediss:' ? connectTls(place) : connect(place);
    server.setNoDelay(true);
    passOn(client, server, roundTripMs / 2);
    passOn(server, client, roundTripMs / 2);
  });
  proxy.on('error', (error) => send({ error: `the proxy does not listen: ${error.message}` }));
  proxy.listen(0, '127.0.0.1', () => send({ port: (proxy.address() as AddressInfo).port }));
});

function passOn(from: Socket, to: Socket, delayMs: number): void {
  const waiting: { readonly due: number; readonly chunk: Buffer }[] = [];
  const look = (): void => {
    while (waiting[0] !== undefined && waiting[0].due <= performance.now()) to.write(waiting.shift()!.chunk);
    if (waiting.length > 0) setImmediate(look);
  };
  from.on('data', (chunk: Buffer) => {
    waiting.push({ due: performance.now() + delayMs, chunk });
    if (waiting.length === 1) setImmediate(look);
  });
  // The other side learns of an error by its `close`.
  from.on('error', () => {});
  from.on('close', () => to.destroy());
}
