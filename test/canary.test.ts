import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestsOf } from '../tools/matrix-run.js';
import { redisUrl } from './helpers/redis.js';

const run = promisify(execFile);
const PROBE = fileURLToPath(new URL('../tools/canary-probe.ts', import.meta.url));
const IOREDIS = dirname(createRequire(import.meta.url).resolve('ioredis/package.json'));

describe('the probe of the canary', () => {
  let scratch: string;

  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'canary-'));
  });

  afterAll(() => rm(scratch, { recursive: true, force: true }));

  /** A client package of the future: the installed ioredis, changed by `change`. */
  async function publish(name: string, change: string): Promise<string> {
    const folder = join(scratch, name);
    await mkdir(folder);
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'ioredis', version: '99.0.0' }));
    const source = `const { Redis } = require(${JSON.stringify(IOREDIS)}); ${change} module.exports = { Redis };`;
    await writeFile(join(folder, 'index.js'), source);
    return folder;
  }

  const probe = (folder: string, env = {}) =>
    run(process.execPath, ['--import', 'tsx', PROBE, folder, redisUrl()], { env: { ...process.env, ...env } });

  it('reports fast commands for a known client', async () => {
    expect((await probe(IOREDIS)).stdout).toMatch(/^ioredis \d+\.\d+\.\d+: fast\n$/);
  });

  it('treats an unread release as known by its digests; without them it is corked', async () => {
    const folder = join(scratch, 'next');
    await cp(IOREDIS, folder, { recursive: true });
    await symlink(dirname(IOREDIS), join(scratch, 'node_modules'), 'dir');
    const file = join(folder, 'built/Redis.js');
    const text = await readFile(file, 'utf8');
    await writeFile(
      file,
      text.replace('flushQueue(error, options) {', 'flushQueue(error, options) { this.flushed = true;'),
    );
    const { stdout } = await probe(folder, { MATRIX_ASSUMED: JSON.stringify([await digestsOf(folder)]) });
    expect(stdout).toMatch(/^ioredis \d+\.\d+\.\d+: fast\n$/);
    const withoutThem = { code: 1, stdout: expect.stringContaining('expected fast commands to be 3, got 0') };
    await expect(probe(folder)).rejects.toMatchObject(withoutThem);
  });

  it('fails for a client whose functions have another source, although every command is answered', async () => {
    const change =
      'const { get } = Redis.prototype; Redis.prototype.get = function (key) { return get.call(this, key); };';
    await expect(probe(await publish('functions', change))).rejects.toMatchObject({
      code: 1,
      stdout: 'ioredis 99.0.0: expected fast commands to be 3, got 2; expected fast replies to be 3, got 2\n',
    });
  });
});
