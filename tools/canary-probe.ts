/**
 * `canary-probe.ts <folder of a client package> <redis url>`: says in one line whether its commands are fast. A process
 * for each client, since a warning of one text is given once in a process.
 */
import '../test/helpers/assumed-releases.js';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Redis as IORedis } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';

const TIMEOUT_MS = 10_000;

const [folder = '', url = ''] = process.argv.slice(2);
const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as Record<string, string>;
const { Redis } = createRequire(import.meta.url)(folder) as { Redis: new (url: string) => IORedis };

const warnings: string[] = [];
process.on('warning', ({ message }) => warnings.push(message));

// Every command of a turn in one batch, so that they can be counted.
const redis = coalesce(new Redis(url), { schedule: 'immediate' });
await once(redis, 'ready', { signal: AbortSignal.timeout(TIMEOUT_MS) });
const before = redis.coalescer.stats();
const values = await Promise.all([redis.set('probe', 'value'), redis.get('probe'), redis.hgetall('nothing')]);
const after = redis.coalescer.stats();
redis.disconnect();

const problems = [
  ...warnings,
  ...differs('values', JSON.stringify(values), '["OK","value",{}]'),
  ...differs('fast commands', after.fastCommands - before.fastCommands, values.length),
  ...differs('fast replies', after.replies.fast - before.replies.fast, values.length),
  ...differs('batches', after.batches - before.batches, 1),
];
console.log(`${name} ${version}: ${problems.length === 0 ? 'fast' : problems.join('; ')}`);
if (problems.length > 0) process.exitCode = 1;

function differs<T>(what: string, got: T, expected: T): string[] {
  return got === expected ? [] : [`expected ${what} to be ${expected}, got ${got}`];
}
