import { describe, expect, it } from 'vitest';
import type { BenchClient } from '../../bench/variants/clients.js';
import { hashOf, keysOf, listOf, type OperationId, valuesOf } from '../../bench/variants/data.js';
import { Exercise } from '../../bench/variants/exercise.js';

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

const exercise = (client: BenchClient, operation: OperationId): Exercise =>
  new Exercise([client], { kind: 'burst', operation, size: 4, data: DATA }, 'p:');

describe('verify', () => {
  it.each(['get', 'set', 'mixed', 'hget', 'hgetall', 'lrange'] as const)('accepts replies of %s', async (operation) => {
    await exercise(seeded(operation), operation).verify();
  });

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

it('spreads loops over connections', async () => {
  const asked: number[] = [];
  const clients = [0, 1].map((connection): BenchClient => {
    const client = seeded('get');
    return {
      ...client,
      get: async (key) => {
        asked.push(connection);
        await new Promise((resolve) => setImmediate(resolve));
        return client.get(key);
      },
    };
  });
  const workload = { kind: 'loops', loops: 4, connections: 2, data: DATA } as const;
  const { commands, throughput } = await new Exercise(clients, workload, 'p:').measure(0.02);
  expect(commands).toBe(asked.length);
  expect(throughput).toBeGreaterThan(0);
  expect(asked.slice(0, 4)).toEqual([0, 1, 0, 1]);
});
