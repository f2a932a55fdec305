/** `IOREDIS_COALESCE=advise` changes no answer of a program that is odd: each runs without it, too. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, expect, it } from 'vitest';
import { bundled } from '../helpers/bundled.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { share } from '../helpers/share.js';

const SOURCE = join(import.meta.dirname, 'programs/odd.ts');
const SCENES = [...readFileSync(SOURCE, 'utf8').matchAll(/^ {2}async (?:'(.*)'|(\w+))\(\) \{/gm)].map(
  ([, quoted, name]) => (quoted ?? name) as string,
);
/** It runs in another one's thread. */
const ALONE = SCENES.filter((scene) => scene !== 'without an end');

let program: string;
beforeAll(async () => {
  program = await bundled(SOURCE);
});

/** What a program prints, and how it ends. */
async function ended(scene: string, environment: string) {
  const child = spawn(process.execPath, ['--expose-gc', program, scene, redisUrl(), uniquePrefix('odd')], {
    env: { ...process.env, IOREDIS_COALESCE: environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, end] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { stdout, end, stderr };
}

it.concurrent.each(share(ALONE, 5))('%s', { timeout: 240_000 }, async (scene) => {
  const { stderr: _, ...plain } = await ended(scene, 'on');
  const { stderr, ...advised } = await ended(scene, 'advise');
  expect(advised).toEqual(plain);
  if (!scene.startsWith('ends')) expect([plain.end, plain.stdout]).toEqual([[0, null], expect.stringMatching(/./)]);
  expect(stderr).toMatch(/for one round trip after another|saw none of/);
});
