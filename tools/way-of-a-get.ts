/**
 * Prints how many files and functions of `src/` a command passes, from the call to its value, on a warm connection:
 * what a reader has to follow. By V8's precise coverage, which counts calls. Fails if a way has become longer.
 *
 * `npm run way [-- <part of a name>]`: with the functions of the first way, or of the one that is named.
 */

import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Redis, { type CoalesceOptions } from '../src/index.js';
import { startRedis } from './redis-server.js';

const SRC = fileURLToPath(new URL('../src/', import.meta.url));
const WARM_UP = 200;
/** A function belongs to a way if each of these passes calls it: a timer, or a sweep now and then, does not. */
const PASSES = 5;

interface Way {
  readonly name: string;
  readonly options: CoalesceOptions;
  /** Passes the way once; `count` is another number each time. */
  pass(client: Redis, count: number): Promise<unknown>;
  readonly most: { readonly files: number; readonly functions: number };
}

const get: Way['pass'] = (client) => client.get('key');
const WAYS: readonly Way[] = [
  { name: 'an awaited get', options: {}, pass: get, most: { files: 22, functions: 67 } },
  { name: 'a hit of the cache', options: { cache: true }, pass: get, most: { files: 24, functions: 58 } },
  {
    name: 'a miss of the cache',
    options: { cache: true },
    pass: (client, count) => client.get(`key:${count}`),
    most: { files: 36, functions: 142 },
  },
  {
    name: 'three fused gets',
    options: { fuseReads: true },
    pass: (client) => Promise.all(['a', 'b', 'c'].map((key) => client.get(key))),
    most: { files: 27, functions: 97 },
  },
  {
    name: 'a pipeline of three',
    options: {},
    pass: (client) => client.pipeline().get('a').get('b').get('c').exec(),
    most: { files: 26, functions: 109 },
  },
];

const [wanted = WAYS[0]?.name as string] = process.argv.slice(2);
const server = await startRedis();
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
try {
  for (const way of WAYS) await follow(way);
} finally {
  session.disconnect();
  await server.stop();
}

async function follow({ name, options, pass, most }: Way): Promise<void> {
  // Whether a turn is polled depends on how fast the machine is.
  const client = new Redis(server.url, { coalesce: { busyPoll: false, ...options } });
  await client.set('key', 'value');
  for (let count = 0; count < WARM_UP; count += 1) await pass(client, count);
  const passed: Map<string, Called>[] = [];
  for (let count = WARM_UP; passed.length < PASSES; count += 1) {
    await setImmediate();
    // Taking the coverage sets the counts to zero.
    await session.post('Profiler.takePreciseCoverage');
    await pass(client, count);
    await setImmediate();
    passed.push(calledOf((await session.post('Profiler.takePreciseCoverage')).result));
  }
  client.disconnect();
  const called = [...(passed[0] ?? [])]
    .filter(([place]) => passed.every((one) => one.has(place)))
    .map(([, one]) => one);
  const files = new Set(called.map(({ file }) => file));
  if (name.includes(wanted)) {
    for (const file of files) {
      const names = called.filter((one) => one.file === file).map((one) => one.name);
      console.log(`${file}: ${names.join(', ')}`);
    }
  }
  const passes = `${name} passes ${files.size} files and ${called.length} functions of src/`;
  if (files.size <= most.files && called.length <= most.functions) {
    console.log(`${passes}.`);
    return;
  }
  console.error(`${passes}; at most ${most.files} and ${most.functions} are allowed.`);
  process.exitCode = 1;
}

interface Called {
  readonly file: string;
  readonly name: string;
}

/** The functions of `src/` that were called, by their places. */
function calledOf(scripts: readonly Profiler.ScriptCoverage[]): Map<string, Called> {
  const called = new Map<string, Called>();
  for (const { url, functions } of scripts) {
    if (!url.startsWith('file:') || !fileURLToPath(url).startsWith(SRC)) continue;
    const file = fileURLToPath(url).slice(SRC.length);
    for (const { functionName, ranges } of functions) {
      const [range] = ranges;
      if (range && range.count > 0)
        called.set(`${file}:${range.startOffset}`, { file, name: functionName || '(anonymous)' });
    }
  }
  return called;
}
