/** What is issued in the last moment of a process, or of a stream, is stored: a plain client has written it by then. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundled } from '../helpers/bundled.js';
import { coalescedFake } from '../helpers/fake-connection.js';
import { SEED } from '../helpers/hostile/random.js';
import { ioredis6, ready, until } from '../helpers/hosts.js';
import { type RedisServer, startServer, uniquePrefix } from '../helpers/redis.js';
import { share } from '../helpers/share.js';
import type { Orders } from './programs/exiting-service.js';

const KINDS = ['plain', 'corked', 'coalesced'] as const;

let program: string;
let server: RedisServer;
beforeAll(async () => {
  program = await bundled(fileURLToPath(new URL('programs/exiting-service.ts', import.meta.url)));
  server = await startServer();
});
afterAll(() => server?.stop());

/** Runs the program to its end, whatever that is, and counts which of its writes were stored. */
async function storedBy(orders: Omit<Orders, 'url' | 'serverPid' | 'prefix'>): Promise<number> {
  const { url, pid: serverPid } = server;
  const prefix = uniquePrefix('exit');
  const argument = JSON.stringify({ ...orders, url, serverPid, prefix });
  await new Promise((resolve) => void execFile(process.execPath, [program, argument], resolve));
  process.kill(serverPid, 'SIGCONT');
  const admin = await ready(ioredis6.create(url));
  const keys = Array.from({ length: orders.writes }, (_, index) => `${prefix}${index}`);
  const stored = () => admin.exists(...keys);
  await until(async () => (await stored()) === orders.writes, 'all writes to be stored');
  return admin.del(...keys);
}

/** All is few enough bytes to be read by the server at once: its first reply meets a closed connection. */
describe.each(KINDS)('%s client: writes are stored', (kind) => {
  const half = <T>(cases: readonly T[]) => share(cases, 2, SEED + KINDS.indexOf(kind));

  it.each(half(['the tick', 'an exit listener', 'an exit listener of before'] as const))(
    'issued in %s of process.exit()',
    async (within) => {
      expect(await storedBy({ kind, within, end: 'process.exit()', writes: 8 })).toBe(8);
    },
  );

  it.each(half(['the tick', 'an exit listener', 'an exit listener of before'] as const))(
    'issued in %s of an uncaught exception',
    async (within) => {
      expect(await storedBy({ kind, within, end: 'an uncaught exception', writes: 8 })).toBe(8);
    },
  );

  it.each(half(['the tick', 'an exit listener'] as const))('more than maxInFlight of them, in %s', async (within) => {
    expect(await storedBy({ kind, within, end: 'process.exit()', writes: 200, maxInFlight: 20 })).toBe(200);
  });

  it.each(half(['one of before throws', 'all are removed, those of an earlier client too'] as const))(
    'whatever other code does with the listeners of exit: %s',
    async (listeners) => {
      expect(await storedBy({ kind, within: 'the tick', end: 'process.exit()', listeners, writes: 8 })).toBe(8);
    },
  );

  it('flush() writes them even if the process is killed', async () => {
    expect(await storedBy({ kind, within: 'the tick', end: 'SIGKILL after flush()', writes: 8 })).toBe(8);
  });

  it.each(['process.exit()', 'an uncaught exception', 'terminate() after flush()'] as const)(
    'that end a worker thread: %s',
    async (end) => {
      expect(await storedBy({ kind, within: 'the tick', end, inThread: true, writes: 200 })).toBe(200);
    },
  );
});

it('stream.destroy() with more commands than maxInFlight: all of them have been handed to the socket by then', async () => {
  const { client, socket } = await coalescedFake({ maxInFlight: 3 });
  const names = Array.from({ length: 12 }, (_, index) => `key${index}`);
  for (const [index, name] of names.entries()) {
    (index % 3 === 1 ? client.call('SET', name, 'v') : client.set(name, index % 3 ? 'v' : 'é')).catch(() => {});
  }
  client.stream.destroy();
  expect(socket.written.toString().match(/key\d+/g)).toEqual(names);
  client.disconnect();
});
