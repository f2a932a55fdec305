/** The recipes of docs/production.md, as they are written there, in their own processes on a real Redis. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { createInterface, type Interface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { section } from './helpers/markdown.js';
import { type RedisServer, startServer } from './helpers/redis.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DOCUMENT = readFileSync(new URL('../docs/production.md', import.meta.url), 'utf8');
const CLIENT = `
  import Redis from 'ioredis-coalesce';
  const redis = new Redis(process.env.TEST_URL);
  await redis.ping();`;

let server: RedisServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.stop());

/** The code under a heading, with what a test must change in it: the port, or a time that a busy machine exceeds. */
function recipe(heading: string, [from, to] = ['', '']): string {
  const [, code = ''] = /^```ts\n(.*?)^```$/ms.exec(section(DOCUMENT, heading)) ?? [];
  expect(code).toContain(from);
  return code.replace(from, to);
}

class Program {
  readonly process: ChildProcessByStdio<null, Readable, null>;
  readonly ended: Promise<number | null>;
  readonly #lines: AsyncIterator<string>;

  constructor(code: string) {
    this.process = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', code], {
      cwd: ROOT,
      env: { ...process.env, TEST_URL: server.url, TEST_SERVER_PID: String(server.pid) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.ended = new Promise((resolve) => this.process.once('exit', resolve));
    const lines: Interface = createInterface({ input: this.process.stdout });
    this.#lines = lines[Symbol.asyncIterator]();
    onTestFinished(() => void this.process.kill('SIGKILL'));
  }

  async line(): Promise<string> {
    const { value } = await this.#lines.next();
    return value as string;
  }
}

test('Graceful shutdown: requests in progress are answered, and the process ends by itself', async () => {
  const program = new Program(`
    import { subscribe } from 'node:diagnostics_channel';
    ${CLIENT}
    subscribe('http.server.request.start', () => console.log('request'));
    ${recipe('Graceful shutdown', ['server.listen(3000)', "server.listen(0, '127.0.0.1', () => console.log(server.address().port))"])}`);
  const port = await program.line();
  const agent = new Agent({ keepAlive: true });
  process.kill(server.pid, 'SIGSTOP');
  const answers = Array.from({ length: 20 }, () => answerOf(`http://127.0.0.1:${port}/`, agent));
  for (const _ of answers) expect(await program.line()).toBe('request');
  program.process.kill('SIGTERM');
  process.kill(server.pid, 'SIGCONT');
  expect((await Promise.all(answers)).toSorted((a, b) => a - b)).toEqual(Array.from(answers, (_, index) => index + 1));
  expect(await program.ended).toBe(0);
  agent.destroy();
});

function answerOf(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      text(response).then((body) => resolve(Number(body)), reject);
    }).once('error', reject);
  });
}

test('Health checks: 503 while Redis does not answer', async () => {
  const program = new Program(`
    import Fastify from 'fastify';
    ${CLIENT}
    const app = Fastify();
    ${recipe('Health checks', ['timeout: 500', 'timeout: 3_000'])}
    const status = async () => console.log((await app.inject('/ready')).statusCode);
    await status();
    process.kill(Number(process.env.TEST_SERVER_PID), 'SIGSTOP');
    await status();
    process.kill(Number(process.env.TEST_SERVER_PID), 'SIGCONT');
    await redis.ping();
    await status();
    redis.disconnect();`);
  expect([await program.line(), await program.line(), await program.line()]).toEqual(['200', '503', '200']);
  expect(await program.ended).toBe(0);
});

test('Switching it off at run time: SIGUSR2 switches there and back', async () => {
  const program = new Program(`
    ${CLIENT}
    ${recipe('Switching it off at run time')}
    process.on('SIGUSR2', async () => {
      const shown = [redis.coalescer.enabled, redis.duplicate({ lazyConnect: true }).coalescer.enabled];
      console.log(...shown, await redis.ping());
    });
    console.log('ready');`);
  expect(await program.line()).toBe('ready');
  program.process.kill('SIGUSR2');
  expect(await program.line()).toBe('false false PONG');
  program.process.kill('SIGUSR2');
  expect(await program.line()).toBe('true true PONG');
});
