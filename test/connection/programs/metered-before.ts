// Run by wrapped-sockets.test.ts, in a process of its own: a meter of traffic is there before the package is loaded.
import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';

const [method, kind, url, key] = process.argv.slice(2) as ['push' | 'emit', 'plain' | 'coalesced', string, string];
const owner = (method === 'push' ? Readable.prototype : EventEmitter.prototype) as unknown as Record<
  string,
  (...args: unknown[]) => unknown
>;
const original = owner[method] as (...args: unknown[]) => unknown;
let stream: { readonly bytesRead: number } | undefined;
let counted = 0;
owner[method] = function (this: unknown, ...args: unknown[]) {
  const bytes = method === 'push' ? args[0] : args[0] === 'data' && args[1];
  if (this === stream && bytes instanceof Buffer) counted += bytes.length;
  return original.apply(this, args);
};

const { Redis } = createRequire(import.meta.url)('ioredis') as typeof import('ioredis');
const { coalesce } = await import('ioredis-coalesce/coalesce');
const client = new Redis(url);
if (kind === 'coalesced') coalesce(client);
await client.set(key, 'v'.repeat(100_000));
// A coalesced client's connection is read in place once it has had so many fast replies.
for (let replies = 0; replies <= 32; replies += 1) await client.strlen(key);
stream = (client as unknown as { stream: { readonly bytesRead: number } }).stream;
const before = stream.bytesRead;
await Promise.all([client.get(key), client.strlen(key)]);
console.log(JSON.stringify({ counted, read: stream.bytesRead - before }));
client.disconnect();
