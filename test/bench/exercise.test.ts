import { describe, expect, it } from 'vitest';
import type { BenchClient } from '../../bench/variants/clients.js';
import { hashOf, keysOf, listOf, type OperationId, valuesOf } from '../../bench/variants/data.js';
import { Exercise } from '../../bench/variants/exercise.js';
import { LatencyRecorder } from '../../bench/variants/timing.js';

const DATA = { keys: 10, valueBytes: 20 };
const VALUES = valuesOf(DATA);

/** What a client that does everything right would be told by a server that was seeded. */
function seeded(operation: OperationId): BenchClient {
  const values = new Map(keysOf('p:', DATA, operation).map((key, index) => [key, VALUES[index]!]));
  const written = new Map<string, string>();
  return {
    get: async (key) => values.get(key) ?? written.get(key) ?? null,
    set: async (key, value) => {
      written.set(key, value);
      return 'OK';
    },
    hget: async (key) => values.get(key) ?? null,
    // As node-redis gives it: an object without a prototype.
    hgetall: async (key) => Object.assign(Object.create(null), hashOf(values.get(key) ?? '')),
    lrange: async (key) => listOf(values.get(key) ?? ''),
  };
}

function exercise(client: BenchClient, operation: OperationId): Exercise {
  return new Exercise(client, { kind: 'burst', operation, size: 4, data: DATA }, 'p:');
}

describe('verify', () => {
  it.each(['get', 'set', 'mixed', 'hget', 'hgetall', 'lrange'] as const)(
    'accepts the right replies of %s',
    async (operation) => {
      await exercise(seeded(operation), operation).verify();
    },
  );

  it('takes a hash as valkey-glide gives it', async () => {
    const { hgetall, ...rest } = seeded('hgetall');
    const pairs = async (key: string) =>
      Object.entries((await hgetall?.(key)) as Record<string, string>).map(([field, value]) => ({ field, value }));
    await exercise({ ...rest, hgetall: pairs }, 'hgetall').verify();
  });

  it("names the key whose reply is another's", async () => {
    const right = seeded('get');
    const wrong: BenchClient = { ...right, get: (key) => right.get(key.replace(':7', ':8')) };
    await expect(exercise(wrong, 'get').verify()).rejects.toThrow(/p:read:20:7 should hold "7:coalesce/);
  });

  it('refuses an operation that the client does not support', () => {
    const { hget: _, ...without } = seeded('hget');
    expect(() => exercise(without, 'hget')).toThrow('"hget" needs a client with hget');
  });
});

describe('a fixed rate', () => {
  const rate = (client: BenchClient) => new Exercise(client, { kind: 'rate', perSecond: 2000, data: DATA }, 'p:');

  it('issues each command when it is due, even if earlier ones fail', async () => {
    let issued = 0;
    const client: BenchClient = {
      ...seeded('get'),
      get: () => {
        issued += 1;
        // None is answered before the last of them was issued.
        return new Promise((resolve) => setTimeout(resolve, 300));
      },
    };
    const { commands } = await rate(client).run(0.2);
    expect(commands).toBe(issued);
    expect(commands).toBeGreaterThan(250);
    expect(commands).toBeLessThanOrEqual(400);
  });

  it('counts the time of commands that a stalled process could not even issue', async () => {
    let stalled = false;
    const client: BenchClient = {
      ...seeded('get'),
      get: async () => {
        if (stalled) return;
        stalled = true;
        const until = performance.now() + 100;
        while (performance.now() < until);
      },
    };
    const latency = new LatencyRecorder();
    await rate(client).run(0.2, latency);
    // Half of the run was the stall; what fell due in it waited for 50 ms on average.
    expect(latency.mean()).toBeGreaterThan(15_000);
  });
});
