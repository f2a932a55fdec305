/**
 * What the host's own functions do, and a fast command does not call them, is known: by the text of the function, or
 * since the proof of `coalesce()` has run it. Found by running commands, so one that the fast path begins to stand in
 * for fails here.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { KNOWN_FUNCTIONS } from '../../src/host/known-releases.js';
import { bundled } from '../helpers/bundled.js';
import { redisUrl } from '../helpers/redis.js';

interface Skipped {
  readonly file: string;
  /** Its own, and those of the functions around it, whose text has its own. */
  readonly names: readonly string[];
  readonly isProven: boolean;
}

const KNOWN = new Set(Object.values(KNOWN_FUNCTIONS).flatMap((functions) => Object.keys(functions)));
/** Classes of which the constructor is known. */
const CLASSES = ['Pipeline', 'Command'];

/** Functions that are neither, with the reason why none of them decides what a fast command gives. */
const OTHERS: Readonly<Record<string, string>> = {
  'denque/index.js _copyArray': 'the queue of the host grows, and keeps what it holds',
  'utils/debug.js get': 'what DEBUG prints: such a client gets the cork',
  'utils/Commander.js (anonymous)': 'makes `echo`, whose text is known as that of commander.echo',
  'himport/HimportCoordinator.js interceptHimportPipeline': 'HIMPORT is left to the host',
  'tracing.js shouldTrace': 'src/channels.ts publishes instead',
  'tracing.js traceCommand': 'src/channels.ts publishes instead',
  'tracing.js traceBatch': 'src/channels.ts publishes instead',
};

it.each(['ioredis', 'ioredis5', 'iovalkey'])('%s', async (host) => {
  const program = await bundled(fileURLToPath(new URL('programs/skipped.ts', import.meta.url)));
  const { stdout } = await promisify(execFile)(process.execPath, [program, host, redisUrl()]);
  const { fastShare, skipped } = JSON.parse(stdout) as { fastShare: number; skipped: Skipped[] };
  expect(fastShare).toBeGreaterThan(0.6);
  expect(skipped.length).toBeGreaterThan(40);
  const unknown = skipped.flatMap(({ file, names, isProven }) => {
    const [outermost = ''] = names;
    const isKnown = KNOWN.has(outermost.replace(/^.*\./, '')) || CLASSES.includes(outermost);
    const title = `${file.replace(/^.*\/built\//, '')} ${names.at(-1)}`;
    return isProven || isKnown || title in OTHERS ? [] : [`${file} ${names.join(' < ')}`];
  });
  expect(unknown).toEqual([]);
});
