/** What a workload sends, and what must come back. */

import type { ChainableCommander, Redis } from 'ioredis';
import type { BenchClient } from './clients.js';
import { type Dataset, fieldOf, hashOf, keysOf, listOf, type OperationId, valuesOf } from './data.js';

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
/** In `mixed`, each fifth command writes. */
const WRITE_EVERY = 5;
const LIFE_SECONDS = 3600;

const value: Operation['expected'] = (data, index) => data.value(index);
const hash: Operation['expected'] = (data, index) => hashOf(data.value(index), data.shape);
const list: Operation['expected'] = (data, index) => listOf(data.value(index), data.shape);

/** `stats` and `scrape` send nothing. */
export const OPERATIONS = {
  get: { ...reading((client, key) => client.get(key)), expected: value },
  set: { ...writing((client, key, text) => client.set(key, text)), expected: value, readBack: true },
  setex: {
    needs: 'defineCommand',
    ...writing((client, key, text) => ioredisOf(client).set(key, text, 'EX', LIFE_SECONDS)),
    expected: value,
    readBack: true,
  },
  mixed: {
    send(client, { keys, written, values }) {
      return (index) => (writes(index) ? client.set(written[index]!, values[index]!) : client.get(keys[index]!));
    },
    expected: (data, index) => (writes(index) ? 'OK' : data.value(index)),
  },
  call: { needs: 'call', ...reading((client, key) => client.call!('get', key)), expected: value },
  hget: { needs: 'hget', ...reading((client, key) => client.hget!(key, FIELD)), expected: value },
  hgetall: { needs: 'hgetall', ...reading((client, key) => client.hgetall!(key)), expected: hash },
  lrange: { needs: 'lrange', ...reading((client, key) => client.lrange!(key, 0, -1)), expected: list },
  zrange: { needs: 'zrange', ...reading((client, key) => client.zrange!(key, 0, -1)), expected: list },
  script: {
    needs: 'defineCommand',
    send(client, { keys }) {
      const redis = client as unknown as WithScript;
      redis.defineCommand('benchGet', { numberOfKeys: 1, lua: "return redis.call('GET', KEYS[1])" });
      return (index) => redis.benchGet(keys[index]!);
    },
    expected: value,
  },
  'pipeline-8': pipelined(
    8,
    (pipeline, data, index, field) => pipeline.hget(data.key(index), fieldOf(field)),
    (data, index) => data.value(index),
  ),
  'pipeline-200': pipelined(
    200,
    (pipeline, data, index, offset) => pipeline.get(data.key(index + offset)),
    (data, index, offset) => data.value(index + offset),
  ),
  multi: {
    needs: 'multi',
    commands: 3,
    send(client, { keys, written, values }) {
      const redis = ioredisOf(client);
      return (index) => {
        const multi = redis.multi().get(keys[index]!).set(written[index]!, values[index]!);
        return multi.incrby(`${written[index]}:count`, 0).exec();
      };
    },
    expected: (data, index) => [data.value(index), 'OK', 0].map((reply) => [null, reply]),
  },
  stats: {
    needs: 'coalescer',
    send: (client) => async () => client.coalescer!.stats().fallbacks !== undefined,
    expected: () => true,
  },
  scrape: {
    needs: 'scrape',
    send: (client) => async () => (await client.scrape!()).includes('redis_coalesce_'),
    expected: () => true,
  },
} satisfies Readonly<Record<OperationId, Operation>>;

interface WithScript extends Redis {
  benchGet(key: string): Promise<unknown>;
}

function reading(read: (client: BenchClient, key: string) => Promise<unknown>): Pick<Operation, 'send'> {
  return { send: (client, data) => (index) => read(client, data.keys[index]!) };
}

function writing(write: (client: BenchClient, key: string, text: string) => Promise<unknown>): Pick<Operation, 'send'> {
  return { send: (client, data) => (index) => write(client, data.written[index]!, data.values[index]!) };
}

/** A pipeline written by hand; each reply comes with the place of its error. */
function pipelined(
  commands: number,
  add: (pipeline: ChainableCommander, data: Data, index: number, offset: number) => unknown,
  expected: (data: Data, index: number, offset: number) => string,
) {
  return {
    needs: 'pipeline',
    commands,
    send(client, data) {
      const redis = ioredisOf(client);
      return (index) => {
        const pipeline = redis.pipeline();
        for (let offset = 0; offset < commands; offset += 1) add(pipeline, data, index, offset);
        return pipeline.exec();
      };
    },
    expected: (data, index) => Array.from({ length: commands }, (_, offset) => [null, expected(data, index, offset)]),
  } satisfies Operation;
}

function writes(index: number): boolean {
  return index % WRITE_EVERY === WRITE_EVERY - 1;
}

/** The client as what it is in the variants of ioredis, coalesced or not. */
export function ioredisOf(client: BenchClient): Redis {
  if (!('defineCommand' in client)) throw new Error('this needs a variant whose client is of ioredis');
  return client as unknown as Redis;
}
