import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { difference } from '../helpers/fidelity/canonical.js';
import { CountingTransformers } from '../helpers/fidelity/counting-transformers.js';
import type { Admin } from '../helpers/fidelity/fixture.js';
import { Meddler } from '../helpers/fidelity/meddler.js';
import { BASE, BEATS, LISTS, ownServer } from '../helpers/fidelity/profiles.js';
import { asCommand, commandCount, meddledPrograms, type Program, programs } from '../helpers/fidelity/program.js';
import { defineScripts, LUA, runProgram } from '../helpers/fidelity/program-runner.js';
import { SocketMeddler } from '../helpers/fidelity/socket-meddler.js';
import { UnhandledRejections } from '../helpers/fidelity/unhandled.js';
import {
  type Client,
  connect,
  describeVariant,
  invoke,
  layersOf,
  MATRIX,
  type Variant,
  workOf,
} from '../helpers/fidelity/variants.js';
import type { RedisServer } from '../helpers/redis.js';
import { share } from '../helpers/share.js';
import { expectWarnings } from '../helpers/warnings.js';
import { layer } from '../observability/helpers/layers.js';

// A blocking command of a program waits for as long as a busy machine makes it wait.
expectWarnings('COALESCE_WARN_BLOCKING');

/** On all variants together; `SOAK_COMMANDS` asks for more. */
const COMMANDS = positive('SOAK_COMMANDS', 7_000);
/** `FIDELITY_SEED` repeats a run. */
const SEED = positive('FIDELITY_SEED', Date.now() % 2 ** 31);
const ROUND = 10;

/**
 * Run first, so that each variant has reads to share and to fuse, whatever is drawn afterwards. With the first read the
 * client learns whether the server takes MGET.
 */
const READS: Program = {
  scriptsLoaded: false,
  transformed: false,
  steps: [
    { ...asCommand(['get', 'str']), gap: 'await' },
    ...['str', 'str', 'num'].map((key) => asCommand(['get', key])),
  ],
};

const PLAIN: readonly [number, number] = [1, 2];
const COALESCED: readonly [number, number] = [3, 4];

const VARIANTS: readonly Variant[] = [
  ...MATRIX,
  ...[
    { shareReads: true },
    { fuseReads: true },
    { fuseReads: true, shareReads: true, maxInFlight: 3 },
    { fuseReads: true, maxBatchSize: 3 },
    { maxBatchSize: 1 },
    { maxBatchSize: 3, maxInFlight: 3 },
    { maxInFlight: 1 },
    { maxInFlight: 3, shareReads: true },
    { maxBatchBytes: 64 },
    { schedule: 'tick' as const },
    { fastPath: false },
    { schedule: (flush: () => void) => void setTimeout(flush, 1) },
  ].map((coalesce) => ({ ...BASE, coalesce })),
  { ...BASE, host: 'ioredis5', protocol: 2, keyPrefix: 'p:', coalesce: { fastPath: false } },
  { ...BASE, host: 'iovalkey', protocol: 2, coalesce: { fastPath: false, maxBatchBytes: 64 } },
  { ...BASE, view: true, coalesce: { fastPath: false, schedule: 'tick' } },
  { ...BASE, keyPrefix: 'p:', layers: SEED + 5, coalesce: { fastPath: false } },
  { ...BASE, protocol: 2, keyPrefix: 'p:', coalesce: { shareReads: true } },
  { ...BASE, host: 'ioredis5', coalesce: { shareReads: true, maxInFlight: 3 } },
  { ...BASE, replyMapping: 'resp3', dropIn: true, coalesce: { shareReads: true } },
  { ...BASE, view: true },
  { ...BASE, protocol: 2, keyPrefix: 'p:', view: true, coalesce: { maxInFlight: 3 } },
  { ...BASE, host: 'ioredis5', coalesce: { fuseReads: true } },
  { ...BASE, protocol: 2, keyPrefix: 'p:', view: true, coalesce: { fuseReads: true } },
  { ...BASE, host: 'iovalkey', protocol: 2, coalesce: { fuseReads: true, maxInFlight: 3 } },
  { ...BASE, host: 'ioredis5', view: true },
  { ...BASE, host: 'iovalkey', view: true, coalesce: { shareReads: true } },
  ...[
    {},
    { fuseReads: true },
    { maxBatchSize: 3 },
    { maxBatchBytes: 100, maxInFlight: 4 },
    { shareReads: true },
  ].flatMap((coalesce) =>
    (['subscriber', 'schedule', 'transformer'] as const).map((meddler): Variant => ({ ...BASE, coalesce, meddler })),
  ),
  ...[{}, { maxInFlight: 3 }, { fuseReads: true }, { fastPath: false }].map(
    (coalesce): Variant => ({ ...BASE, coalesce, sockets: true }),
  ),
  { ...BASE, host: 'ioredis5', protocol: 2, keyPrefix: 'p:', sockets: true },
  { ...BASE, host: 'iovalkey', coalesce: { shareReads: true, maxInFlight: 3 }, sockets: true },
  { ...BASE, host: 'ioredis5', coalesce: { maxBatchSize: 2, shareReads: true }, meddler: 'subscriber' },
  { ...BASE, host: 'iovalkey', coalesce: { maxInFlight: 3 }, meddler: 'schedule' },
  { ...BASE, host: 'ioredis5', protocol: 2, coalesce: { maxInFlight: 3 }, meddler: 'transformer' },
  ...(['subscriber', 'schedule', 'transformer'] as const).map(
    (meddler): Variant => ({ ...BASE, coalesce: { cache: true }, meddler }),
  ),
  { ...BASE, keyPrefix: 'p:', coalesce: { cache: { maxEntries: 5 }, maxInFlight: 3 }, meddler: 'transformer' },
  { ...BASE, coalesce: { cache: { prefixes: ['str', 'list', 'h', 'z'] }, shareReads: true }, meddler: 'transformer' },
  ...(
    [
      {},
      { coalesce: { shareReads: true, maxInFlight: 3 } },
      { coalesce: { fuseReads: true, maxBatchSize: 3 } },
      { protocol: 2, keyPrefix: 'p:' },
      { replyMapping: 'resp3', dropIn: true },
      { host: 'ioredis5', protocol: 2 },
      { host: 'iovalkey', protocol: 2, stringNumbers: true },
    ] as const
  ).map((more, index): Variant => ({ ...BASE, ...more, layers: SEED + 11 * index })),
];

const SHARE = Math.ceil(COMMANDS / VARIANTS.length);
const SEEDED = VARIANTS.map((variant, index) => [describeVariant(variant), variant, SEED + index * 1_000_003] as const);
/** A long run takes every variant. */
const RUN = process.env.SOAK_COMMANDS ? SEEDED : share(SEEDED, 3, SEED);

const OWN = ownServer([...BEATS, ...LISTS]);
let server: RedisServer;
let admin: Admin;
let total = 0;
/** The shares of fast commands, of the variants with a fast path. */
const fastShares: number[] = [];
const unhandled = new UnhandledRejections();

beforeAll(async () => {
  console.log(`random programs: seed ${SEED} (FIDELITY_SEED=${SEED} repeats this run)`);
  unhandled.start();
  ({ server, admin } = await OWN.start());
});

afterAll(async () => {
  console.log(`random programs: ${total} commands on each client, ${RUN.length} variants, seed ${SEED}`);
  if (server !== undefined) await OWN.stop({ server, admin });
  unhandled.stop();
});

/** The one difference of `fuseReads`: GET of a key of another type. */
const isFusedDifference = (theirs: string, mine: string): boolean =>
  theirs.includes('WRONGTYPE') && (mine === 'resolved null' || mine === 'called [null, null]');

/** A plain and a coalesced client; new ones after a mismatch, which may have left them in disorder. */
class Pair {
  plain!: Client;
  coalesced!: Client;
  readonly #meddler: Meddler | undefined;
  #programs = 0;
  /** What layers have seen of each client. */
  readonly #seen: Record<'plain' | 'coalesced', unknown[]> = { plain: [], coalesced: [] };

  constructor(readonly variant: Variant) {
    const { meddler, coalesce = {} } = variant;
    this.#meddler = meddler && new Meddler(meddler, coalesce, variant.host);
  }

  async open(): Promise<void> {
    const { variant } = this;
    const coalesced = this.#meddler ? { ...variant, coalesce: this.#meddler.options } : variant;
    this.plain = defineScripts(await connect(variant, { ...server, db: PLAIN[0] }, 'plain'));
    this.coalesced = defineScripts(await connect(coalesced, { ...server, db: COALESCED[0] }, 'coalesced'));
    if (this.#meddler) this.#meddler.client = this.coalesced;
    if (variant.layers === undefined) return;
    for (const kind of ['plain', 'coalesced'] as const) {
      layer(this[kind], ...layersOf(variant.layers, this.#seen[kind]).map(({ make }) => make));
    }
  }

  close(): void {
    this.plain?.disconnect();
    this.coalesced?.disconnect();
  }

  async mismatches(program: Program): Promise<string[]> {
    this.#programs += 1;
    const plain = await this.run(this.plain, program, PLAIN);
    this.#meddler?.begin(SEED + this.#programs);
    const coalesced = await this.run(this.coalesced, program, COALESCED);
    const meddled = (await this.#meddler?.end()) ?? [];
    const { fuseReads = false } = this.variant.coalesce ?? {};
    const found = coalesced.outcomes.mismatches(plain.outcomes, fuseReads ? isFusedDifference : undefined);
    found.push(...meddled);
    const rejections = difference(plain.rejections.join('\n'), coalesced.rejections.join('\n'));
    if (rejections !== undefined) {
      found.push(`unhandled rejections\n  ${rejections}`);
    }
    const seen = difference(this.#takeSeen('plain'), this.#takeSeen('coalesced'));
    if (seen !== undefined) found.push(`what layers saw\n  ${seen}`);
    for (let index = 0; index < Math.max(plain.data.length, coalesced.data.length); index += 1) {
      const differs = difference(plain.data[index], coalesced.data[index]);
      if (differs !== undefined) {
        found.push(`final data\n  ${differs}`);
      }
    }
    if (plain.outcomes.open.length > 0) {
      found.push(`the plain client itself left open ${plain.outcomes.open.join(', ')}`);
    }
    if (found.length > 0) {
      this.close();
      await this.open();
    }
    return found;
  }

  /**
   * The names of commands by event. Those of `sent` and `resolved` are in order; in which order promises of scripts,
   * which settle a step later, and others settle depends on where chunks of replies end.
   */
  #takeSeen(kind: 'plain' | 'coalesced'): string {
    const lines = this.#seen[kind].splice(0) as [event: string, name: string][];
    const namesOf = (event: string) => {
      const names = lines.filter(([of]) => of === event).map(([, name]) => name);
      return event === 'fulfilled' || event === 'failed' ? names.sort() : names;
    };
    const events = [...new Set(lines.map(([event]) => event))].sort();
    return events.map((event) => `${event}: ${namesOf(event)}`).join('\n');
  }

  private async run(client: Client, program: Program, dbs: readonly [number, number]) {
    await admin.reset(dbs, this.variant.keyPrefix, program.scriptsLoaded ? LUA : []);
    await invoke(client, 'unwatch', []);
    await invoke(client, 'select', [dbs[0]]);
    await unhandled.take();
    const transformers = program.transformed ? new CountingTransformers(this.variant.host) : undefined;
    const sockets = this.variant.sockets ? new SocketMeddler(client, SEED + this.#programs) : undefined;
    const outcomes = await runProgram(client, program, dbs, undefined, (all) => sockets?.meddle(all));
    await sockets?.end();
    transformers?.remove();
    void outcomes.track('how often transformers were called', () => transformers?.calls);
    return { outcomes, rejections: await unhandled.take(), data: await admin.dump(dbs) };
  }
}

describe.each(RUN)('%s', (_, variant, seed) => {
  const pair = new Pair(variant);
  beforeAll(() => pair.open());
  afterAll(() => pair.close());

  it(
    'runs random programs as a plain client does',
    async () => {
      expect(await pair.mismatches(READS)).toEqual([]);
      let count = commandCount(READS);
      for (let round = 0; count < SHARE; round += 1) {
        await fc.assert(
          fc.asyncProperty(variant.meddler ? meddledPrograms : programs, async (program) => {
            count += commandCount(program);
            const found = await pair.mismatches(program);
            expect(found.slice(0, 5).join('\n')).toBe('');
          }),
          { numRuns: ROUND, seed: seed + round, skipAllAfterTimeLimit: 30_000 },
        );
      }
      total += count;
      // A meddler makes new clients, with their own counters.
      if (variant.meddler) return;
      const { fastShare, sharedReads, fusedReads } = workOf(pair.coalesced);
      const { fastPath = true, shareReads = false, fuseReads = false } = variant.coalesce ?? {};
      expect(fastShare > 0).toBe(fastPath);
      if (fastPath) fastShares.push(fastShare);
      // What layers see mostly leaves as it was called, and all that a replaced write is given.
      const isLayered = variant.layers !== undefined || variant.sockets === true;
      if (!shareReads || !isLayered) expect(sharedReads > 0).toBe(fastPath && shareReads);
      if (!fuseReads || !isLayered) expect(fusedReads > 0).toBe(fuseReads);
    },
    90_000 + SHARE * 10,
  );
});

// Over all variants: the few programs of one may have next to none.
it('many of the commands were fast', () => {
  // Of what is generated, about 45 in 100 commands are single, plain and on the allow-list.
  expect(fastShares.reduce((sum, share) => sum + share, 0) / fastShares.length).toBeGreaterThan(0.25);
});

function positive(name: string, fallback: number): number {
  const text = process.env[name];
  if (text === undefined || text === '') {
    return fallback;
  }
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new RangeError(`${name} must be a positive whole number, got "${text}"`);
  }
  return value;
}
