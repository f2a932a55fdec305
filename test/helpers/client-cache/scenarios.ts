import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import type { CacheOptions, CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { type Client, ioredis6, ready, sleep } from '../hosts.js';
import { type FaultyProxy, startProxy } from '../proxy.js';
import { startServer } from '../redis.js';
import { Checker, type CheckFigures, type CheckOptions, CLOCK, CLOCK_BEHIND } from './checker.js';

/** What happens to a cached client while it is checked. */
export interface Scenario {
  readonly name: string;
  /** Arguments of the server. */
  readonly args?: readonly string[];
  /** Whether the clients under test connect through a proxy, or the first of them. */
  readonly proxied?: boolean | 'first';
  readonly check?: Partial<CheckOptions>;
  /** Options of the clients under test. */
  readonly options?: { readonly stringNumbers?: boolean; readonly replyMapping?: 'resp3' };
  /** And of this package, beside the cache's. */
  readonly coalesce?: Pick<CoalesceOptions, 'shareReads' | 'maxInFlight' | 'maxPending'>;
  /** Whether it is about predictions alone. */
  readonly predicting?: boolean;
  /** Limits of the cache. */
  readonly limits?: Pick<CacheOptions, 'maxEntries' | 'ttl'>;
  /** Disturbs until it is told to stop. */
  disturb?(scene: Scene): Promise<void>;
}

interface Scene {
  readonly checker: Checker;
  readonly proxy: FaultyProxy | undefined;
  readonly admin: Client;
  /** Another plain client, connected. */
  another(): Promise<Client>;
  stopped(): boolean;
  /** Milliseconds between two disturbances, where not their own. */
  readonly pace?: number;
  /** Kills the server; another one, with nothing in it, takes its place. */
  restart(): Promise<void>;
  /** The server's clock when it was killed last. */
  restartedAt(): number;
}

/** A run in which another process would not have begun to write before it is over. */
const SHORT = 5_000;

/** Runs two cached clients, two plain writers and, if it is long, another process that writes against one server. */
export async function runScenario(
  scenario: Scenario,
  options: Pick<CacheOptions, 'prefixes' | 'prefetch'>,
  reads: number,
  seed: number,
): Promise<CheckFigures> {
  const args = scenario.args ?? [];
  let server = await startServer({ args });
  let others: ChildProcess | undefined;
  let restartedAt = 0;
  const restart = async (): Promise<void> => {
    const { port } = server;
    await server.kill();
    restartedAt = Date.now() * 1_000;
    server = await startServer({ args, port });
  };
  try {
    const proxy = scenario.proxied ? await startProxy(server.url) : undefined;
    const patient = { maxRetriesPerRequest: null, retryStrategy: () => 20 };
    const admin = ioredis6.create(server.url, patient);
    // Few answers are kept, so that many are predicted.
    const cache = { ...options, ...(options.prefetch && { maxEntries: 20 }), ...scenario.limits };
    const subjects = await Promise.all(
      [0, 1].map(async (index) => {
        const url = proxy !== undefined && (scenario.proxied === true || index === 0) ? proxy.url : server.url;
        const own = { ...patient, ...scenario.options };
        if (scenario.check?.users !== true) return ioredis6.createCoalesced(url, own, { ...scenario.coalesce, cache });
        const username = `checked-${index}`;
        await admin.call('ACL', 'SETUSER', username, 'on', '>pw', '~*', '&*', '+@all');
        return ioredis6.createCoalesced(url, { ...own, username, password: 'pw' }, { ...scenario.coalesce, cache });
      }),
    );
    const writers = [ioredis6.create(server.url, patient), ioredis6.create(server.url, patient)];
    await Promise.all([admin, ...subjects, ...writers].map(ready));
    const flows = options.prefetch === true && { flows: true, keys: 24 };
    const checker = new Checker({ subjects, writers, reads, seed, bound: 1_000, ...scenario.check, ...flows });
    if (flows) await addLists(admin);
    let stopped = false;
    const another = () => ready(ioredis6.create(server.url, patient));
    const scene = { checker, proxy, admin, another, stopped: () => stopped, restart, restartedAt: () => restartedAt };
    const disturbing = scenario.disturb?.(scene);
    if (checker.lasting.length > 0 && reads >= SHORT) others = spawnWriter(server.url, checker.lasting);
    const figures = await checker.run();
    stopped = true;
    await disturbing;
    others?.kill();
    proxy?.resume();
    proxy?.cutRepliesInto(Number.POSITIVE_INFINITY);
    await checker.compareAtRest(admin);
    return figures;
  } finally {
    others?.kill();
    await server.stop();
  }
}

async function addLists(admin: Client): Promise<void> {
  for (let list = 0; list < 100; list += 1) {
    await admin.rpush(`checked:list:${list}`, ...[1, 2, 3, 4].map((step) => String((list * step + step) % 24)));
  }
}

/** Another process, which increments the counters every other millisecond. */
function spawnWriter(url: string, keys: readonly string[]): ChildProcess {
  const program = `
    import { Redis } from 'ioredis';
    const client = new Redis(${JSON.stringify(url)}, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
    const keys = ${JSON.stringify(keys)};
    client.on('error', () => {});
    setInterval(() => client.incr(keys[Math.floor(Math.random() * keys.length)]).catch(() => {}), 2);
  `;
  // It ends with this process, also where a scenario has run out of time.
  const guarded = `process.stdin.resume().on('close', () => process.exit());${program}`;
  return spawn(process.execPath, ['--input-type=module', '-e', guarded], { stdio: ['pipe', 'ignore', 'ignore'] });
}

const every = async (scene: Scene, ms: number, action: () => unknown): Promise<void> => {
  while (!scene.stopped()) {
    await sleep(ms);
    await action();
  }
};

const EXPIRE = `${CLOCK} redis.call('PEXPIRE', KEYS[1], ARGV[1]) return n`;
const TELL =
  "local n = redis.call('INCR', KEYS[1]) redis.call('PUBLISH', 'checked:told', KEYS[1] .. ' ' .. n) return n";
const GIVE_JOB =
  "local n = redis.call('INCR', KEYS[1]) redis.call('LPUSH', KEYS[2], 'written ' .. KEYS[1] .. ' ' .. n) return n";
/** Milliseconds after its time for which a key may still be given, on a busy machine. */
const EXPIRED_WITHIN = 400;

async function expireKeys({ admin, checker, stopped }: Scene): Promise<void> {
  const fillers = admin.pipeline();
  for (let index = 0; index < 20_000; index += 1) fillers.set(`filler:${index}`, 'x', 'EX', 3_600);
  await fillers.exec();
  const keys = [...checker.removable];
  for (let round = 0; !stopped(); round += 1) {
    const key = keys[round % keys.length] as string;
    const ms = round % 4 === 0 ? 1 + (round % 5) : 20 + (round % 7) * 30;
    // A server that is busy refuses.
    const expiredAt = Number(await admin.eval(EXPIRE, 1, key, ms).catch(() => 0));
    setTimeout(() => checker.expectOf(key, expiredAt), ms + EXPIRED_WITHIN);
    await sleep(10);
  }
}

/** Messages on the connections of the clients under test tell of values. */
async function tell(scene: Scene): Promise<void> {
  const { admin, checker } = scene;
  for (const subject of checker.options.subjects) {
    await subject.subscribe('checked:told');
    subject.on('message', (_, message: string) => {
      const [key = '', value] = message.split(' ');
      void checker.told(subject, key, Number(value));
    });
  }
  let round = 0;
  await every(scene, scene.pace ?? 3, () => {
    round += 1;
    return admin.eval(TELL, 1, checker.lasting[round % checker.lasting.length] as string);
  });
}

/** Jobs that other connections of this process take, and that are about what was written before, or with them. */
async function giveJobs(scene: Scene): Promise<void> {
  const { checker, proxy } = scene;
  const { subjects } = checker.options;
  const workers = await Promise.all(
    subjects.map(async (subject, index) => {
      const worker = await scene.another();
      return { subject, worker, list: `checked:jobs:${index}` };
    }),
  );
  const working = workers.map(async ({ subject, worker, list }) => {
    while (!scene.stopped()) {
      const job = await worker.brpop(list, 1);
      const [kind, key = '', value] = job?.[1].split(' ') ?? [];
      if (kind !== undefined) await checker.gotJob(subject, key, Number(value), kind === 'awaited');
    }
  });
  const giver = await scene.another();
  let round = 0;
  await every(scene, scene.pace ?? 4, async () => {
    round += 1;
    const { subject, list } = workers[round % workers.length] as (typeof workers)[0];
    const key = checker.lasting[(round >> 1) % checker.lasting.length] as string;
    // A proxy may hold the invalidation back, but not the job.
    const late = proxy !== undefined && subject === subjects[0];
    if (late || round % 4 < 2) await giver.eval(GIVE_JOB, 2, key, list);
    else await giver.lpush(list, `awaited ${key} ${await giver.incr(key)}`);
  });
  await Promise.all(working);
}

/** Keys that hold something else for a moment, which all reads meet as an error. */
async function changeTypes(scene: Scene): Promise<void> {
  const { admin, checker } = scene;
  const keys = [...checker.removable];
  let round = 0;
  await every(scene, scene.pace ?? 5, async () => {
    round += 1;
    const key = keys[round % keys.length] as string;
    await admin.multi().del(key).rpush(key, 'something', 'else').exec();
    if (round % 2 === 0) await sleep(2);
    await admin.del(key);
  });
}

/** Another client takes permissions from the users of the clients under test, and gives them back. */
async function refuse(scene: Scene): Promise<void> {
  const { admin, checker } = scene;
  let round = 0;
  await every(scene, 150, async () => {
    round += 1;
    const subject = checker.options.subjects[round % 2] as Client;
    const command = round % 4 < 2 ? 'get' : 'hget';
    const set = (sign: string) => admin.call('ACL', 'SETUSER', subject.options.username ?? '', `${sign}${command}`);
    await checker.refuse(
      subject,
      command,
      () => set('-'),
      20,
      () => set('+'),
    );
  });
}

/** Connections that stop, deliver in pieces, are reset, and killed. */
async function breakConnections(scene: Scene): Promise<void> {
  const { admin, checker, proxy } = scene;
  let round = 0;
  await every(scene, 50, async () => {
    round += 1;
    switch (round % 6) {
      case 0:
        proxy?.cutRepliesInto(1 + ((round / 6) % 40));
        break;
      case 1:
        proxy?.cutRepliesInto(Number.POSITIVE_INFINITY);
        break;
      case 2:
        proxy?.stall();
        await sleep(10);
        proxy?.resume();
        break;
      case 3:
        await checker.losing(() => proxy?.reset());
        break;
      case 4:
        await checker.losing(() => admin.call('CLIENT', 'KILL', 'USER', `checked-${(round / 2) % 2}`));
        break;
      case 5:
        await admin.del(...checker.removable);
        break;
    }
  });
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'all at once',
    proxied: 'first',
    check: { removed: 'half', transactions: true, users: true, scans: true, readsPerWrite: 200, pause: 10, keys: 12 },
    limits: { maxEntries: 200 },
    disturb: async (scene) => {
      const seldom = { ...scene, pace: 20 };
      await Promise.all([expireKeys, tell, giveJobs, refuse, breakConnections].map((each) => each(seldom)));
    },
  },
  {
    name: 'keys that expire among 20,000 that have a time to live',
    check: { removed: true, pause: 20 },
    disturb: expireKeys,
  },
  {
    name: 'keys that expire while the clock of the server is set back now and then',
    check: { removed: true, pause: 20 },
    disturb: async (scene) => {
      await Promise.all([expireKeys(scene), every(scene, 100, () => scene.admin.incrby(CLOCK_BEHIND, 60_000))]);
    },
  },
  { name: 'messages on the same connection', disturb: tell },
  { name: 'jobs on another connection', disturb: giveJobs },
  { name: 'undisturbed', check: { transactions: true } },
  { name: 'answers that are soon too old', limits: { ttl: 3 } },
  { name: 'shareReads, and answers that are soon too old', limits: { ttl: 3 }, coalesce: { shareReads: true } },
  { name: 'shareReads, and calls with options of their own', coalesce: { shareReads: true }, check: { views: true } },
  {
    name: 'maxInFlight, calls with options of their own',
    coalesce: { maxInFlight: 40 },
    check: { views: true, transactions: true },
  },
  { name: 'maxPending', coalesce: { maxPending: 150 }, check: { views: true, removed: 'half' }, disturb: expireKeys },
  {
    name: 'keys of another type now and then, replies in pieces',
    proxied: true,
    check: { removed: 'half', bound: 5_000 },
    disturb: async (scene) => {
      scene.proxy?.cutRepliesInto(11);
      await changeTypes(scene);
    },
  },
  {
    name: 'replies that stop for seconds, while reads go on',
    predicting: true,
    proxied: true,
    // As long as an answer may be given without a byte of the server.
    check: { bound: 2_400 },
    disturb: (scene) =>
      every(scene, 500, async () => {
        scene.proxy?.stall();
        await scene.checker.readOn(2_700);
        scene.proxy?.resume();
      }),
  },
  {
    name: 'numbers as text, of keys that expire',
    options: { stringNumbers: true },
    check: { removed: 'half', transactions: true, pause: 10 },
    disturb: expireKeys,
  },
  {
    name: 'doubles as numbers and maps as objects',
    options: { replyMapping: 'resp3' },
    check: { transactions: true },
    disturb: tell,
  },
  {
    name: 'a server that is busy with a script now and then',
    args: ['--busy-reply-threshold', '5'],
    check: { removed: 'half' },
    disturb: async (scene) => {
      const killer = await scene.another();
      await Promise.all([
        every({ ...scene, pace: 20 }, 100, async () => {
          const script = scene.admin.eval('while true do end', 0).catch(() => {});
          await sleep(25);
          while ((await killer.call('SCRIPT', 'KILL').catch(String)) !== 'OK') await sleep(5);
          await script;
        }),
        expireKeys(scene),
      ]);
    },
  },
  {
    name: 'a replica whose master is gone now and then',
    args: ['--replica-serve-stale-data', 'no'],
    check: { removed: 'half' },
    disturb: async (scene) => {
      const master = await scene.another();
      await Promise.all([
        every(scene, 100, async () => {
          await master.call('REPLICAOF', '127.0.0.1', '1');
          await sleep(25);
          await master.call('REPLICAOF', 'NO', 'ONE');
        }),
        expireKeys(scene),
      ]);
    },
  },
  { name: 'writers without pause', check: { pause: 0, keys: 3, transactions: true } },
  {
    name: 'replies in pieces of 1 to 9 bytes',
    proxied: true,
    // Here the process lags behind its socket by as long as the machine is busy.
    check: { pause: 3, bound: 5_000, transactions: true },
    disturb: async (scene) => {
      for (let size = 1; !scene.stopped(); size = (size % 9) + 1) {
        scene.proxy?.cutRepliesInto(size);
        await sleep(5);
      }
    },
  },
  {
    name: 'replies that stop and go on',
    proxied: true,
    disturb: (scene) =>
      every(scene, 15, async () => {
        scene.proxy?.stall();
        await sleep(10);
        scene.proxy?.resume();
      }),
  },
  {
    name: 'connections reset',
    proxied: true,
    disturb: (scene) => every(scene, 60, () => scene.proxy?.reset()),
  },
  {
    name: 'tracking-table-max-keys 10',
    args: ['--tracking-table-max-keys', '10'],
    check: { keys: 40, transactions: true },
  },
  { name: 'no room, while many keys are read once', limits: { maxEntries: 12 }, check: { scans: true } },
  {
    name: 'no room, while tens of thousands of keys are read once',
    limits: { maxEntries: 12 },
    check: { scans: 'long', transactions: true },
  },
  {
    name: 'the same, while connections are killed',
    limits: { maxEntries: 12 },
    check: { scans: 'long' },
    disturb: (scene) => every(scene, 300, () => scene.admin.call('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => {})),
  },
  {
    name: 'connections killed by the server',
    disturb: (scene) => every(scene, 50, () => scene.admin.call('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => {})),
  },
  {
    name: 'connections closed by their clients',
    disturb: (scene) =>
      every(scene, 50, () => {
        for (const subject of scene.checker.options.subjects) subject.disconnect(true);
      }),
  },
  {
    name: 'connections killed while commands are sent again',
    disturb: async ({ admin, checker, stopped }) => {
      let connections = 0;
      for (const subject of checker.options.subjects) {
        subject.on('connect', () => {
          connections += 1;
          // Every other connection lives long enough for the cache.
          if (connections % 2 === 0 || stopped()) return;
          const { localPort } = (subject as unknown as { stream: Socket }).stream;
          setTimeout(
            () => admin.call('CLIENT', 'KILL', 'ADDR', `127.0.0.1:${localPort}`).catch(() => {}),
            connections % 3,
          );
        });
      }
      while (!stopped()) {
        await sleep(30);
        for (const subject of checker.options.subjects) subject.stream.destroy();
      }
    },
  },
  {
    name: 'keys flushed, deleted, expired and evicted',
    args: ['--maxmemory-policy', 'allkeys-random'],
    check: { removed: true },
    disturb: async (scene) => {
      const { admin, checker } = scene;
      const used = /used_memory:(\d+)/.exec(await admin.info('memory'))?.[1];
      await admin.config('SET', 'maxmemory', Number(used) + 300_000);
      for (let round = 0; !scene.stopped(); round += 1) {
        await sleep(10);
        await admin.pexpire(checker.counters[0] as string, 15);
        await admin.del(checker.hashes[0] as string);
        await admin.unlink(checker.counters[1] as string);
        await admin.set(`filler:${round}`, 'x'.repeat(20_000)).catch(() => {});
        if (round % 5 === 0) await admin.flushall();
      }
    },
  },
  {
    name: 'the server killed and started again',
    check: { removed: true },
    disturb: async (scene) => {
      while (!scene.stopped()) {
        await sleep(150);
        await scene.restart();
        // The new server has nothing: what was written before must not be seen again.
        scene.checker.expectAtLeast(scene.restartedAt());
      }
    },
  },
  {
    name: 'output buffers cut off',
    args: ['--client-output-buffer-limit', 'normal', '20kb', '0', '0'],
    // Replies that exceed the limit by themselves would be asked for again and again.
    check: { longestBurst: 40 },
    disturb: (scene) =>
      every(scene, 20, () =>
        scene.admin.mset(Array.from({ length: 1_000 }, (_, index) => [`checked:other:${index}`, 'x']).flat()),
      ),
  },
  {
    name: 'keys renamed',
    disturb: async (scene) => {
      const { admin, checker } = scene;
      for (let base = 1_000_000_000; !scene.stopped(); base += 1_000_000) {
        await sleep(20);
        await admin.mset('renamed:a', base, 'renamed:b', base);
        await admin.hset('renamed:c', { a: base, b: base, c: base });
        await admin.rename('renamed:a', checker.counters[0] as string);
        await admin.copy('renamed:b', checker.counters[1] as string, 'REPLACE');
        await admin.rename('renamed:c', checker.hashes[0] as string);
      }
    },
  },
];
