import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A TCP proxy on loopback that spoils connections on request; it is closed when the running test ends. */
export interface FaultyProxy {
  readonly url: string;
  /** Connections accepted so far. */
  readonly connections: number;
  /** What the clients have sent, on all connections. */
  received(): string;
  /** Replies get stuck from now on. */
  stall(): void;
  /** Replies flow again, the stuck ones first. */
  resume(): void;
  /** Lets `bytes` more bytes of replies through on the open connection, then resets it. */
  resetAfterReplyBytes(bytes: number): void;
  /** Resets all open connections. */
  reset(): void;
  /** Nothing that is sent on the open connections reaches the server from now on. */
  swallowRequests(): void;
  /** Passes replies on in pieces of `bytes` bytes, each in a packet of its own. */
  cutRepliesInto(bytes: number): void;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Whether no more replies are let through. */
  cut: boolean;
  /** Whether no more requests are. */
  deaf: boolean;
}

export async function startProxy(target: string): Promise<FaultyProxy> {
  const { hostname, port } = new URL(target);
  const links = new Set<Link>();
  const requests: Buffer[] = [];
  let connections = 0;
  let budget = Number.POSITIVE_INFINITY;
  let pieceSize = Number.POSITIVE_INFINITY;
  let stalled = false;
  const stuck: [Link, Buffer][] = [];

  const reset = (link: Link): void => {
    links.delete(link);
    link.client.resetAndDestroy();
    link.server.destroy();
  };

  const reply = async (link: Link, chunk: Buffer): Promise<void> => {
    if (link.cut) return;
    const allowed = chunk.subarray(0, Math.min(chunk.length, budget));
    budget -= allowed.length;
    if (budget === 0) {
      budget = Number.POSITIVE_INFINITY;
      link.cut = true;
      // A reset discards what the client has not read yet, and this part it must have read.
      setTimeout(reset, 20, link);
    }
    const size = pieceSize;
    for (let start = 0; start < allowed.length; start += size) {
      link.client.write(allowed.subarray(start, Math.min(start + size, allowed.length)));
      // The next piece in a packet of its own.
      if (Number.isFinite(size)) await new Promise(setImmediate);
    }
  };

  const listener = createServer({ noDelay: true }, (client) => {
    connections += 1;
    const server = connect({ port: Number(port), host: hostname, noDelay: true });
    const link: Link = { client, server, cut: false, deaf: false };
    links.add(link);
    client.on('error', () => {});
    link.server.on('error', () => {});
    client.on('data', (chunk) => {
      requests.push(chunk);
      if (!link.deaf) link.server.write(chunk);
    });
    let passing = Promise.resolve();
    link.server.on('data', (chunk) => {
      if (stalled) stuck.push([link, chunk]);
      else passing = passing.then(() => reply(link, chunk));
    });
    client.on('close', () => {
      links.delete(link);
      link.server.end();
    });
    link.server.on('close', () => void passing.then(() => client.end()));
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(() => {
    for (const link of links) reset(link);
    listener.close();
  });

  return {
    url: `redis://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    get connections() {
      return connections;
    },
    received: () => Buffer.concat(requests).toString(),
    stall() {
      stalled = true;
    },
    resume() {
      stalled = false;
      for (const [link, chunk] of stuck.splice(0)) void reply(link, chunk);
    },
    resetAfterReplyBytes(bytes) {
      budget = bytes;
    },
    reset() {
      for (const link of links) reset(link);
    },
    swallowRequests() {
      for (const link of links) link.deaf = true;
    },
    cutRepliesInto(bytes) {
      pieceSize = bytes;
    },
  };
}
