import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startCluster } from '../../tools/redis-cluster.js';
import { type Client, ioredis6, sleep } from '../helpers/hosts.js';
import { redisUrl, startServer } from '../helpers/redis.js';
import { certificate, startTlsFront } from '../helpers/tls-front.js';
import { runCli, startCli } from './helpers.js';

const TIMEOUT = 60_000;
const QUICK = ['--seconds', '0.25', '--keys', '50'];

describe('ioredis-coalesce bench', { timeout: TIMEOUT }, () => {
  it('prints a table of the four clients, and leaves only the keys that were there before', async () => {
    const { url, client } = await ownServer();
    await client.set('mine', 'kept');
    const { code, stdout, stderr } = await runCli(['bench', '--url', url, ...QUICK, '--value-size', '33']);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toContain(`${new URL(url).host}: Redis`);
    expect(stdout).toContain('100 callers that each await one GET after the other; 50 keys of 33 B');
    for (const variant of ['plain', 'auto-pipelining', 'cork', 'coalesced']) {
      expect(stdout).toMatch(new RegExp(`^${variant} +[\\d,]+ +[\\d,]+–[\\d,]+ +[\\d.]+×( +[\\d.]+){4}$`, 'm'));
    }
    expect(stdout).toMatch(/^Coalesced: [\d.]+× the commands per second of plain/m);
    expect(stdout).toMatch(/^Cork mode, through public APIs alone: [\d.]+× the commands per second of plain/m);
    expect(stdout).toContain('This measures the client alone');
    expect(stdout).toMatch(
      /\nIn a service: IOREDIS_COALESCE=stats node --import ioredis-coalesce\/register app\.js\n$/,
    );
    expect(await client.keys('*')).toEqual(['mine']);
  });

  it('prints JSON and nothing else with --json, of the Redis at REDIS_URL', async () => {
    const { url, client } = await ownServer();
    const { code, stdout } = await runCli(['bench', ...QUICK, '--concurrency', '7', '--json'], { REDIS_URL: url });
    expect(code).toBe(0);
    const figures = {
      perSecond: expect.any(Number),
      p50Ms: expect.any(Number),
      p99Ms: expect.any(Number),
      cpuUsPerCommand: expect.any(Number),
      redisCpuUsPerCommand: expect.any(Number),
    };
    const ranges = Object.fromEntries(Object.entries(figures).map(([name, any]) => [name, [any, any]] as const));
    expect(JSON.parse(stdout)).toEqual({
      settings: {
        target: new URL(url).host,
        cluster: false,
        concurrency: 7,
        valueBytes: 100,
        keys: 50,
        seconds: 0.25,
        fuse: false,
        rounds: 7,
      },
      environment: {
        package: expect.stringMatching(/^\d+\.\d+\.\d+/),
        node: process.versions.node,
        client: expect.stringMatching(/^ioredis \d/),
        server: expect.stringMatching(/^(Redis|Valkey) \d/),
      },
      results: { plain: figures, auto: figures, cork: figures, coalesced: figures },
      ranges: { plain: ranges, auto: ranges, cork: ranges, coalesced: ranges },
    });
    expect(await client.dbsize()).toBe(0);
  });

  it('with --fuse the GETs of the coalesced client leave as MGETs', async () => {
    const { url, client } = await ownServer();
    const { code, stdout } = await runCli(['bench', '--url', url, ...QUICK, '--fuse']);
    expect(code).toBe(0);
    expect(stdout).toContain('coalesced with fuseReads');
    expect(await client.info('commandstats')).toContain('cmdstat_mget:');
  });

  it('writes only under its own prefix, with an expiry', async () => {
    const { url, client } = await ownServer();
    const bench = startCli(['bench', '--url', url, '--seconds', '60', '--keys', '50']);
    await keysWritten(client, 50);
    const keys = await client.keys('*');
    const [prefix] = /^ioredis-coalesce:bench:[0-9a-f]{16}:/.exec(keys[0]!) ?? ['no such prefix'];
    expect(keys.every((key) => key.startsWith(prefix))).toBe(true);
    for (const ttl of await Promise.all(keys.map((key) => client.ttl(key)))) expect(ttl).toBeGreaterThan(0);
    bench.signal('SIGTERM');
    await bench.finished;
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('removes its keys on %s, and exits with 130', async (name) => {
    const { url, client } = await ownServer();
    const bench = startCli(['bench', '--url', url, '--seconds', '60', '--keys', '5000']);
    await keysWritten(client, 5000);
    bench.signal(name);
    expect(await bench.finished).toEqual({
      code: 130,
      stdout: '',
      stderr: `ioredis-coalesce: interrupted by ${name}\n`,
    });
    expect(await client.dbsize()).toBe(0);
  });

  it('removes its keys when interrupted while it writes them', async () => {
    const { url, client } = await ownServer();
    const bench = startCli(['bench', '--url', url, '--keys', '500000']);
    await keysWritten(client, 1);
    bench.signal('SIGINT');
    expect(await bench.finished).toMatchObject({ code: 130 });
    expect(await client.dbsize()).toBe(0);
  });

  it('says in one line that Redis went away', async () => {
    const { url, client, server } = await ownServer();
    const bench = startCli(['bench', '--url', url, '--seconds', '60', '--keys', '50']);
    await keysWritten(client, 50);
    await server.kill();
    const { code, stdout, stderr } = await bench.finished;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^ioredis-coalesce: .*keys may be left under a prefix of ours until they expire: .*\n$/);
  });

  it('says in one line that no server listens, without the password', async () => {
    const { stderr, code, stdout } = await runCli(['bench', '--url', 'redis://user:s3cret@127.0.0.1:1/0']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe('ioredis-coalesce: cannot use the Redis at 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1\n');
  });

  it('says in one line that the server does not answer', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await new Promise((resolve) => silent.once('listening', resolve));
    const { port } = silent.address() as { port: number };
    const { stderr, code } = await runCli(['bench', '--url', `redis://127.0.0.1:${port}`]);
    expect(code).toBe(1);
    expect(stderr).toBe(`ioredis-coalesce: cannot use the Redis at 127.0.0.1:${port}: no answer within 5 s\n`);
  });

  it('says in one line that Redis refuses the password, without showing it', async () => {
    const { url } = await ownServer(['--requirepass', 'right']);
    const { stderr, code } = await runCli(['bench', '--url', url.replace('//', '//:s3cret@')]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^ioredis-coalesce: cannot use the Redis at 127\.0\.0\.1:\d+: WRONGPASS [^\n]*\n$/);
    expect(stderr).not.toContain('s3cret');
  });

  it('says in one line that Redis wants a password', async () => {
    const { url } = await ownServer(['--requirepass', 'right']);
    const { stderr, code } = await runCli(['bench', '--url', url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^ioredis-coalesce: cannot use the Redis at 127\.0\.0\.1:\d+: NOAUTH [^\n]*; redis:\/\/user:password@host:port, best in REDIS_URL\n$/,
    );
  });

  it('writes nothing if the database of the URL does not exist', async () => {
    const { url, client } = await ownServer();
    const { stderr, stdout, code } = await runCli(['bench', '--url', `${url}/99`, ...QUICK]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^ioredis-coalesce: cannot use the Redis at [^ ]+: ERR DB index is out of range\n$/);
    expect(await client.info('commandstats')).not.toMatch(/cmdstat_set:/);
  });

  it('asks whether the server speaks TLS, if the URL says otherwise', async () => {
    const secure = await startTlsFront(redisUrl(), await certificate('localhost'));
    for (const url of [redisUrl().replace('redis:', 'rediss:'), `redis://localhost:${secure.port}`]) {
      const { stderr, code } = await runCli(['bench', '--url', url, ...QUICK]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^ioredis-coalesce: cannot use the Redis at [^\n]*\n$/);
      expect(stderr).toContain('; with TLS the URL begins with rediss://, else redis://');
    }
  });

  it('measures over a unix socket', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-socket-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const socket = join(folder, 'redis.sock');
    const { client } = await ownServer(['--unixsocket', socket]);
    const measured = await runCli(['bench', '--url', socket, ...QUICK]);
    expect(measured).toMatchObject({ code: 0, stderr: '' });
    expect(measured.stdout).toContain(`${socket}: Redis`);
    expect(await client.dbsize()).toBe(0);
  });

  it('says in one line that Redis refuses to store', async () => {
    const { url } = await ownServer(['--maxmemory', '1', '--maxmemory-policy', 'noeviction']);
    const { stderr, code } = await runCli(['bench', '--url', url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^ioredis-coalesce: Redis refused a command: OOM [^\n]*\n$/);
  });

  it('measures a Cluster with --cluster, and asks for the option when the URL is a Cluster', async () => {
    const cluster = await startCluster();
    onTestFinished(() => cluster.stop());
    const url = `redis://127.0.0.1:${cluster.nodes[0]!.port}`;
    const measured = await runCli(['bench', '--url', url, '--cluster', ...QUICK]);
    expect(measured).toMatchObject({ code: 0, stderr: '' });
    expect(measured.stdout).toContain(' (Cluster): Redis');
    const sizes = await Promise.all(
      cluster.nodes.map(({ port }) => ioredis6.create(`redis://127.0.0.1:${port}`).dbsize()),
    );
    expect(sizes).toEqual(cluster.nodes.map(() => 0));

    const refused = await runCli(['bench', '--url', url, ...QUICK]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/MOVED .*; it is a node of a Cluster: add --cluster\n$/);
  });
});

it('trusts certificates as Node does, and says how if one is not trusted', {
  timeout: TIMEOUT,
}, async () => {
  const own = await certificate('localhost');
  const front = await startTlsFront(redisUrl(), own);
  const url = `rediss://localhost:${front.port}`;
  const refused = await runCli(['bench', '--url', url, ...QUICK]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/self-signed certificate; trust its authority with NODE_EXTRA_CA_CERTS=<file>\n$/);
  const { code, stdout, stderr } = await runCli(['bench', '--url', url, ...QUICK, '--json'], {
    NODE_EXTRA_CA_CERTS: await fileOf(own.cert),
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({
    settings: { tls: true },
    results: { coalesced: { perSecond: expect.any(Number) } },
  });
});

/** The text as a file, until the running test ends. */
async function fileOf(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-ca-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'ca.pem');
  await writeFile(file, text);
  return file;
}

async function ownServer(args: readonly string[] = []) {
  const server = await startServer({ args });
  onTestFinished(() => server.stop());
  return { server, url: server.url, client: ioredis6.create(server.url) };
}

async function keysWritten(client: Client, count: number): Promise<void> {
  while ((await client.dbsize()) < count) await sleep(5);
}
