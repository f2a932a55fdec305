/** Where the drop-in classes find their options: wherever ioredis finds its own. */
import { Cluster as IOCluster, Redis as IORedis, type RedisOptions } from 'ioredis';
import { Cluster, type Coalesced, Redis } from 'ioredis-coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { endWithTest } from '../helpers/hosts.js';
import { redisUrl } from '../helpers/redis.js';

const url = redisUrl();
const nowhere = [{ host: '127.0.0.1', port: 1 }];

function redis(...args: unknown[]): Redis {
  return endWithTest(new (Redis as unknown as new (...all: unknown[]) => Redis)(...args, { lazyConnect: true }));
}

function endingCluster(cluster: Cluster): Cluster {
  onTestFinished(() => cluster.disconnect());
  return cluster;
}

function cluster(options: object): Cluster {
  return endingCluster(new Cluster(nowhere, { lazyConnect: true, ...options }));
}

/** Whether it is coalesced, and its `maxInFlight`. */
function settingOf({ coalescer }: Coalesced): [boolean, number] {
  return [coalescer.enabled, coalescer.options.maxInFlight];
}

describe('coalesce in the query of a URL', () => {
  it.each<[string, unknown[], [boolean, number]]>([
    ['false', [`${url}?coalesce=false`], [false, 10_000]],
    ['true', [`${url}?coalesce=true`], [true, 10_000]],
    ['false, among others', [`${url}?family=4&coalesce=false&db=1`], [false, 10_000]],
    ['false, in the path of a unix socket', ['/nowhere.sock?coalesce=false'], [false, 10_000]],
    ['false, before options', [`${url}?coalesce=false`, { coalesce: { maxInFlight: 7 } }], [false, 10_000]],
    ['true, before options', [`${url}?coalesce=true`, { coalesce: { maxInFlight: 7 } }], [true, 7]],
    ['true, before false', [`${url}?coalesce=true`, { coalesce: false }], [true, 10_000]],
    ['none', [url, { coalesce: { maxInFlight: 7 } }], [true, 7]],
  ])('%s', (_, args, expected) => {
    const client = redis(...args);
    expect(settingOf(client)).toEqual(expected);
    expect(client.options).not.toHaveProperty('coalesce');
    expect(settingOf(endWithTest(client.duplicate()))[0]).toBe(expected[0]);
  });

  it.each(['', 'no', '1', '{}', 'FALSE'])('%j is an option error', (text) => {
    const [error] = thrown(() => redis(`redis://:secret@127.0.0.1:1?coalesce=${text}`));
    expect(error).toMatchObject({
      code: 'COALESCE_ERR_OPTION',
      message: `ioredis-coalesce: coalesce in the URL must be true or false, got "${text}" (string)`,
    });
  });
});

describe('coalesce among redisOptions of a Cluster', () => {
  it('is honoured like the one beside it', () => {
    expect(settingOf(cluster({ redisOptions: { coalesce: false } }))[0]).toBe(false);
    expect(settingOf(cluster({ redisOptions: { coalesce: { maxInFlight: 7 } } }))).toEqual([true, 7]);
    expect(settingOf(cluster({ coalesce: { maxInFlight: 7 }, redisOptions: { db: 0 } }))).toEqual([true, 7]);
    expect(settingOf(cluster({ coalesce: false, redisOptions: { coalesce: false } }))[0]).toBe(false);
  });

  it('is not left in the options of the host, and those of the caller stay as they are', () => {
    const redisOptions = Object.freeze({ coalesce: { maxInFlight: 7 }, keyPrefix: 'p:' });
    const made = cluster({ redisOptions });
    expect(made.options.redisOptions).toEqual({ keyPrefix: 'p:' });
    expect(redisOptions.coalesce).toEqual({ maxInFlight: 7 });
  });

  it('is checked, and is an error if it differs from the one beside it', () => {
    const [unknown] = thrown(() => cluster({ redisOptions: { coalesce: { typo: 1 } } }));
    expect(unknown).toMatchObject({ code: 'COALESCE_ERR_OPTION' });
    const [twice] = thrown(() => cluster({ coalesce: true, redisOptions: { coalesce: false } }));
    expect(twice).toMatchObject({
      code: 'COALESCE_ERR_OPTION',
      message: 'ioredis-coalesce: option coalesce and option redisOptions.coalesce are both given; give one of them',
    });
  });

  it('is kept by duplicate(), and replaced by what duplicate() is given in either place', () => {
    const made = cluster({ redisOptions: { coalesce: { maxInFlight: 7 } } });
    expect(settingOf(endingCluster(made.duplicate()))).toEqual([true, 7]);
    for (const override of [{ coalesce: false }, { redisOptions: { coalesce: false } }]) {
      expect(settingOf(endingCluster(made.duplicate([], override)))[0]).toBe(false);
    }
    const off = cluster({ redisOptions: { coalesce: false } });
    expect(settingOf(endingCluster(off.duplicate()))[0]).toBe(false);
    const on = endingCluster(off.duplicate([], { redisOptions: { coalesce: { maxInFlight: 3 } } }));
    expect(settingOf(on)).toEqual([true, 3]);
    expect(on.options.redisOptions ?? {}).not.toHaveProperty('coalesce');
  });
});

describe('Redis.defaultOptions', () => {
  type WithDefaults = { defaultOptions: RedisOptions & { coalesce?: unknown } };
  const [DropIn, Plain] = [Redis, IORedis] as unknown as [WithDefaults, WithDefaults];

  function withDefaults(defaults: object): void {
    const before = Plain.defaultOptions;
    onTestFinished(() => {
      Plain.defaultOptions = before;
    });
    DropIn.defaultOptions = { ...DropIn.defaultOptions, ...defaults };
  }

  it('assigned on the drop-in class are those of ioredis', () => {
    withDefaults({ keyPrefix: 'dp:' });
    expect(redis(1).options.keyPrefix).toBe('dp:');
    expect(endWithTest(new IORedis({ lazyConnect: true })).options.keyPrefix).toBe('dp:');
    expect(DropIn.defaultOptions).toBe(Plain.defaultOptions);
  });

  it('may hold coalesce, for clients that say nothing else', () => {
    withDefaults({ coalesce: { maxInFlight: 7 } });
    expect(settingOf(redis(1))).toEqual([true, 7]);
    expect(redis(1).options).not.toHaveProperty('coalesce');
    expect(settingOf(redis(1, { coalesce: false }))[0]).toBe(false);
    withDefaults({ coalesce: { typo: 7 } });
    expect(thrown(() => redis(1))[0]).toMatchObject({ code: 'COALESCE_ERR_OPTION' });
  });

  it('assigned on a subclass have no effect, as on a subclass of ioredis', () => {
    class Sub extends Redis {}
    const before = Plain.defaultOptions;
    (Sub as unknown as WithDefaults).defaultOptions = { keyPrefix: 'sub:' };
    expect((Sub as unknown as WithDefaults).defaultOptions).toEqual({ keyPrefix: 'sub:' });
    expect(Plain.defaultOptions).toBe(before);
  });
});

it('the drop-in classes have every static of ioredis, with the same value or a class of their own', () => {
  for (const [DropIn, Plain] of [
    [Redis, IORedis],
    [Cluster, IOCluster],
  ] as unknown as [Record<string, unknown>, Record<string, unknown>][]) {
    const names = Object.getOwnPropertyNames(Plain).filter((name) => !['prototype', 'length', 'name'].includes(name));
    for (const name of names) {
      const own = name === 'Cluster' ? Cluster : name === 'createClient' ? expect.any(Function) : Plain[name];
      expect(DropIn[name], name).toEqual(own);
    }
  }
});

function thrown(action: () => unknown): [unknown] {
  try {
    action();
  } catch (error) {
    return [error];
  }
  throw new Error('nothing was thrown');
}
