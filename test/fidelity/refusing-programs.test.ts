/** Random programs of fused reads against servers that refuse: ACLs, full memory, lost connections. */
import type { Redis } from 'ioredis';
import { Redis as Admin } from 'ioredis';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { expect } from 'vitest';
import { describePrograms, programsOf, SEED } from '../helpers/fidelity/profiles.js';
import {
  type Fate,
  HASHES,
  KEYS,
  namedValue,
  type RefusingProgram,
  refusingPrograms,
  runRefusing,
} from '../helpers/fidelity/refusing-program.js';
import { HOSTS, ready } from '../helpers/hosts.js';
import { FaultyProxy } from '../helpers/proxy.js';
import { type RedisServer, startServer } from '../helpers/redis.js';
import { share } from '../helpers/share.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_FUSE');

const PROGRAMS = programsOf('REFUSING', 16);
const SETTLES_WITHIN_MS = 20_000;

const OPTIONS: readonly CoalesceOptions[] = [
  {},
  { shareReads: true },
  { maxInFlight: 3 },
  { maxBatchSize: 3, shareReads: true },
  { schedule: 'tick', busyPoll: false },
];

/** A server of its own: two users, and a proxy in front. */
class World {
  private constructor(
    readonly server: RedisServer,
    readonly admin: Redis,
    readonly proxy: FaultyProxy,
  ) {}

  static async start(): Promise<World> {
    const server = await startServer({
      args: ['--replica-serve-stale-data', 'no', '--maxmemory-policy', 'noeviction'],
    });
    const proxy = new FaultyProxy(server.port);
    await proxy.listen();
    return new World(server, new Admin(server.url, { protocol: 2 }), proxy);
  }

  async reset(keyPrefix: string): Promise<void> {
    const { admin } = this;
    await admin.config('SET', 'maxmemory', '0');
    await admin.replicaof('NO', 'ONE');
    const user = ['on', 'nopass', 'allkeys', '&*', '+@all'];
    await admin.call('ACL', 'SETUSER', 'user', 'reset', ...user);
    await admin.call('ACL', 'SETUSER', 'other', 'reset', ...user);
    await admin.flushall();
    for (const db of [0, 1]) {
      await admin.select(db);
      const pipeline = admin.pipeline();
      for (const key of KEYS) pipeline.set(keyPrefix + key, namedValue(db, key));
      for (const hash of HASHES)
        for (const field of ['f', 'é']) pipeline.hset(keyPrefix + hash, field, namedValue(db, hash, field));
      await pipeline.exec();
    }
  }

  administer = (command: readonly string[]) => this.admin.call(...(command as [string, ...string[]]));

  lose = (what: 'requests' | 'replies', sent: string) =>
    what === 'requests' ? this.proxy.loseRequests(sent, 500) : this.proxy.loseReplies(sent, 500);

  async stop(): Promise<void> {
    this.admin.disconnect();
    await this.proxy.close();
    await this.server.stop();
  }
}

/** Of a read: the reply names the database and the key, or is an error, or null. */
function isOfAnother({ call, outcome, db, again }: Fate): boolean {
  const [, name, rest = ''] = /^\["(\w+)", (.*)\]$/.exec(call) ?? [];
  const value = /^resolved (?:"(.*)"|Buffer<(.*)>)$/.exec(outcome);
  if (value === null || !/^h?get/.test(name ?? '')) return false;
  const args = rest.split(', ').map((arg) => {
    const hex = /^Buffer<(.*)>$/.exec(arg)?.[1];
    return hex === undefined ? arg.replaceAll('"', '') : Buffer.from(hex, 'hex').toString();
  });
  const text = value[1] ?? Buffer.from(value[2] as string, 'hex').toString();
  return text !== 'QUEUED' && text !== namedValue(db, ...args) && text !== namedValue(again, ...args);
}

/**
 * The documented differences: WRONGTYPE of GET; that ACLs see MGET and HMGET; that reads of a refused one are sent
 * again behind what was issued later.
 */
function isTolerated(theirs: Fate, mine: Fate): boolean {
  if (!/^\["h?get/.test(mine.call)) return false;
  if (theirs.outcome.includes('WRONGTYPE') && mine.outcome === 'resolved null') return true;
  const mayNot = / permissions to run the 'h?get' command/.test(theirs.outcome);
  return (mine.overtaken || mayNot) && !isOfAnother(mine);
}

const cases = HOSTS.flatMap((host) =>
  OPTIONS.map((options) => [`${host.name}, ${JSON.stringify(options)}`, { host, options }] as const),
);

/** Run first: whatever is drawn, some reads are fused. */
const FUSING: RefusingProgram = {
  protocol: 2,
  isProven: true,
  checksReady: false,
  keyPrefix: '',
  turns: [
    {
      before: [],
      loses: 'nothing',
      calls: (['a', 'b'] as const).map((key) => ({ call: ['get', key], how: 'method', gap: 'nothing' })),
    },
  ],
};

describePrograms({
  name: 'refusing programs',
  expects: 'on a server that refuses, fused reads are as on a plain client: %s',
  cases: share(cases, 3, SEED),
  programs: refusingPrograms,
  first: [FUSING],
  runs: PROGRAMS,
  ms: 500,
  shrinks: true,
  start: async () => ({ plain: await World.start(), fused: await World.start() }),
  stop: async ({ plain, fused }) => {
    await plain.stop();
    await fused.stop();
  },
  prepare: async (worlds, { host, options }) => {
    let fused = 0;
    let tolerated = 0;
    const run = async (kind: 'plain' | 'fused', program: RefusingProgram) => {
      const world = worlds[kind];
      await world.reset(program.keyPrefix);
      const client = new host.Redis(world.proxy.url, {
        username: 'user',
        password: 'any',
        protocol: program.protocol,
        keyPrefix: program.keyPrefix,
        retryStrategy: () => 1,
        // Without it iovalkey sends commands again before this package sees that.
        enableReadyCheck: host.name === 'iovalkey' || program.checksReady,
      });
      client.on('error', () => {});
      const coalesced = kind === 'fused' ? coalesce(client, { fuseReads: true, ...options }) : undefined;
      await ready(client);
      const fates = await runRefusing(client, program, world, SETTLES_WITHIN_MS);
      const { fusedReads = 0, inFlight = 0 } = coalesced?.coalescer.stats() ?? {};
      fused += fusedReads;
      expect(inFlight).toBe(0);
      client.disconnect();
      return fates;
    };
    const compare = async (program: RefusingProgram) => {
      const [plain, mine] = await Promise.all([run('plain', program), run('fused', program)]);
      const found: string[] = [];
      for (const [at, fate] of mine.all.entries()) {
        const theirs = plain.all[at] as Fate;
        if (fate.outcome === theirs.outcome) continue;
        if (isTolerated(theirs, fate)) tolerated += 1;
        else found.push(`${fate.turn} ${fate.call}: ${theirs.outcome} / ${fate.outcome}`);
      }
      if (plain.all.length !== mine.all.length) found.push('another number of calls');
      const isOrdered = ({ ordered, turn }: Fate) =>
        ordered && !options.shareReads && !mayRefuse(program, turn) && program.turns[turn]?.loses === 'nothing';
      const order = ({ settled }: typeof plain) => settled.filter(isOrdered).map(({ turn, call }) => `${turn} ${call}`);
      expect(found.join('\n')).toBe('');
      expect(order(mine)).toEqual(order(plain));
    };
    const end = () => {
      console.log(`${PROGRAMS} programs, ${fused} fused reads, ${tolerated} tolerated differences`);
      expect(fused).toBeGreaterThan(0);
    };
    return [compare, end];
  },
});

/** Whether the user may lack a right in this turn. */
function mayRefuse({ turns }: RefusingProgram, turn: number): boolean {
  return turns
    .slice(0, turn + 1)
    .some(({ before }) => before.some(([name, , , ...rules]) => name === 'ACL' && !/^\+|allkeys/.test(rules[0] ?? '')));
}
