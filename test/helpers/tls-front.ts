import { type AddressInfo, connect, type Socket } from 'node:net';
import { createServer, type TlsOptions } from 'node:tls';
import { generate } from 'selfsigned';
import { onTestFinished } from 'vitest';

export type Certificate = { readonly key: string; readonly cert: string };

/** A certificate that signs itself. */
export async function certificate(name: string, { from, to }: { from?: Date; to?: Date } = {}): Promise<Certificate> {
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    ...(from && { notBeforeDate: from }),
    ...(to && { notAfterDate: to }),
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: name }] }],
  });
  return { key: made.private, cert: made.cert };
}

/** TLS in front of a server, on loopback, until the running test ends. */
export async function startTlsFront(url: string, options: TlsOptions): Promise<{ port: number; reached(): number }> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let reached = 0;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  };
  const front = createServer(options, (client) => {
    const server = connect(Number(port), hostname);
    keep(client);
    keep(server);
    client.on('data', () => void reached++);
    client.pipe(server).pipe(client);
  });
  front.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    front.close();
  });
  return { port: (front.address() as AddressInfo).port, reached: () => reached };
}
