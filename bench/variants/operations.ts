/** What a workload sends, and what must come back. */

import type { Redis } from 'ioredis';
import type { BenchClient } from './clients.js';
import { type Dataset, fieldOf, hashOf, keysOf, listOf, valuesOf } from './data.js';
import type { OperationId } from './protocol.js';

/** Keys and values, made once and not once per command. */
export class Data {
  readonly keys: readonly string[];
  /** Of commands that write. */
  readonly written: readonly string[];
  readonly values: readonly string[];
  readonly shape: Dataset;

  constructor(prefix: string, shape: Dataset, operation: OperationId) {
    this.shape = shape;
    this.keys = keysOf(prefix, shape, operation);
    this.written = keysOf(prefix, shape, 'set');
    this.values = valuesOf(shape);
  }

  value(index: number): string {
    return this.values[index % this.values.length]!;
  }

  key(index: number): string {
    return this.keys[index % this.keys.length]!;
  }
}

/** Issues the operation for the key at `index`. */
export type Send = (index: number) => Promise<unknown>;

export interface Operation {
  /** Sent by one `send`. @default 1 */
  readonly commands?: number;
  /** A method of the client that not every library has. */
  readonly needs?: keyof BenchClient;
  send(client: BenchClient, data: Data): Send;
  expected(data: Data, index: number): unknown;
  /** For writes: the operation that shows what they wrote. */
  readonly readBack?: true;
}

const FIELD = fieldOf(0);
const PIPELINED = 200;
/** In `mixed`, each fifth command writes. */
const WRITE_EVERY = 5;
const LIFE_SECONDS = 3600;

const value = (data: Data, index: number) => data.value(index);

export const OPERATIONS: Readonly<Record<OperationId, Operation>> = {
  get: {
    send:
      (client, { keys }) =>
      (index) =>
        client.get(keys[index]!),
    expected: value,
  },
  set: {
    send:
      (client, { written, values }) =>
      (index) =>
        client.set(written[index]!, values[index]!),
    expected: value,
    readBack: true,
  },
  setex: {
    needs: 'defineCommand',
    send(client, { written, values }) {
      const redis = ioredisOf(client);
      return (index) => redis.set(written[index]!, values[index]!, 'EX', LIFE_SECONDS);
    },
    expected: value,
    readBack: true,
  },
  mixed: {
    send:
      (client, { keys, written, values }) =>
      (index) =>
        index % WRITE_EVERY === WRITE_EVERY - 1
          ? client.set(written[index]!, values[index]!)
          : client.get(keys[index]!),
    expected: (data, index) => (index % WRITE_EVERY === WRITE_EVERY - 1 ? 'OK' : data.value(index)),
  },
  call: {
    needs: 'call',
    send:
      (client, { keys }) =>
      (index) =>
        client.call!('get', keys[index]!),
    expected: value,
  },
  hget: {
    needs: 'hget',
    send:
      (client, { keys }) =>
      (index) =>
        client.hget!(keys[index]!, FIELD),
    expected: value,
  },
  hgetall: {
    needs: 'hgetall',
    send:
      (client, { keys }) =>
      (index) =>
        client.hgetall!(keys[index]!),
    expected: (data, index) => hashOf(data.value(index), data.shape),
  },
  lrange: {
    needs: 'lrange',
    send:
      (client, { keys }) =>
      (index) =>
        client.lrange!(keys[index]!, 0, -1),
    expected: (data, index) => listOf(data.value(index), data.shape),
  },
  zrange: {
    needs: 'zrange',
    send:
      (client, { keys }) =>
      (index) =>
        client.zrange!(keys[index]!, 0, -1),
    expected: (data, index) => listOf(data.value(index), data.shape),
  },
  script: {
    needs: 'defineCommand',
    send(client, { keys }) {
      const redis = client as unknown as WithScript;
      redis.defineCommand('benchGet', { numberOfKeys: 1, lua: "return redis.call('GET', KEYS[1])" });
      return (index) => redis.benchGet(keys[index]!);
    },
    expected: value,
  },
  'pipeline-8': {
    needs: 'pipeline',
    commands: 8,
    send(client, { keys }) {
      const redis = ioredisOf(client);
      return (index) => {
        const pipeline = redis.pipeline();
        for (let field = 0; field < 8; field += 1) pipeline.hget(keys[index]!, fieldOf(field));
        return pipeline.exec();
      };
    },
    expected: (data, index) => Array.from({ length: 8 }, () => [null, data.value(index)]),
  },
  'pipeline-200': {
    needs: 'pipeline',
    commands: PIPELINED,
    send(client, data) {
      const redis = ioredisOf(client);
      return (index) => {
        const pipeline = redis.pipeline();
        for (let offset = 0; offset < PIPELINED; offset += 1) pipeline.get(data.key(index + offset));
        return pipeline.exec();
      };
    },
    expected: (data, index) => Array.from({ length: PIPELINED }, (_, offset) => [null, data.value(index + offset)]),
  },
  multi: {
    needs: 'multi',
    commands: 3,
    send(client, { keys, written, values }) {
      const redis = ioredisOf(client);
      return (index) =>
        redis
          .multi()
          .get(keys[index]!)
          .set(written[index]!, values[index]!)
          .incrby(`${written[index]}:count`, 0)
          .exec();
    },
    expected: (data, index) => [
      [null, data.value(index)],
      [null, 'OK'],
      [null, 0],
    ],
  },
  stats: {
    needs: 'coalescer',
    send: (client) => async () => client.coalescer!.stats().fallThroughs !== undefined,
    expected: () => true,
  },
  scrape: {
    needs: 'scrape',
    send: (client) => async () => (await client.scrape!()).includes('redis_coalesce_'),
    expected: () => true,
  },
};

interface WithScript extends Redis {
  benchGet(key: string): Promise<unknown>;
}

/** The client as what it is in the variants of ioredis, coalesced or not. */
export function ioredisOf(client: BenchClient): Redis {
  if (!('defineCommand' in client)) throw new Error('this needs a variant whose client is of ioredis');
  return client as unknown as Redis;
}
