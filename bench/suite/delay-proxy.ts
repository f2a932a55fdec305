import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Timers of Node are a millisecond coarse; what is left of a delay is waited for turn by turn. */
const TIMER_SLACK_MS = 1.5;

/** A server further away: passes everything on, each way half a round trip later. On loopback. */
export async function openDelayProxy(target: string, roundTripMs: number) {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ host: hostname, port: Number(port || 6379), noDelay: true });
    join(client, server, roundTripMs / 2);
    join(server, client, roundTripMs / 2);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      // The other side is told by `close`.
      socket.on('error', () => {});
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    url: `redis://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    async close(): Promise<void> {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Passes on what `from` sends, in order, `delayMs` later. */
function join(from: Socket, to: Socket, delayMs: number): void {
  const waiting: { readonly due: number; readonly chunk: Buffer }[] = [];
  let scheduled = false;

  const schedule = (): void => {
    const next = waiting[0];
    if (scheduled || next === undefined) return;
    scheduled = true;
    const wait = next.due - performance.now() - TIMER_SLACK_MS;
    if (wait > 0) setTimeout(pass, wait);
    else setImmediate(pass);
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
  from.on('close', () => to.destroy());
}
