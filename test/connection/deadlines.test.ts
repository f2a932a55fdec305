/** `commandTimeout`: each command has its own time, whatever shares a batch, a reply or a reader with it. */
import { setImmediate as turn } from 'node:timers/promises';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { connectAs, expectAsPlain, type Kind } from '../helpers/beside.js';
import { coalescedFake, connectFake, type FakeConnection } from '../helpers/fake-connection.js';
import {
  type Client,
  type CoalescedClient,
  HOSTS,
  LONG_ENOUGH,
  outcomesWithin,
  ready,
  sleep,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl } from '../helpers/redis.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';
import { share } from '../helpers/share.js';

const MS = 100;
/**
 * A deadline takes the commands of a millisecond, and Node's timers count whole ones; another command's is 70 ms off.
 */
const EARLY = 3;

/**
 * What became of a command that should fail when its own time is over, not when another command's is. The clock is read
 * before it is issued: however slow the machine is, its own time ends later.
 */
async function fate(issue: () => Promise<unknown>): Promise<string> {
  const start = performance.now();
  const settled = issue().then(
    (value) => `answered ${String(value)}`,
    (error: Error) => {
      if (error.message !== 'Command timed out') return `failed: ${error.message}`;
      return performance.now() - start >= MS - EARLY ? 'timed out in its own time' : 'timed out early';
    },
  );
  return Promise.race([settled, sleep(LONG_ENOUGH).then(() => 'still open')]);
}

function expectOwnDeadlines(fates: readonly string[]): void {
  expect(fates).toEqual(fates.map(() => 'timed out in its own time'));
}

const flushLate = (flush: () => void) => void setTimeout(flush, 400);

describe.each(HOSTS)('$name: shareReads in a batch that stays open', (host) => {
  it('a follower has its own timeout', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(
      host.createCoalesced(proxy.url, { commandTimeout: MS }, { shareReads: true, schedule: flushLate }),
    );
    proxy.stall();
    const outstanding = Array.from({ length: 8 }, (_, index) => fate(() => client.echo(String(index))));
    client.coalescer.flush();
    const times = [fate(() => client.get('a'))];
    await sleep(70);
    times.push(
      fate(() => client.get('a')),
      fate(() => client.get('other')),
    );
    await sleep(80);
    times.push(fate(() => client.get('a')));
    expectOwnDeadlines(await Promise.all([...outstanding, ...times]));
  });

  it('a reply that comes after the timeout of the leader still answers a follower', async () => {
    let flush = () => {};
    let byHand = false;
    const schedule = (run: () => void) => {
      if (byHand) flush = run;
      else setImmediate(run);
    };
    const client = await ready(
      host.createCoalesced(redisUrl(), { commandTimeout: 1_000 }, { shareReads: true, schedule }),
    );
    byHand = true;
    const leader = client.get('absent').catch((error: Error) => error.message);
    await sleep(500);
    const follower = client.get('absent');
    expect(await leader).toBe('Command timed out');
    // Within the follower's time.
    flush();
    expect(await follower).toBeNull();
  });
});

describe.each(HOSTS)('$name: shareReads and a commandTimeout that changes between two reads of a batch', (host) => {
  it.each<[string, (number | undefined)[]]>([
    ['none, then one', [undefined, 60]],
    ['one, then none', [60, undefined]],
    ['a long one, then a short one', [2_000, 60]],
    ['a short one, then a long one', [60, 2_000]],
  ])('%s: each read has its own', async (_, timeouts) => {
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      const client = await connectAs(kind, host, proxy.url, {}, { shareReads: true });
      proxy.stall();
      const replies = timeouts.map((ms) => {
        client.options.commandTimeout = ms as number;
        return client.get('absent');
      });
      return outcomesWithin(200, replies);
    });
  });
});

describe.each(HOSTS)('$name: detach() while the host settles a reply that was forwarded to it', (host) => {
  it('in reconnectOnError: the commands behind it keep their own deadlines', async () => {
    const server = await startScriptedServer((command) => {
      if (command[1] === 'fails') return '-ERR it fails\r\n';
      return handshake(command) ?? (command[1] === 'answered' ? bulk('yes') : undefined);
    });
    let detached = false;
    const client: CoalescedClient = await ready(
      host.createCoalesced(
        server.url,
        {
          reconnectOnError: () => {
            if (!detached) client.coalescer.detach();
            detached = true;
            return false;
          },
        },
        // All in one batch, each command with a deadline of its own.
        { schedule: (flush) => void setTimeout(flush, 40) },
      ),
    );
    // Not for what is answered: a busy machine may delay that.
    client.options.commandTimeout = 60_000;
    const failing = client.get('fails').catch((error: Error) => error.message);
    await sleep(10);
    const answered = client.get('answered');
    await sleep(10);
    client.options.commandTimeout = MS;
    const times = [fate(() => client.get('never 1'))];
    await sleep(10);
    times.push(fate(() => client.get('never 2')));
    expect([await failing, detached]).toEqual(['ERR it fails', true]);
    expect(await answered).toBe('yes');
    expectOwnDeadlines(await Promise.all(times));
  });
});

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

type Send = (client: Client) => Promise<unknown>;

/** Sent before and after the turn is blocked. */
const IN_LONG_TURNS: Record<string, readonly [before: Send, after: Send]> = {
  'two reads': [(client) => client.get('absent 1'), (client) => client.get('absent 2')],
  'the same read': [(client) => client.get('absent'), (client) => client.get('absent')],
  'a read and a pipeline': [(client) => client.get('absent'), inPipeline],
  'a pipeline and a read': [inPipeline, (client) => client.get('absent')],
};

async function inPipeline(client: Client): Promise<unknown> {
  const [[error, value] = []] = (await client.pipeline().get('absent').exec()) ?? [];
  if (error) throw error;
  return value;
}

/** Enough for an answer on a busy machine. */
const TURN_MS = 4 * MS;

/** For longer than a command's time. */
function afterBlocking<T>(send: () => T): T {
  block(1.25 * TURN_MS);
  return send();
}

const SETTINGS: Record<string, CoalesceOptions> = {
  'the defaults': {},
  'one batch': { schedule: 'immediate' },
  'one batch, shareReads': { schedule: 'immediate', shareReads: true },
};

describe.each(HOSTS)('$name: a turn that is longer than commandTimeout', (host) => {
  const inNewTurn = async (send: () => readonly Promise<unknown>[]) => {
    await sleep(10);
    return outcomesWithin(LONG_ENOUGH, send());
  };

  // The first command times out or is answered, also of a plain client: timers and sockets are looked at in turn.
  it.each(share(Object.entries(SETTINGS), 2))('%s: a command issued late has its whole time', async (_, setting) => {
    const found = await expectAsPlain(async (kind) => {
      // A client for each, in one long turn.
      const sends = await Promise.all(
        Object.entries(IN_LONG_TURNS).map(async ([name, send]) => {
          const client = await connectAs(kind, host, redisUrl(), { commandTimeout: TURN_MS }, setting);
          return { name, client, send };
        }),
      );
      const settled = await inNewTurn(() => {
        const early = sends.map(({ client, send: [before] }) => before(client));
        return [...early, ...afterBlocking(() => sends.map(({ client, send: [, after] }) => after(client)))];
      });
      return sends.map(({ name }, index) => ({ name, later: settled[sends.length + index] }));
    });
    expect(found).toEqual(Object.keys(IN_LONG_TURNS).map((name) => ({ name, later: { value: null } })));
  });

  it.each([1, 60])('of %i commands before and after, none of the later ones times out', async (count) => {
    const options = { commandTimeout: TURN_MS };
    const client = await ready(host.createCoalesced(redisUrl(), options, { schedule: 'immediate' }));
    const gets = () => Array.from({ length: count }, (_, index) => client.get(`absent ${index}`));
    const found = await inNewTurn(() => [...gets(), ...afterBlocking(gets)]);
    expect(found.slice(count)).toEqual(Array.from({ length: count }, () => ({ value: null })));
  });

  it('commands on a server that does not answer time out in their own time', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.createCoalesced(proxy.url, { commandTimeout: MS }, { schedule: 'immediate' }));
    proxy.stall();
    await sleep(10);
    const times: Promise<string>[] = [];
    for (let index = 0; index < 30; index += 1) {
      times.push(fate(() => client.get('absent')));
      block(2);
    }
    expectOwnDeadlines(await Promise.all(times));
  });
});

describe.each(HOSTS)('$name: a command that reconnectOnError sends again', (host) => {
  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['a single one', (client) => client.set('k', 'v')],
    ['one in a pipeline', (client) => client.pipeline().set('k', 'v').exec() as Promise<unknown>],
  ])('%s: keeps the rest of its time', async (_, send) => {
    await expectAsPlain(async (kind) => {
      const server = await startScriptedServer((command, connection) => {
        if (command[0] !== 'set') return handshake(command);
        return connection === 1 ? '-READONLY no\r\n' : undefined;
      });
      const client = await connectAs(kind, host, server.url, {
        commandTimeout: 2 * MS,
        maxRetriesPerRequest: null,
        retryStrategy: () => 10,
        reconnectOnError: () => 2,
      });
      const start = performance.now();
      const found = await outcomesWithin(1_000, [send(client)]);
      const after = performance.now() - start;
      expect(after).toBeGreaterThanOrEqual(2 * MS - EARLY);
      return { found, inTime: after < 700, asked: server.commands };
    });
  });
});

it('of two commands that time out while the loop is blocked, the later one does not overtake the other', async () => {
  const { client } = await coalescedFake({});
  // Long enough after the first, and so soon after the second that the loop looks as if it had not been blocked for it.
  const [first, second, blocked] = [20, 40, 40.7];
  for (let round = 0; round < 5; round += 1) {
    const ended: number[] = [];
    const start = performance.now();
    const reads = [first, second].map((timeout) =>
      client.coalescer
        .withOptions({ timeout })
        .get('k')
        .catch(() => ended.push(timeout)),
    );
    await turn();
    block(blocked - (performance.now() - start));
    await Promise.all(reads);
    expect(ended).toEqual([first, second]);
  }
  client.disconnect();
});

/** CPU time of this process in milliseconds while `work` runs. */
async function cpuTime(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const BATCHES = 4_000;

/** Commands in flight, each in its own turn and thus batch, with its own deadline. */
async function manyBatches(kind: Kind, options: object): Promise<FakeConnection & { replies: Promise<unknown>[] }> {
  const connection = await (kind === 'plain' ? connectFake(options) : coalescedFake({}, options));
  const replies: Promise<unknown>[] = [];
  for (let index = 0; index < BATCHES; index += 1) {
    const reply = connection.client.get('k');
    // Those of a slow machine may time out before all are issued.
    reply.catch(() => {});
    replies.push(reply);
    await turn();
  }
  return { ...connection, replies };
}

describe(`the deadlines of ${BATCHES} batches of one command`, () => {
  /** To walk the whole queue for each of them takes ten times as long as a plain client's timers, and more. */
  const DEARER = 4;

  it('expire about as cheaply as those of a plain client', async () => {
    const cost = async (kind: Kind): Promise<number> => {
      const { client, replies } = await manyBatches(kind, { commandTimeout: 1_500 });
      const spent = await cpuTime(() => Promise.allSettled(replies));
      client.disconnect();
      return spent;
    };
    const plain = await cost('plain');
    expect(await cost('coalesced')).toBeLessThan(DEARER * plain);
  });

  it('outlive the connection about as cheaply as those of a plain client', async () => {
    const cost = async (kind: Kind): Promise<number> => {
      const options = { commandTimeout: 60_000, retryStrategy: () => 60_000 };
      const { client, socket } = await manyBatches(kind, options);
      const spent = await cpuTime(async () => {
        socket.destroy();
        await until(() => client.status === 'reconnecting', 'the lost connection to be noticed');
      });
      client.disconnect();
      return spent;
    };
    const plain = await cost('plain');
    // Milliseconds, of which the waiting itself takes some.
    expect(await cost('coalesced')).toBeLessThan(DEARER * plain + 20);
  });
});
