/**
 * Prints how many files and functions of `src/` one awaited `get` passes, from the call to its value, on a warm
 * connection with the default options: what a reader has to follow. By V8's precise coverage, which counts calls. Fails
 * if it has become longer.
 */

import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Redis from '../src/index.js';
import { startRedis } from './redis-server.js';

const SRC = fileURLToPath(new URL('../src/', import.meta.url));
const WARM_UP = 200;
const MOST = { files: 22, functions: 68 };

const server = await startRedis();
const client = new Redis(server.url);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
try {
  for (let count = 0; count < WARM_UP; count += 1) await client.get('key');
  await setImmediate();
  // Taking the coverage sets the counts to zero.
  await session.post('Profiler.takePreciseCoverage');
  await client.get('key');
  await setImmediate();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  print(result);
} finally {
  session.disconnect();
  client.disconnect();
  await server.stop();
}

function print(scripts: readonly Profiler.ScriptCoverage[]): void {
  const called = scripts
    .filter(({ url }) => url.startsWith('file:') && fileURLToPath(url).startsWith(SRC))
    .map(({ url, functions }) => ({
      file: fileURLToPath(url).slice(SRC.length),
      names: functions
        .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
        .map(({ functionName }) => functionName || '(anonymous)'),
    }))
    .filter(({ names }) => names.length > 0);
  for (const { file, names } of called) console.log(`${file}: ${names.join(', ')}`);
  const functions = called.reduce((sum, { names }) => sum + names.length, 0);
  console.log(`One awaited get passes ${called.length} files and ${functions} functions of src/.`);
  if (called.length <= MOST.files && functions <= MOST.functions) return;
  console.error(`At most ${MOST.files} files and ${MOST.functions} functions are allowed.`);
  process.exitCode = 1;
}
