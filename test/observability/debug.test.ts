import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { bundled } from '../helpers/bundled.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const run = promisify(execFile);
const secret = uniquePrefix('secret');
const { host } = new URL(redisUrl());

let program: string;
beforeAll(async () => {
  program = await bundled(fileURLToPath(new URL('./programs/debugged-service.ts', import.meta.url)));
});

/** What a service prints with this value of DEBUG: a line each, without the time in front. */
async function printedWith(DEBUG: string): Promise<string[]> {
  const { stdout, stderr } = await run(process.execPath, [program], {
    env: { ...process.env, DEBUG, DEBUG_COLORS: '0', TEST_URL: redisUrl(), TEST_SECRET: secret },
  });
  expect(stdout).toBe('true\n');
  return stderr
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^\S+ /, ''));
}

describe.concurrent('DEBUG', () => {
  it('ioredis-coalesce:* shows attachments, flushes and fallbacks, and no argument', async () => {
    const lines = await printedWith('ioredis-coalesce:*');
    const attach = lines.filter((line) => line.startsWith('ioredis-coalesce:attach '));
    const flush = lines.filter((line) => line.startsWith('ioredis-coalesce:flush '));
    const fallback = lines.filter((line) => line.startsWith('ioredis-coalesce:fallback '));
    expect(attach).toEqual([
      `ioredis-coalesce:attach ${host}: attached, mode fast`,
      `ioredis-coalesce:attach ${host}: detached, mode detached (detach())`,
    ]);
    expect(flush.some((line) => line.startsWith(`ioredis-coalesce:flush ${host}: 3 commands, `))).toBe(true);
    for (const line of flush) {
      expect(line).toMatch(
        /^ioredis-coalesce:flush 127\.0\.0\.1:\d+: (?:1 command|(?!1 )\d+ commands), \d+ bytes, [a-z]+$/,
      );
    }
    expect(fallback).toEqual([
      'ioredis-coalesce:fallback set: arguments',
      'ioredis-coalesce:fallback getBuffer: arguments',
      'ioredis-coalesce:fallback append: arguments',
    ]);
    expect(lines).toHaveLength(attach.length + flush.length + fallback.length);
    expect(lines.join('\n')).not.toContain(secret);
  });

  it('ioredis-coalesce:attach shows only attachments', async () => {
    expect(await printedWith('ioredis-coalesce:attach')).toHaveLength(2);
  });

  it('nothing is printed unless requested', async () => {
    expect(await printedWith('')).toEqual([]);
  });

  it.each(['ioredis:*', 'ioredis*', 'ioredis:r*', 'other,ioredis:redis'])('%s shows every command', async (DEBUG) => {
    const lines = (await printedWith(DEBUG)).filter((line) => line.includes('write command'));
    for (const command of ['set', 'get', 'STRLEN', 'del']) {
      expect(lines.filter((line) => line.includes(`-> ${command}(`)).length).toBeGreaterThan(0);
    }
    expect(lines.every((line) => line.startsWith('ioredis:redis '))).toBe(true);
  });
});
