import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { generate } from 'selfsigned';
import { Waker } from './waker.js';

const LOOPING_MS = 0.13;

/** What clients connect to. */
export interface DelayProxy {
  readonly url: string;
  /** The certificate of its TLS, in PEM. */
  readonly ca?: string;
  close(): Promise<void>;
}

/** A server further away, or behind TLS: passes everything on, each way half a round trip later. On loopback. */
export async function openDelayProxy(target: string, roundTripMs: number, tls = false): Promise<DelayProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const wakers: Waker[] = [];
  const accept = (client: Socket) => {
    const server = connect({ host: hostname, port: Number(port || 6379), noDelay: true });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      if (roundTripMs === 0) {
        from.on('data', (chunk: Buffer) => void (to.writable && to.write(chunk)));
      } else {
        const waker = new Waker(LOOPING_MS);
        wakers.push(waker);
        passOn(from, to, roundTripMs / 2, waker);
      }
      from.on('close', () => to.destroy());
    }
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      // The other side is told by `close`.
      socket.on('error', () => {});
    }
  };
  const certificate = tls ? await certify() : undefined;
  const listener =
    certificate === undefined
      ? createServer({ noDelay: true }, accept)
      : createTlsServer({ key: certificate.private, cert: certificate.cert, noDelay: true }, accept);
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const own = (listener.address() as AddressInfo).port;
  const place = certificate === undefined ? `redis://127.0.0.1:${own}` : `rediss://localhost:${own}`;
  return {
    url: place,
    ...(certificate === undefined ? {} : { ca: certificate.cert }),
    async close(): Promise<void> {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(wakers.map((waker) => waker.close()));
      await closed;
    },
  };
}

/** Passes on what `from` sends, in order, `delayMs` later. */
function passOn(from: Socket, to: Socket, delayMs: number, waker: Waker): void {
  const waiting: { readonly due: number; readonly chunk: Buffer }[] = [];
  let scheduled = false;

  const schedule = (): void => {
    const next = waiting[0];
    if (scheduled || next === undefined) return;
    scheduled = true;
    waker.call(next.due, pass);
  };
  const pass = (): void => {
    scheduled = false;
    const now = performance.now();
    while (waiting[0] !== undefined && waiting[0].due <= now) {
      const { chunk } = waiting.shift()!;
      if (to.writable) to.write(chunk);
    }
    schedule();
  };

  from.on('data', (chunk: Buffer) => {
    waiting.push({ due: performance.now() + delayMs, chunk });
    schedule();
  });
}

function certify() {
  return generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
  });
}
