import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../../tools/free-port.js';
import { findServerBinary, type RedisServer, startRedis } from '../../../tools/redis-server.js';
import { sleep } from '../hosts.js';

const HOST = '127.0.0.1';
const WATCHED_BY = 3;
const QUORUM = 2;
const SETTLE_TIMEOUT = 40_000;

/** The server ends, and its folder goes, when the pipe at stdin closes: by `stop()`, or when this process ends. */
const WRAPPER = 'folder="$1"; shift; "$@" & server=$!; read -r _; kill -9 "$server"; wait; rm -rf "$folder"';

type Sentinel = { readonly port: number; readonly wrapper: ChildProcess; readonly client: Redis };

/** A master and a replica, and three sentinels that watch them. */
export class SentinelGroup {
  /** What the sentinels call the group. */
  readonly name = 'shop';
  readonly #servers: RedisServer[] = [];
  readonly #sentinels: Sentinel[] = [];

  /** For `new Redis({ sentinels, name })`. */
  get sentinels(): { host: string; port: number }[] {
    return this.#sentinels.map(({ port }) => ({ host: HOST, port }));
  }

  async start(): Promise<this> {
    const args = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1', '--shutdown-timeout', '0'];
    const master = await startRedis({ args });
    this.#servers.push(master);
    this.#servers.push(await startRedis({ args: [...args, '--replicaof', `${HOST} ${master.port}`] }));
    // Sentinels ask a master for its replicas when they first meet it, and then every ten seconds.
    await until('the replica is linked', async () => (await this.#ask(master, 'replication')).includes('state=online'));
    for (let index = 0; index < WATCHED_BY; index += 1) this.#sentinels.push(await this.#startSentinel(master.port));
    await this.settled();
    return this;
  }

  /** Resolves when all sentinels know each other, agree on the master, and the other server follows it. */
  async settled(): Promise<void> {
    await until('the sentinels agree and the servers follow', async () => {
      const views = await Promise.all(this.#sentinels.map(({ client }) => this.#viewOf(client)));
      const [first] = views;
      const others = String(WATCHED_BY - 1);
      if (!views.every((view) => view.port === first?.port && view['num-other-sentinels'] === others)) return false;
      if (!views.every(({ flags }) => flags === 'master')) return false;
      for (const server of this.#servers) {
        const info = await this.#ask(server, 'replication');
        const leads = server.port === Number(first?.port);
        if (leads ? !info.includes('role:master') : !/master_link_status:up/.test(info)) return false;
        if (!leads && !info.includes(`master_port:${first?.port}`)) return false;
      }
      return views.every((view) => Number(view['num-slaves']) >= this.#servers.length - 1);
    });
  }

  async master(): Promise<RedisServer> {
    const view = await this.#viewOf((this.#sentinels[0] as Sentinel).client);
    const server = this.#servers.find(({ port }) => port === Number(view.port));
    if (!server) throw new Error(`expected the master at port ${view.port} to be one of the servers that run`);
    return server;
  }

  /** An orderly failover, as an operator asks for it. */
  async failOver(): Promise<void> {
    const before = await this.master();
    const { client } = this.#sentinels[0] as Sentinel;
    await until('a sentinel takes the order', async () => {
      try {
        return (await client.call('SENTINEL', 'FAILOVER', this.name)) === 'OK';
      } catch (error) {
        // INPROG or NOGOODSLAVE: the last failover is not quite over.
        if (/INPROG|NOGOODSLAVE/.test(String(error))) return false;
        throw error;
      }
    });
    await this.#promoted(before);
    await this.#demote(before, await this.master());
    await this.settled();
  }

  /** What sentinels do to a former master too, but only when it has claimed to be one for eight seconds. */
  async #demote(before: RedisServer, master: RedisServer): Promise<void> {
    const client = new Redis(before.url, { retryStrategy: () => null });
    client.on('error', () => {});
    try {
      // The last step ends this connection too.
      const ended = once(client, 'end');
      const steps = client.multi().replicaof(HOST, master.port);
      await steps.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'no').exec();
      await ended;
    } finally {
      client.disconnect();
    }
  }

  /** SIGKILL; the sentinels find out by themselves. */
  async killMaster(): Promise<void> {
    const before = await this.master();
    this.#servers.splice(this.#servers.indexOf(before), 1);
    await before.kill();
    await this.#promoted(before);
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#sentinels.splice(0).map(async ({ client, wrapper }) => {
        client.disconnect();
        const ended = once(wrapper, 'exit');
        wrapper.stdin?.end();
        await ended;
      }),
    );
    await Promise.all(this.#servers.splice(0).map((server) => server.stop()));
  }

  /** Resolves when all sentinels name another master, and it takes writes. */
  async #promoted(before: RedisServer): Promise<void> {
    await until(`another master than the one at port ${before.port}`, async () => {
      const views = await Promise.all(this.#sentinels.map(({ client }) => this.#viewOf(client)));
      const ports = views.map(({ port }) => Number(port));
      if (!ports.every((port) => port !== before.port && port === ports[0])) return false;
      const server = this.#servers.find(({ port }) => port === ports[0]);
      return server !== undefined && (await this.#ask(server, 'replication')).includes('role:master');
    });
  }

  async #startSentinel(masterPort: number): Promise<Sentinel> {
    const { path } = await findServerBinary();
    const folder = mkdtempSync(join(tmpdir(), 'ioredis-coalesce-sentinel-'));
    const port = await freePort();
    const config = join(folder, 'sentinel.conf');
    const lines = [
      `port ${port}`,
      `bind ${HOST}`,
      `dir ${folder}`,
      `sentinel monitor ${this.name} ${HOST} ${masterPort} ${QUORUM}`,
      `sentinel down-after-milliseconds ${this.name} 1500`,
      `sentinel failover-timeout ${this.name} 6000`,
    ];
    writeFileSync(config, `${lines.join('\n')}\n`);
    const wrapper = spawn('/bin/sh', ['-c', WRAPPER, 'sh', folder, path, config, '--sentinel'], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const client = new Redis({ host: HOST, port, retryStrategy: () => 50, maxRetriesPerRequest: null });
    client.on('error', () => {});
    await client.ping();
    return { port, wrapper, client };
  }

  /** What a sentinel says of the master: names and values. */
  async #viewOf(client: Redis): Promise<Record<string, string>> {
    const reply = (await client.call('SENTINEL', 'MASTER', this.name)) as unknown;
    if (!Array.isArray(reply)) return reply as Record<string, string>;
    return Object.fromEntries(
      reply.flatMap((name, index) => (index % 2 === 0 ? [[String(name), String(reply[index + 1])]] : [])),
    );
  }

  /** A section of INFO; empty if the server closes the connection, as one does that becomes a replica. */
  async #ask(server: RedisServer, section: string): Promise<string> {
    const client = new Redis(server.url, { retryStrategy: () => null });
    client.on('error', () => {});
    try {
      return await client.info(section);
    } catch {
      return '';
    } finally {
      client.disconnect();
    }
  }
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + SETTLE_TIMEOUT;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`expected within ${SETTLE_TIMEOUT} ms: ${what}`);
    await sleep(50);
  }
}
