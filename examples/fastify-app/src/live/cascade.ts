import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import { readServerCpuUs } from '../server-info.js';
import type { Subject, Variant } from './subject.js';

/** A cached client would send nothing. */
const SENDERS = ['plain', 'coalesced'] as const satisfies readonly Variant[];
type Sender = (typeof SENDERS)[number];

const CALLERS = 200;
const WARM_UP_ROUNDS = 30;
const ROUNDS = 15;
// One burst is too short for the clock of the server's CPU.
const ROUNDS_OF_CPU = 50;
const KEY_LIFE_SECONDS = 60;
const VALUE = 'x'.repeat(100);

export interface Burst {
  /** When each caller's command was issued, first caller to last; in milliseconds since the burst began. */
  askedMs: number[];
  /** When it had its answer. */
  answeredMs: number[];
  writes: number;
}

export interface Cascade {
  callers: number;
  rounds: number;
  bursts: Record<Sender, Burst>;
  /** The server's CPU time for one of the GETs; `fused` is coalesced, with `fuseReads`. */
  redisCpuUs: Record<Sender | 'fused', number>;
}

export interface CascadeOptions {
  subjects: Record<Sender, Subject>;
  fused: Redis;
  observer: Redis;
  prefix: string;
}

/** 200 GETs in one turn of the event loop, on each client in turn, many times; returns the median bursts. */
export async function measureCascade({ subjects, fused, observer, prefix }: CascadeOptions): Promise<Cascade> {
  const own = `${prefix}cascade:${randomBytes(4).toString('hex')}:`;
  const keys = Array.from({ length: CALLERS }, (_, index) => `${own}${index}`);
  const { redis } = subjects.plain;
  const cpuOf = async (client: Pick<Redis, 'get'>): Promise<number> => {
    const before = await readServerCpuUs(observer);
    for (let round = 0; round < ROUNDS_OF_CPU; round += 1) await Promise.all(keys.map((key) => client.get(key)));
    return ((await readServerCpuUs(observer)) - before) / (ROUNDS_OF_CPU * CALLERS);
  };
  try {
    await Promise.all(keys.map((key) => redis.set(key, VALUE, 'EX', KEY_LIFE_SECONDS)));
    const bursts: Record<Sender, Burst[]> = { plain: [], coalesced: [] };
    for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
      for (const variant of SENDERS) {
        const burst = await send(subjects[variant], keys);
        if (round >= 0) {
          bursts[variant].push(burst);
        }
      }
    }
    return {
      callers: CALLERS,
      rounds: ROUNDS,
      bursts: { plain: medianOf(bursts.plain), coalesced: medianOf(bursts.coalesced) },
      redisCpuUs: {
        plain: await cpuOf(redis),
        coalesced: await cpuOf(subjects.coalesced.redis),
        fused: await cpuOf(fused),
      },
    };
  } finally {
    await redis.unlink(keys).catch(() => {});
  }
}

async function send(subject: Subject, keys: readonly string[]): Promise<Burst> {
  const before = subject.usage().writes;
  const askedMs: number[] = [];
  const start = performance.now();
  const answeredMs = await Promise.all(
    keys.map(async (key) => {
      const answer = subject.get(key);
      askedMs.push(performance.now() - start);
      await answer;
      return performance.now() - start;
    }),
  );
  return { askedMs, answeredMs, writes: subject.usage().writes - before };
}

function medianOf(bursts: Burst[]): Burst {
  const lastMs = ({ answeredMs }: Burst): number => Math.max(...answeredMs);
  return bursts.toSorted((a, b) => lastMs(a) - lastMs(b))[bursts.length >> 1]!;
}
