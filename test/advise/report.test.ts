/**
 * `IOREDIS_COALESCE=advise`, in processes of their own: Fastify and a BullMQ worker; Nest on Express and a worker
 * thread.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { RoundTrips } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const FOLDER = fileURLToPath(new URL('programs/', import.meta.url));
const PLACE = String.raw`(?:service|nest)\.ts:\d+`;
const MS = String.raw`\d+\.\d`;

/** What a program prints on standard error, and on standard output. */
const outputs = (environment: string, args: string[] = [], name = 'service.ts') =>
  outputsOf(environment, ['--import', import.meta.resolve('tsx'), name, redisUrl(), uniquePrefix('advised'), ...args]);

async function outputsOf(environment: string, args: string[], cwd = FOLDER): Promise<string[]> {
  const program = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, IOREDIS_COALESCE: environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stderr, stdout] = await Promise.all([text(program.stderr), text(program.stdout), once(program, 'exit')]);
  return [stderr, stdout];
}

const IN_ORDER = `
  import { Redis } from 'ioredis';
  import { coalesce } from 'ioredis-coalesce/coalesce';
  const redis = coalesce(new Redis(process.argv[2], { connectionName: 'bundled' }));
  async function inOrder() {
    for (const text of process.argv.slice(3)) await redis.echo(text);
    await redis.pipeline().echo('a').exec();
  }
  inOrder().then(() => redis.quit());`;

/** The advisor's lines about a program that is one file, with this package and ioredis in it. */
async function adviceOnBundle(nodeOptions: string[], echoes: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'advised-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await build({
    stdin: { contents: IN_ORDER, resolveDir: FOLDER, sourcefile: 'in-order.ts' },
    outfile: join(folder, 'app.cjs'),
    bundle: true,
    platform: 'node',
    sourcemap: nodeOptions.length > 0,
    logLevel: 'error',
  });
  await writeFile(join(folder, 'package.json'), '{}');
  const [stderr = ''] = await outputsOf('advise', [...nodeOptions, 'app.cjs', redisUrl(), ...echoes], folder);
  return stderr.split('\n').slice(1).join('\n');
}

const printed = async (...args: Parameters<typeof outputs>) => (await outputs(...args))[0] as string;

describe.concurrent('IOREDIS_COALESCE', { timeout: 60_000 }, () => {
  it('advise,verbose: at exit, a line per client, and one per place', async () => {
    const stderr = await printed('advise,verbose');
    expect(stderr).toMatch(/^ioredis-coalesce: service \S+: \d+ commands, \d+ batches/m);
    expect(stderr).toMatch(
      /^ioredis-coalesce: \d+ places wait for one round trip after another without need \(\d+ commands seen\)$/m,
    );
    const predictable = `; cache\\.prefetch would save ${MS} ms`;
    for (const line of [
      `${PLACE} feed → ${PLACE} feed  lrange, then get: an argument holds the first's reply${predictable}`,
      `${PLACE} feed  get ×3 in a row, 2 times: 3 round trips of ${MS} ms each; .*: 1${predictable}`,
      `${PLACE} loadItems  get ×5 in a row, 2 times: 5 round trips of ${MS} ms each; issued together \\(Promise\\.all, mget\\): 1`,
      `${PLACE} userAndCart → ${PLACE} userAndCart  hgetall, then llen: 1 time: needs more traffic`,
      `${PLACE} → ${PLACE}  get, then hgetall: an argument holds the first's reply: leave it`,
      `${PLACE} cached → ${PLACE} cached  get, then set: follows in 50 % of 2 times: an if stands between: leave it`,
      `${PLACE}.* → ${PLACE}.*  setnx, then ttl: 1 time; the first may decide on the second: leave it`,
    ])
      expect(stderr).toMatch(new RegExp(`^  ${line}$`, 'm'));
    expect(stderr).not.toContain('strlen');
  });

  it('advise: a middleware with callbacks, a class behind a controller, and each thread by itself', async () => {
    const stderr = await printed('advise,verbose', [], 'nest.ts');
    const [thread = '', app = ''] = stderr.split(/^ioredis-coalesce: .* wait.* for one round trip.*$/m).slice(1);
    expect(thread).toMatch(new RegExp(`^  ${PLACE} workInThread  strlen ×4 in a row, 1 time`, 'm'));
    expect(app).not.toContain('strlen');
    for (const pair of ['get, then exists', 'exists, then hgetall'])
      expect(app).toMatch(new RegExp(`^  ${PLACE}.* → ${PLACE}.*  ${pair}: `, 'm'));
    expect(app).toMatch(
      new RegExp(`^  ${PLACE} #?\\S+user → ${PLACE} \\S+total  hgetall, then llen: 1 time: needs more traffic$`, 'm'),
    );
  });

  it('advise: places with the advice "leave" are not shown, and not counted', async () => {
    const stderr = await printed('advise');
    expect(stderr).toMatch(/^ioredis-coalesce: 2 places wait for one round trip after another without need/m);
    expect(stderr).toContain('get ×5 in a row');
    expect(stderr).not.toContain('leave it');
  });

  it('advise: pauses when its share of the process is spent, and says that it has seen a sample', async () => {
    const [stderr = '', stdout = ''] = await outputs('advise', [], 'rests.ts');
    const [, seen] = /\(([\d,]+) commands, a sample, seen\)/.exec(stderr) ?? [];
    expect(Number(seen?.replace(',', ''))).toBeGreaterThan(3_900);
    expect(Number(seen?.replace(',', ''))).toBeLessThan(15_000);
    // What it has put on a corked client goes with detach().
    expect(JSON.parse(stdout)).toEqual([['sendCommand', 'pipeline', 'multi'], [], 'PONG']);
  });

  it('advise: in a bundle whose call sites it cannot see, it says so, with the cure', async () => {
    expect(await adviceOnBundle([], ['a', 'b', 'c'])).toBe(
      'ioredis-coalesce: saw none of 4 commands in user code; if it is bundled, do that with --sourcemap, and run ' +
        'node --enable-source-maps\n',
    );
    expect(await adviceOnBundle([], [])).toContain('none of 1 command in');
    const seen = await adviceOnBundle(['--enable-source-maps'], ['a', 'b', 'c']);
    expect(seen).toContain('(4 commands seen)');
    expect(seen).toMatch(/in-order\.ts:\d+ inOrder/);
  });

  it('advise: on SIGUSR2, too', async () => {
    expect(await printed('advise', ['signal'])).toContain('get ×5 in a row, 2 times');
  });

  it('advise:json: one line for a program to read', async () => {
    const stderr = await printed('advise:json');
    const found = JSON.parse(stderr.trim().split('\n').at(-1) as string) as RoundTrips & { clients: string[] };
    const first = { place: expect.stringMatching(PLACE), functionName: 'loadItems', command: 'get' };
    expect(found.sites).toContainEqual(
      expect.objectContaining({ first, second: first, times: 2, waits: 8, dependent: 0 }),
    );
    expect(found.sequential).toBe(5);
    expect(found.clients.length).toBeGreaterThan(0);
  });

  it('stats: how many round trips were saved by reads that were predicted, and nothing of the advisor', async () => {
    const [stderr, saved = ''] = await outputs('stats', [], 'prefetch.ts');
    expect(saved).toMatch(/^[1-9]\d* round trips saved by [1-9]\d* predicted reads\n$/);
    expect(stderr).toMatch(/^ioredis-coalesce: reader \S+: \d+ commands, /m);
    expect(stderr).toContain(`; ${saved}`);
    expect(stderr).not.toMatch(/round trip after another|in a row/);
  });
});
