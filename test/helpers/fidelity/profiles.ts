/** What all kinds of random programs share: a seed, servers, cases; plain and coalesced clients that must agree. */
import fc from 'fast-check';
import { afterAll, beforeAll, it } from 'vitest';
import { sleep } from '../hosts.js';
import { type RedisServer, startServer } from '../redis.js';
import { Admin } from './fixture.js';
import { describeVariant, type Variant } from './variants.js';

const isWhole = process.env.WHOLE_TESTS === '1';

/** `FIDELITY_SEED` repeats a run. */
export const SEED = Number(process.env.FIDELITY_SEED ?? Date.now() % 2 ** 31);
/** The same in each run of `npm test`, others every night: for programs of which a few are known to be no chance. */
export const STEADY_SEED = Number(process.env.FIDELITY_SEED ?? (isWhole ? SEED : 7));

/** How many programs of each case: `<NAME>_PROGRAMS` asks for more, and so may the night. */
export function programsOf(name: string, usual: number, nightly = usual): number {
  return Number(process.env[`${name}_PROGRAMS`] ?? (isWhole ? nightly : usual));
}

/** A kind of programs. */
export interface Profile<Place, Of, Program> {
  readonly name: string;
  /** What is expected of each case; `%s` is its title. */
  readonly expects: string;
  readonly cases: readonly (readonly [title: string, of: Of])[];
  readonly programs: fc.Arbitrary<Program>;
  /** Run before those that are drawn. @default none */
  readonly first?: readonly Program[];
  /** Programs of each case. */
  readonly runs: number;
  /** Each case has one of its own. @default SEED */
  readonly seed?: number;
  /** Milliseconds for each program, on a machine that is slow at the moment. @default 1_000 */
  readonly ms?: number;
  /** Whether a program that fails is made shorter: where that takes long, `SHRINK=1` asks for it. @default false */
  readonly shrinks?: boolean;
  /** The servers, for all cases. */
  start(): Promise<Place>;
  stop(place: Place): Promise<unknown>;
  /** Prepares a case; returns what compares the clients for a program, and what there is to say about all of them. */
  prepare(
    place: Place,
    of: Of,
    seed: number,
  ): Promise<readonly [compare: (program: Program) => Promise<void>, end?: () => void]>;
}

/** A test for each case. */
export function describePrograms<Place, Of, Program>(profile: Profile<Place, Of, Program>): void {
  const {
    name,
    expects,
    cases,
    programs,
    first = [],
    runs,
    seed = SEED,
    ms = 1_000,
    shrinks = process.env.SHRINK === '1',
  } = profile;
  let place: Place | undefined;
  beforeAll(async () => {
    console.log(`${name}: seed ${seed} (FIDELITY_SEED=${seed} repeats this run)`);
    place = await profile.start();
  });
  afterAll(() => place && profile.stop(place));
  it.each(cases.map(([title, of], index) => [title, of, seed + index] as const))(
    expects,
    async (_, of, own) => {
      const [compare, end] = await profile.prepare(place as Place, of, own);
      await fc.assert(fc.asyncProperty(programs, compare), {
        numRuns: runs,
        seed: own,
        endOnFailure: !shrinks,
        examples: first.map((program): [Program] => [program]),
      });
      end?.();
    },
    60_000 + runs * ms,
  );
}

/** A server of the programs' own, and its administrator. */
export const ownServer = (args: readonly string[] = []) => ({
  start: async () => {
    const server = await startServer({ args });
    return { server, admin: new Admin(server) };
  },
  stop: async ({ server, admin }: { server: RedisServer; admin: Admin }) => {
    await admin.close();
    await server.stop();
  },
});

/** Blocking commands that find nothing are answered at the server's next beat. */
export const BEATS = ['--hz', '500'];
/** Hashes stay lists, whose order is that of their writes. */
export const LISTS = ['--hash-max-listpack-entries', '100000', '--hash-max-listpack-value', '100000000'];

export const BASE: Variant = {
  host: 'ioredis6',
  protocol: 3,
  replyMapping: 'legacy',
  stringNumbers: false,
  keyPrefix: '',
};

/** Cases that differ from `BASE`. */
export const variants = (all: readonly Partial<Variant>[]) =>
  all.map((more) => [describeVariant({ ...BASE, ...more }), { ...BASE, ...more }] as const);

/** What the databases hold, once that is what is expected, or soon. */
export async function dataOnceEqual(admin: Admin, dbs: readonly number[], expected?: readonly string[]) {
  let data = await admin.dump(dbs);
  for (let attempt = 0; expected && attempt < 20 && data.join() !== expected.join(); attempt += 1) {
    await sleep(20);
    data = await admin.dump(dbs);
  }
  return data;
}

/** The calls of a program, in order, what became of each, and in which order they settled. */
export class Fates<F extends { outcome: string }> {
  readonly all: F[] = [];
  readonly settled: F[] = [];
  #pending: Promise<unknown>[] = [];

  constructor(readonly shown: (value: unknown) => string) {}

  /** Notes what a call throws, resolves or rejects with. */
  issue(fate: F, make: () => unknown): void {
    this.all.push(fate);
    const settle = (how: string, value: unknown) => {
      const outcome = `${how} ${this.shown(value)}`;
      fate.outcome = fate.outcome === OPEN ? outcome : `${fate.outcome} and again ${outcome}`;
      this.settled.push(fate);
    };
    let made: unknown;
    try {
      made = make();
    } catch (error) {
      settle('threw', error);
      return;
    }
    this.#pending.push(
      Promise.resolve(made).then(
        (value) => settle('resolved', value),
        (error) => settle('rejected', error),
      ),
    );
  }

  /** The calls of the next turn are others. */
  nextTurn(): void {
    this.#pending = [];
  }

  /** Whether all calls of the turn settle within this time. */
  async within(ms: number): Promise<boolean> {
    const late = new AbortController();
    const timeout = new Promise<boolean>((resolve) => {
      const timer = setTimeout(resolve, ms, false);
      late.signal.addEventListener('abort', () => clearTimeout(timer));
    });
    const isInTime = await Promise.race([Promise.all(this.#pending).then(() => true), timeout]);
    late.abort();
    return isInTime;
  }
}

export const OPEN = 'still open';
