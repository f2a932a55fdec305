import { type AddressInfo, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { handshake } from '../scripted-server.js';

/** What a malicious server answers to the first command: `start`, then `filling` until `bytes` bytes are sent. */
export interface Attack {
  readonly start: string;
  readonly filling: string;
  readonly bytes: number;
  /** Whether a coalesced client ends the connection when it sees what is announced; a plain one has no limits. */
  readonly cutOff: boolean;
}

const MB = 2 ** 20;

export const ATTACKS: Readonly<Record<string, Attack>> = {
  'a string of 4 GiB that goes on and on': { start: '$4294967296\r\n', filling: 'x', bytes: 32 * MB, cutOff: true },
  'a string longer than any memory': { start: '$99999999999999999999\r\n', filling: 'x', bytes: 8 * MB, cutOff: true },
  'an array of 2^32 - 1 elements': { start: '*4294967295\r\n', filling: ':1\r\n', bytes: MB, cutOff: true },
  'an array of more elements than JavaScript has': {
    start: '*4294967296\r\n',
    filling: ':1\r\n',
    bytes: MB,
    cutOff: true,
  },
  'arrays of 20 million elements in one another': {
    start: '*1\r\n*20000000\r\n*20000000\r\n',
    filling: ':1\r\n',
    bytes: MB / 4,
    cutOff: true,
  },
  'arrays of a million elements in one another': {
    start: '*1000000\r\n'.repeat(4),
    filling: ':1\r\n',
    bytes: MB / 4,
    cutOff: false,
  },
  'arrays nested beyond the stack': { start: '', filling: '*1\r\n', bytes: MB / 4, cutOff: true },
  'a line without an end': { start: '+', filling: 'x', bytes: 4 * MB, cutOff: true },
  'an error without an end': { start: '-ERR ', filling: 'x', bytes: 4 * MB, cutOff: true },
  'a number without an end': { start: ':', filling: '1', bytes: 4 * MB, cutOff: true },
  'a length without an end': { start: '$', filling: '1', bytes: MB, cutOff: true },
  'replies that nobody asked for': { start: '', filling: '+OK\r\n', bytes: MB / 16, cutOff: false },
};

/** A server on loopback that attacks each client that sends it a command, then ends the connection. */
export async function startAttacker({ start, filling, bytes }: Attack): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    let attacking = false;
    socket.on('data', (request) => {
      for (const name of request.toString('latin1').matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
        const reply = handshake([(name[1] as string).toLowerCase()]);
        if (reply !== undefined) socket.write(reply);
        else if (!attacking) {
          attacking = true;
          send(socket).catch(() => {});
        }
      }
    });
  });
  const block = Buffer.from(filling.repeat(Math.ceil((64 * 1024) / filling.length)));

  async function send(socket: Socket): Promise<void> {
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(start);
    for (let sent = 0; sent < bytes && !socket.destroyed; sent += block.length) {
      const piece = block.subarray(0, bytes - sent);
      if (!socket.write(piece)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
    }
    socket.end();
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
