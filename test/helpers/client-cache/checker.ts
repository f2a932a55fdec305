import { setImmediate as turn } from 'node:timers/promises';
import { type Random, seeded } from '../hostile/random.js';
import { type Client, type CoalescedClient, sleep, until } from '../hosts.js';
import {
  bumpCounter,
  bumpHash,
  bumpInTransaction,
  type Read,
  readCounter,
  readField,
  readHash,
  StrangeReply,
} from './forms.js';

/**
 * Finds reads that memory should not have answered as it did.
 *
 * Every key holds a number that only grows, so each value says how old it is. A read must return at least
 *
 * - what any read or write of the same client on that key has returned before the read was issued (never back in time),
 * - plus one for each of the client's own increments issued before it, answered or not (own writes are seen),
 * - what any read returns that the same client has issued before it on that key, even if that is answered later,
 * - and what others' writes have returned longer ago than the bound (not older than stated).
 *
 * Host: commands that are sent again after a lost connection may change places with later ones. If the new connection
 * is lost before they are written, they are queued offline, behind those that were issued meanwhile. So own increments
 * on their way count only as long as no connection is lost.
 */
export interface CheckOptions {
  /** Cached clients that read, and write a little. */
  readonly subjects: readonly CoalescedClient[];
  /** Plain clients that write. */
  readonly writers: readonly Client[];
  /** Reads to make in all; more for a while, if memory has answered none of them: on a busy machine it takes longer. */
  readonly reads: number;
  readonly seed: number;
  /**
   * Milliseconds after which a value written by others must be seen; or as long as the slowest reply of the run took.
   */
  readonly bound: number;
  /** Milliseconds between two writes of each writer. @default 1 */
  readonly pause?: number;
  /** Reads of a client for each of its own writes, on average. @default 25 */
  readonly readsPerWrite?: number;
  /** Reads that are issued at once, now and then. @default 400 */
  readonly longestBurst?: number;
  /** Keys of each kind. @default 8 */
  readonly keys?: number;
  /**
   * Whether keys are removed too. Then writes set the server's clock instead of counting, so that values still only
   * grow, a key may be missing, and what an own write will return is not known beforehand. `half`: half of them.
   * @default false
   */
  readonly removed?: boolean | 'half';
  /**
   * Whether transactions are opened that other reads come into. Host: one that is sent again in part, on the next
   * connection, may stay open for good, so connections are lost in `losing` only. A Cluster's client opens none.
   * @default false
   */
  readonly transactions?: boolean;
  /**
   * Whether a client now and then changes its database, its user and what that user may do. Each has a user of its own.
   * @default false
   */
  readonly users?: boolean;
  /**
   * Whether hundreds of keys that are never read again are read now and then. A cache without room then
   * keeps most of these answers out. `long`: tens of thousands.
   * @default false
   */
  readonly scans?: boolean | 'long';
  /**
   * Whether keys of one number are read after each other, and those of the numbers in a set: for clients that predict.
   * @default false
   */
  readonly flows?: boolean | undefined;
  /** Whether calls have signals, which abort them now and then, or timeouts, or read past the cache. @default false */
  readonly views?: boolean;
}

export interface CheckFigures {
  reads: number;
  hits: number;
  /** Reads that got an answer which was predicted. */
  predicted: number;
  ownWrites: number;
  writes: number;
  /** The first ones, in words. */
  violations: string[];
  /** Milliseconds by which a value was out of date when its read was issued, of the reads where it was. */
  late: number[];
  /** Reads of what a job on another connection was about, and how many were older than the job. */
  jobs: { written: number; writtenOld: number; awaited: number; awaitedOld: number };
  /** Reads that a permission, which was known to be revoked, must have refused. */
  refused: number;
}

/** What one client must not go behind, for one key. */
interface Floor {
  /** What was returned, plus own increments that will be seen before it is compared, unless they are lost. */
  seen: number;
  /** What was returned. */
  returned: number;
  /** Its own increments on their way. */
  pending: number;
  /** Own increments ever issued. */
  issued: number;
  /** For each own increment on its way, how many connections were lost before it was issued. */
  readonly inFlight: Map<Promise<unknown>, number>;
  /** What the last reads have returned, in the order of their issue. */
  readonly reads: { readonly order: number; readonly value: number }[];
}

/** A command that another client has taken from a client's user. */
interface Refusal {
  readonly command: string;
  /** Until it is given back. */
  active: boolean;
  /** Whether the client was told by an error. */
  seen: boolean;
}

type Ack = { readonly at: number; readonly value: number };

const MAX_VIOLATIONS = 20;
/** Reads of a key that are compared with those issued before and behind them. */
const MAX_COMPARED = 1_000;
/** Milliseconds without a byte after which no answer is given, and some more. */
const LONGEST_SILENCE = 2_500;
/** Milliseconds after which a run without an answer from memory ends. */
const WITHOUT_HITS = 30_000;
const PREFIX = 'checked:';
/** Microseconds by which a scenario has set the clock back. */
export const CLOCK_BEHIND = 'clock:behind';
/** The server's clock, which may be set back, but never one that was read before: what is written later is newer. */
export const CLOCK = `local t = redis.call('TIME')
  local n = t[1] * 1000000 + t[2] - (redis.call('GET', '${CLOCK_BEHIND}') or 0)
  n = math.max(n, (redis.call('GET', 'clock:last') or 0) + 1)
  n = string.format('%.0f', n)
  redis.call('SET', 'clock:last', n)`;
const SET_CLOCK = `${CLOCK} redis.call('SET', KEYS[1], n) return n`;
const HSET_CLOCK = `${CLOCK} redis.call('HSET', KEYS[1], 'a', n, 'b', n, 'c', n) return n`;

export class Checker {
  readonly figures: CheckFigures = {
    reads: 0,
    hits: 0,
    predicted: 0,
    ownWrites: 0,
    writes: 0,
    violations: [],
    late: [],
    jobs: { written: 0, writtenOld: 0, awaited: 0, awaitedOld: 0 },
    refused: 0,
  };
  readonly counters: readonly string[];
  readonly hashes: readonly string[];
  /** The keys that may be removed. */
  readonly removable: ReadonlySet<string>;
  /** The counters that may not. */
  readonly lasting: readonly string[];
  readonly #floors = new Map<Client, Map<string, Floor>>();
  readonly #acks = new Map<string, Ack[]>();
  /** How many connections a client has lost. */
  readonly #losses = new Map<Client, number>();
  readonly #refusals = new Map<Client, Refusal>();
  /** Commands that a client has issued here. */
  readonly #issued = new Map<Client, number>();
  #readsIssued = 0;
  #done = false;
  /** What must not lose its connection: how many clients are at it, and how many wait to lose theirs. */
  #unbroken = 0;
  #losing = 0;
  #scanned = 0;
  readonly #clockOffsetMs = clockOffsetMs();
  /** Milliseconds. On a busy machine bytes wait before they are read, invalidations as long as replies. */
  #slowestReply = 0;
  readonly #random: Random;

  constructor(readonly options: CheckOptions) {
    const { keys = 8, removed = false } = options;
    this.#random = seeded(options.seed + 1_000);
    this.counters = Array.from({ length: keys }, (_, index) => `${PREFIX}counter:${index}`);
    this.hashes = Array.from({ length: keys }, (_, index) => `${PREFIX}hash:${index}`);
    const removable = removed === 'half' ? keys / 2 : removed ? keys : 0;
    this.removable = new Set([...this.counters.slice(0, removable), ...this.hashes.slice(0, removable)]);
    this.lasting = this.counters.slice(removable);
    for (const subject of options.subjects) {
      this.#losses.set(subject, 0);
      subject.on('close', () => this.#losses.set(subject, this.#lossesOf(subject) + 1));
    }
  }

  /** Loses connections while no client is in a transaction, in another database or without a permission. */
  async losing(lose: () => unknown): Promise<void> {
    this.#losing += 1;
    await until(() => this.#unbroken === 0, 'no client is in a transaction');
    await lose();
    // What is sent again is sent before this.
    await Promise.all(this.options.subjects.map((subject) => subject.ping().catch(() => {})));
    this.#losing -= 1;
  }

  #lossesOf(client: Client): number {
    return this.#losses.get(client) ?? 0;
  }

  async run(): Promise<CheckFigures> {
    const { subjects, writers, reads, seed } = this.options;
    const hits = () => subjects.reduce((sum, { coalescer }) => sum + (coalescer.stats().cache?.hits ?? 0), 0);
    const predicted = () =>
      subjects.reduce((sum, { coalescer }) => sum + (coalescer.stats().cache?.predictionsUsed ?? 0), 0);
    const before = hits();
    const predictedBefore = predicted();
    const deadline = performance.now() + WITHOUT_HITS;
    const isSeen = () => hits() > before && (this.options.flows !== true || predicted() > predictedBefore);
    const goesOn = () => this.figures.reads < reads || (!isSeen() && performance.now() < deadline);
    const writing = writers.map((writer, index) => this.#write(writer, seeded(seed + index)));
    for (const subject of subjects) {
      subject.defineCommand('bump', { numberOfKeys: 1, lua: "return redis.call('INCR', KEYS[1])" });
      await this.#load(subject);
    }
    await Promise.all(subjects.map((subject, index) => this.#read(subject, seeded(seed + 100 + index), goesOn)));
    this.#done = true;
    await Promise.all(writing);
    this.figures.hits = hits() - before;
    this.figures.predicted = predicted() - predictedBefore;
    return this.figures;
  }

  /**
   * Once nothing is written any more, memory must say what the server says: twice in a row, before the bound is over.
   */
  async compareAtRest(plain: Client): Promise<void> {
    const deadline = performance.now() + this.options.bound;
    for (let agreed = 0; ; ) {
      const isLast = performance.now() > deadline;
      const differences = await this.#differencesAtRest(plain);
      agreed = differences.length === 0 ? agreed + 1 : 0;
      if (agreed === 2 || isLast) {
        for (const difference of differences) this.#violation(difference);
        return;
      }
      // What was on its way may yet arrive, and may not overwrite what is right.
      await sleep(50);
    }
  }

  async #differencesAtRest(plain: Client): Promise<string[]> {
    const reads = [
      ...this.counters.map((key) => ({ key, read: (client: Client): Promise<unknown> => client.get(key) })),
      ...this.hashes.map((key) => ({ key, read: (client: Client): Promise<unknown> => client.hgetall(key) })),
    ];
    const differences: string[] = [];
    for (const { key, read } of reads) {
      const expected = JSON.stringify(await read(plain));
      for (const subject of this.options.subjects) {
        const found = JSON.stringify(await read(subject));
        if (found !== expected) differences.push(`at rest, ${key}: ${found}, expected ${expected}`);
      }
    }
    return differences;
  }

  /** Reads issued from now on must return at least this, whatever was seen. */
  expectAtLeast(value: number): void {
    for (const subject of this.options.subjects) {
      for (const key of [...this.counters, ...this.hashes]) {
        Object.assign(this.#floor(subject, key), { seen: value, returned: value, reads: [] });
      }
    }
  }

  /**
   * Loads the script. Host: one that was refused is not loaded, and sent again after NOSCRIPT, behind what was issued
   * later.
   */
  async #load(subject: CoalescedClient): Promise<void> {
    const { bump } = subject as unknown as { bump(key: string): Promise<number> };
    for (let isLoaded = false; !isLoaded; await turn()) {
      isLoaded = await bump.call(subject, `${PREFIX}loads`).then(
        () => true,
        () => false,
      );
    }
  }

  /** From now on, reads of a key must return at least this, or that it is missing. */
  expectOf(key: string, value: number): void {
    for (const subject of this.options.subjects) this.#raise(this.#floor(subject, key), value);
  }

  /** A client was told of a value, on the connection on which it reads now. */
  async told(client: CoalescedClient, key: string, value: number): Promise<void> {
    this.#raise(this.#floor(client, key), value);
    await this.#oneRead(client, this.#random, key);
  }

  /** Reads after which others are predicted, and some time later these, whether or not there are replies. */
  async readOn(ms: number): Promise<void> {
    const { subjects } = this.options;
    for (const client of subjects)
      for (const key of this.counters)
        void this.#oneRead(client, this.#random, key, () => readField(client, key, undefined));
    await sleep(ms);
    for (const client of subjects)
      for (const key of this.hashes) void this.#oneRead(client, this.#random, key, () => readField(client, key, 'b'));
    await turn();
  }

  /** A job on another connection is about a value. Its writer has `awaited` the write, or written both at once. */
  async gotJob(client: CoalescedClient, key: string, value: number, awaited: boolean): Promise<void> {
    const { jobs } = this.figures;
    if (!awaited) {
      const [read, past] = await Promise.all([
        client.get(key),
        client.coalescer.withOptions({ cache: false }).get(key),
      ]).catch(() => []);
      if (past === undefined) return;
      jobs.written += 1;
      if (Number(read) < value) jobs.writtenOld += 1;
      if (Number(past) < value)
        this.#violation(`past the cache, ${key}: ${past}, expected at least ${value}, of a job`);
      return;
    }
    const issued = this.#issued.get(client);
    const read = await client.get(key).catch(() => undefined);
    // A command behind the read has it answered before all sockets have been read.
    if (read === undefined || this.#issued.get(client) !== issued) return;
    jobs.awaited += 1;
    if (Number(read) >= value) return;
    jobs.awaitedOld += 1;
    this.#violation(`get ${key}: ${read}, expected at least ${value}, of a job whose writer has awaited its write`);
  }

  /** Another client takes a command from the client's user, for some time. */
  async refuse(client: Client, command: string, take: () => unknown, ms: number, give: () => unknown): Promise<void> {
    await take();
    const refusal: Refusal = { command, active: true, seen: false };
    this.#refusals.set(client, refusal);
    await sleep(ms);
    refusal.active = false;
    this.#refusals.delete(client);
    await give();
  }

  /** The value may include own increments on their way, which are added to `seen`. */
  #raise(floor: Floor, value: number): void {
    floor.returned = Math.max(floor.returned, value - floor.pending);
    floor.seen = Math.max(floor.seen, value - floor.pending);
  }

  async #write(client: Client, random: Random): Promise<void> {
    const { pause = 1 } = this.options;
    while (!this.#done) {
      const hash = random.oneIn(2);
      const key = random.of(hash ? this.hashes : this.counters);
      try {
        const value = await (hash ? this.#bumpHash(client, key, random) : this.#bumpCounter(client, key, random));
        this.figures.writes += 1;
        this.#acked(key, value);
      } catch {
        // Servers come and go here.
      }
      await (pause > 0 ? sleep(pause) : turn());
    }
  }

  async #read(client: CoalescedClient, random: Random, goesOn: () => boolean): Promise<void> {
    const { readsPerWrite = 25, longestBurst = 400 } = this.options;
    while (goesOn()) {
      const replies: Promise<unknown>[] = [];
      const most = random.oneIn(20) ? longestBurst : 40;
      // Much else of the same numbers in between, and nothing would be learned.
      const burst = this.options.flows === true && random.below(4) > 0 ? 0 : random.between(1, most);
      for (let left = burst; left > 0; left -= 1) {
        replies.push(random.oneIn(readsPerWrite) ? this.#anyOwnWrite(client, random) : this.#oneRead(client, random));
      }
      if (this.options.flows === true) {
        for (let left = 8; left > 0; left -= 1) replies.push(this.#flow(client, random));
        if (random.oneIn(4)) replies.push(this.#list(client, random));
      }
      if (random.oneIn(4)) replies.push(...this.#aroundWrite(client, random));
      await Promise.all(replies);
      if (random.oneIn(20)) await this.#unlessLosing(() => this.#transaction(client, random));
      if (random.oneIn(100)) await this.#unlessLosing(() => this.#changeUser(client, random));
      if (this.options.scans === true && random.oneIn(40)) void this.#scan(client, random.between(200, 600));
      if (this.options.scans === 'long' && random.oneIn(60)) await this.#longScan(client, random);
      if (random.oneIn(4)) await turn();
      if (random.oneIn(40)) await sleep(random.below(4));
    }
  }

  async #unlessLosing(action: () => Promise<void>): Promise<void> {
    if (this.#losing > 0) return;
    this.#unbroken += 1;
    await action();
    this.#unbroken -= 1;
  }

  /** All of it in one tick, so that no other read comes between. */
  async #changeUser(client: CoalescedClient, random: Random): Promise<void> {
    if (this.options.users !== true) return;
    const lossesBefore = this.#lossesOf(client);
    const key = random.of(this.counters);
    const { username: user = '' } = client.options;
    const settle = (reply: Promise<unknown>) => reply.then(String, (error: Error) => error.message);
    this.#issues(client);
    let expected: RegExp;
    let replies: Promise<string>[];
    switch (random.below(3)) {
      case 0: {
        const mayNot = client.call('ACL', 'SETUSER', user, '-getrange');
        replies = [client.getrange(key, 0, -1), mayNot, client.call('ACL', 'SETUSER', user, '+getrange')].map(settle);
        expected = /^NOPERM/;
        break;
      }
      case 1: {
        const selected = client.select(1);
        replies = [client.get(key), selected, client.select(0)].map(settle);
        expected = /^null$/;
        break;
      }
      default:
        // Not with a wrong password: Redis 8.2.3 gives no reply to that, to any client.
        replies = [client.auth(user, 'pw'), client.hget(key, 'field')].map(settle);
        expected = /^OK$/;
    }
    const [reply = ''] = await Promise.all(replies);
    // `refuse` may be at work.
    const isExpected = expected.test(reply) || reply.startsWith('NOPERM');
    if (this.#lossesOf(client) === lossesBefore && !isExpected) {
      this.#violation(`a change of user or database, ${key}: ${reply}, expected ${expected}`);
    }
  }

  #issues(client: Client): void {
    this.#issued.set(client, (this.#issued.get(client) ?? 0) + 1);
  }

  async #scan(client: CoalescedClient, keys: number): Promise<void> {
    const replies: Promise<unknown>[] = [];
    for (let left = keys; left > 0; left -= 1) {
      this.#scanned += 1;
      replies.push(client.get(`${PREFIX}once:${this.#scanned}`).catch(() => {}));
    }
    await Promise.all(replies);
  }

  /** Own writes are on their way when it begins, and reads follow without a pause. */
  async #longScan(client: CoalescedClient, random: Random): Promise<void> {
    for (let left = random.between(32, 44); left > 0; left -= 1) {
      if (random.oneIn(4)) void this.#anyOwnWrite(client, random);
      await this.#scan(client, 1_000);
    }
  }

  /** The same read in front of an own write and behind it, in one turn. */
  #aroundWrite(client: CoalescedClient, random: Random): Promise<void>[] {
    const key = random.of(this.hashes);
    const read = () => this.#oneRead(client, random, key, () => readField(client, key, 'a'));
    return [read(), this.#ownWrite(client, key, () => this.#bumpHash(client, key, random)), read()];
  }

  /** What is read of one number, mostly; now and then it is written in between. */
  async #flow(client: CoalescedClient, random: Random): Promise<void> {
    const index = random.below(this.hashes.length);
    const hash = this.hashes[index] as string;
    await this.#nextRead(client, random, this.counters[index]);
    for (const field of ['a', 'b', 'c']) {
      if (random.oneIn(30)) void this.#ownWrite(client, hash, () => this.#bumpHash(client, hash, random));
      if (!random.oneIn(20)) await this.#nextRead(client, random, hash, field);
    }
  }

  /** What a list names. */
  async #list(client: CoalescedClient, random: Random): Promise<void> {
    const named = await client.lrange(`${PREFIX}list:${random.below(100)}`, 0, -1).catch(() => []);
    await turn();
    for (const index of named) {
      await this.#nextRead(client, random, this.counters[Number(index)]);
    }
  }

  /** Later, the own writes whose replies have come with the one to this read are counted as answered. */
  async #nextRead(client: CoalescedClient, random: Random, only?: string, field?: string): Promise<void> {
    await this.#oneRead(client, random, only, (key) => readField(this.#viewOf(client, random), key, field));
    await turn();
  }

  #viewOf(client: CoalescedClient, random: Random): Client {
    if (this.options.views !== true || random.below(4) > 0) return client;
    const { coalescer } = client;
    switch (random.below(3)) {
      case 0:
        return coalescer.withOptions({ timeout: random.between(1, 20) }) as Client;
      case 1:
        return coalescer.withOptions({ cache: false }) as Client;
      default: {
        const aborting = new AbortController();
        if (random.oneIn(2)) void turn().then(() => aborting.abort());
        return coalescer.withOptions({ signal: aborting.signal }) as Client;
      }
    }
  }

  async #oneRead(
    client: CoalescedClient,
    random: Random,
    only?: string,
    reading?: (key: string) => Read,
  ): Promise<void> {
    const hash = only === undefined && random.oneIn(2);
    const key = only ?? random.of(hash ? this.hashes : this.counters);
    const floor = this.#floor(client, key);
    const atLeast = floor.seen + floor.pending;
    const atLeastReturned = floor.returned;
    const issuedBefore = floor.issued;
    const lossesBefore = this.#lossesOf(client);
    const writesInOrder = [...floor.inFlight.values()].every((losses) => losses === lossesBefore);
    const writes = [...floor.inFlight.keys()];
    const issuedAt = performance.now();
    const order = this.#readsIssued++;
    const commands = client.coalescer.stats().commands;
    const refusal = this.#refusals.get(client);
    this.#issues(client);
    const read = reading?.(key) ?? (hash ? readHash(client, key, random) : readCounter(client, key, random));
    const source = client.coalescer.stats().commands === commands ? 'memory, or sent later' : 'the server';
    const isRefused = refusal?.command === read.name.split(' ', 1)[0];
    const wasRefused = isRefused && refusal?.seen === true;
    const expected = `from ${source}, expected at least ${atLeast}: ${floor.returned} returned, ${floor.pending} own writes on their way`;
    let value: number | undefined;
    try {
      value = await read.reply;
      this.#slowestReply = Math.max(this.#slowestReply, performance.now() - issuedAt);
    } catch (error) {
      if (error instanceof StrangeReply) this.#violation(`${read.name} ${key}: ${error.message}`);
      if (isRefused && refusal?.active && /NOPERM/.test(String(error))) {
        refusal.seen = true;
        this.figures.refused += 1;
      }
      return;
    }
    this.figures.reads += 1;
    if (wasRefused && refusal?.active) {
      this.#violation(`${read.name} ${key}: ${value} from ${source}, expected NOPERM, which has come before`);
    }
    const inOrder = this.#lossesOf(client) === lossesBefore;
    // A server that is a replica for a moment refuses writes; `#ownWrite` may hear of it after this.
    if (value === undefined || value < atLeast) await turn();
    const wereWritten = inOrder && writesInOrder && this.#floor(client, key) === floor;
    const least = wereWritten ? atLeast : atLeastReturned;
    if (value === undefined) {
      // What comes after it has been removed is newer.
      if (this.removable.has(key)) floor.seen = Math.max(floor.seen, atLeast + 1);
      else if (least > 0) this.#violation(`${read.name} ${key}: nothing ${expected}`);
      return;
    }
    if (value < least) {
      this.#violation(`${read.name} ${key}: ${value} ${expected}`);
    }
    // What these write is known later.
    if (this.removable.has(key) && inOrder && writesInOrder) {
      for (const write of writes) void this.#compareWith(write, client, lossesBefore, value, `${read.name} ${key}`);
    }
    if (inOrder) this.#compareInOrder(floor, order, value, `${read.name} ${key}`);
    floor.returned = Math.max(floor.returned, value);
    floor.seen = Math.max(floor.seen, inOrder ? value + this.#unseen(floor, issuedBefore) : value);
    const late = this.#lateness(key, value, issuedAt);
    if (late === undefined) return;
    this.figures.late.push(late);
    if (late > Math.max(this.options.bound, Math.min(this.#slowestReply, LONGEST_SILENCE))) {
      this.#violation(`${read.name} ${key}: ${value} from ${source} was out of date for ${late.toFixed(0)} ms`);
    }
  }

  #compareInOrder({ reads }: Floor, order: number, value: number, read: string): void {
    let at = reads.length;
    while (at > 0 && (reads[at - 1]?.order ?? 0) > order) at -= 1;
    const before = reads[at - 1]?.value ?? 0;
    const after = reads[at]?.value ?? Number.POSITIVE_INFINITY;
    if (value < before) this.#violation(`${read}: ${value}, older than ${before}, which was read before it`);
    if (value > after) this.#violation(`${read}: ${value}, newer than ${after}, which was read behind it`);
    reads.splice(at, 0, { order, value });
    if (reads.length > MAX_COMPARED) reads.shift();
  }

  async #compareWith(write: Promise<unknown>, client: Client, losses: number, value: number, read: string) {
    const written = await write.catch(() => undefined);
    if (written === undefined || this.#lossesOf(client) !== losses || value >= Number(written)) return;
    // Both are times of the server's clock, which may have been set back in between.
    const movedMs = (clockOffsetMs() - this.#clockOffsetMs).toFixed(0);
    const moved = `the clock of this machine has moved by ${movedMs} ms since the start`;
    this.#violation(`${read}: ${value}, expected at least ${written}, which this client has written before; ${moved}`);
  }

  /** A transaction, open while others of the client's commands are answered; one at a time for each client. */
  async #transaction(client: CoalescedClient, random: Random): Promise<void> {
    if (this.options.transactions !== true) return;
    const lossesBefore = this.#lossesOf(client);
    const key = random.of(this.lasting);
    let queued: Promise<unknown>[] = [];
    await this.#ownWrite(client, key, () => {
      const bump = bumpInTransaction(client, key, random);
      queued = bump.queued;
      return bump.reply;
    });
    for (const reply of await Promise.all(queued.map((each) => each.catch(() => undefined)))) {
      // Without MULTI, on another connection, a command is carried out.
      if (reply !== undefined && reply !== 'QUEUED' && this.#lossesOf(client) === lossesBefore) {
        this.#violation(`within a transaction, ${key}: ${JSON.stringify(reply)} instead of QUEUED`);
      }
    }
  }

  /** Own increments that were issued since, less those still counted as pending. */
  #unseen(floor: Floor, issuedBefore: number): number {
    return Math.max(0, floor.issued - issuedBefore - floor.pending);
  }

  #anyOwnWrite(client: Client, random: Random): Promise<void> {
    const hash = random.oneIn(2);
    const key = random.of(hash ? this.hashes : this.counters);
    return this.#ownWrite(client, key, () =>
      hash ? this.#bumpHash(client, key, random) : this.#bumpCounter(client, key, random),
    );
  }

  async #ownWrite(client: Client, key: string, bump: () => Promise<number>): Promise<void> {
    const floor = this.#floor(client, key);
    this.#issues(client);
    const reply = bump();
    const counted = this.removable.has(key) ? 0 : 1;
    floor.inFlight.set(reply, this.#lossesOf(client));
    floor.pending += counted;
    floor.issued += counted;
    this.figures.ownWrites += 1;
    try {
      const value = await reply;
      floor.pending -= counted;
      floor.returned = Math.max(floor.returned, value);
      floor.seen = Math.max(floor.seen, value);
      this.#acked(key, value);
    } catch {
      // Nobody knows whether it was carried out.
      this.#floors.get(client)?.delete(key);
    } finally {
      floor.inFlight.delete(reply);
    }
  }

  #bumpCounter(client: Client, key: string, random: Random): Promise<number> {
    return this.removable.has(key) ? client.eval(SET_CLOCK, 1, key).then(Number) : bumpCounter(client, key, random);
  }

  #bumpHash(client: Client, key: string, random: Random): Promise<number> {
    return this.removable.has(key) ? client.eval(HSET_CLOCK, 1, key).then(Number) : bumpHash(client, key, random);
  }

  #floor(client: Client, key: string): Floor {
    let floors = this.#floors.get(client);
    if (floors === undefined) {
      floors = new Map();
      this.#floors.set(client, floors);
    }
    let floor = floors.get(key);
    if (floor === undefined) {
      floor = { seen: 0, returned: 0, pending: 0, issued: 0, inFlight: new Map(), reads: [] };
      floors.set(key, floor);
    }
    return floor;
  }

  #acked(key: string, value: number): void {
    const acks = this.#acks.get(key) ?? [];
    this.#acks.set(key, acks);
    const last = acks[acks.length - 1];
    // Acknowledgements of different clients arrive out of order.
    if (last === undefined || value > last.value) acks.push({ at: performance.now(), value });
    if (acks.length > 20_000) acks.splice(0, 10_000);
  }

  /** How long ago a newer value was acknowledged when a read was issued; undefined if none was. */
  #lateness(key: string, value: number, issuedAt: number): number | undefined {
    const acks = this.#acks.get(key) ?? [];
    let low = 0;
    let high = acks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((acks[middle] as Ack).value > value) high = middle;
      else low = middle + 1;
    }
    const newer = acks[low];
    return newer === undefined || newer.at >= issuedAt ? undefined : issuedAt - newer.at;
  }

  #violation(text: string): void {
    if (this.figures.violations.length < MAX_VIOLATIONS) this.figures.violations.push(text);
  }
}

/** What the clock of this machine is ahead of one that nobody sets. */
function clockOffsetMs(): number {
  return Date.now() - performance.now();
}

/** The value below which `share` of all lie. */
function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

/** One line of figures for people. */
export function describeFigures(
  name: string,
  { reads, hits, predicted, ownWrites, writes, violations, late, jobs, refused }: CheckFigures,
): string {
  const share = ((100 * hits) / Math.max(reads, 1)).toFixed(0);
  const others = jobs.written + jobs.awaited + refused;
  const more =
    others === 0
      ? ''
      : `; of jobs ${jobs.writtenOld} of ${jobs.written} older, ${jobs.awaitedOld} of ${jobs.awaited} whose writer has awaited; ` +
        `${refused} refused`;
  const ms = (part: number) => quantile(late, part).toFixed(1);
  return (
    `${name}: ${reads} reads, ${share}% from memory, ${predicted} of them predicted, ${ownWrites} own writes, ${writes} of others, ` +
    `${violations.length} violations; ${late.length} out of date, by ${ms(0.5)} ms (p50), ${ms(0.99)} ms (p99), ${ms(1)} ms at most${more}`
  );
}
