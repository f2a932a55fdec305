import { Redis as IORedis } from 'ioredis';
import Redis, { Cluster, CODES, type Coalesced, type CoalesceOptions, coalesce } from 'ioredis-coalesce';
import { Redis as IORedis5 } from 'ioredis5';
import { Redis as Valkey } from 'iovalkey';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type CoalesceSetting, DEFAULT_OPTIONS, type ResolvedOptions, resolveSetting } from '../src/options.js';

const KNOWN =
  'schedule, busyPoll, maxBatchSize, maxBatchBytes, maxInFlight, maxPending, fastPath, shareReads, fuseReads, cache, splitKeys';
const POSITIVE = 'a positive integer';
const SCHEDULE = "'immediate', 'tick' or a function that takes the flush";

const resolveOptions = (setting: CoalesceSetting | undefined): ResolvedOptions | false =>
  resolveSetting(setting, 'options');

function thrownBy(action: () => unknown): Error & { code?: string } {
  try {
    action();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}

const clients: IORedis[] = [];

function plainClient(): IORedis {
  const client = new IORedis({ lazyConnect: true });
  clients.push(client);
  return client;
}

afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

describe('options', () => {
  it('has the documented defaults', () => {
    expect(resolveOptions(undefined)).toEqual({
      schedule: 'immediate',
      busyPoll: true,
      maxBatchSize: 1000,
      maxBatchBytes: 8_000,
      maxInFlight: 10_000,
      maxPending: undefined,
      fastPath: true,
      shareReads: false,
      fuseReads: false,
      cache: false,
      splitKeys: false,
    });
    expect(resolveOptions({})).toEqual(DEFAULT_OPTIONS);
  });

  it('takes the default for undefined', () => {
    const keys = Object.keys(DEFAULT_OPTIONS);
    const options = Object.fromEntries(keys.map((key) => [key, undefined])) as CoalesceOptions;
    expect(resolveOptions(options)).toEqual(DEFAULT_OPTIONS);
  });

  it.each<CoalesceOptions>([
    { busyPoll: false },
    { schedule: 'immediate' },
    { schedule: 'tick' },
    { schedule: (flush) => flush() },
    { maxBatchSize: 1 },
    { maxBatchSize: 1_000_000 },
    { maxInFlight: Number.MAX_SAFE_INTEGER },
    { maxBatchBytes: 1 },
    { maxInFlight: 1 },
    { fastPath: false },
    { fastPath: true },
    { shareReads: true },
    { splitKeys: true },
  ])('keeps %j', (options) => {
    expect(resolveOptions(options)).toEqual({ ...DEFAULT_OPTIONS, ...options });
  });

  const counts = (['maxBatchSize', 'maxBatchBytes', 'maxInFlight', 'maxPending'] as const).flatMap((name) => {
    const most = { maxBatchBytes: 67_108_864, maxBatchSize: 1_000_000, maxInFlight: undefined, maxPending: undefined }[
      name
    ];
    const expected = most === undefined ? POSITIVE : `${POSITIVE} of at most ${most}`;
    return [
      [name, 0, RangeError, expected, '0 (number)'],
      [name, -0, RangeError, expected, '0 (number)'],
      [name, -1, RangeError, expected, '-1 (number)'],
      [name, 1.5, RangeError, expected, '1.5 (number)'],
      [name, Number.NaN, RangeError, expected, 'NaN (number)'],
      [name, Number.POSITIVE_INFINITY, RangeError, expected, 'Infinity (number)'],
      [name, 2 ** 53, RangeError, expected, '9007199254740992 (number)'],
      [name, '10', TypeError, expected, '"10" (string)'],
      [name, 10n, TypeError, expected, '10 (bigint)'],
      [name, null, TypeError, expected, 'null'],
      [name, true, TypeError, expected, 'true (boolean)'],
    ] as const;
  });
  const booleans = (['busyPoll', 'fastPath', 'shareReads', 'fuseReads', 'splitKeys'] as const).flatMap(
    (name) =>
      [
        [name, 1, TypeError, 'a boolean', '1 (number)'],
        [name, 0, TypeError, 'a boolean', '0 (number)'],
        [name, 'true', TypeError, 'a boolean', '"true" (string)'],
        [name, null, TypeError, 'a boolean', 'null'],
        [name, {}, TypeError, 'a boolean', 'an object (Object)'],
      ] as const,
  );

  it.each([
    ...counts,
    ...booleans,
    ['maxBatchSize', 1_000_001, RangeError, `${POSITIVE} of at most 1000000`, '1000001 (number)'],
    ['maxBatchBytes', 67_108_865, RangeError, `${POSITIVE} of at most 67108864`, '67108865 (number)'],
    ['schedule', 'immediately', TypeError, SCHEDULE, '"immediately" (string)'],
    ['schedule', 5, TypeError, SCHEDULE, '5 (number)'],
    ['schedule', null, TypeError, SCHEDULE, 'null'],
    ['schedule', Symbol('s'), TypeError, SCHEDULE, 'Symbol(s) (symbol)'],
    ['schedule', new Map(), TypeError, SCHEDULE, 'an object (Map)'],
    ['schedule', Object.create(null), TypeError, SCHEDULE, 'an object (no constructor)'],
    ['schedule', ['tick'], TypeError, SCHEDULE, 'an array'],
    ['schedule', 'x'.repeat(100), TypeError, SCHEDULE, `"${'x'.repeat(59)}… (string)`],
  ] as const)('refuses %s: %s', (name, value, errorClass, expected, got) => {
    const options = { [name]: value } as CoalesceOptions;
    const error = thrownBy(() => resolveOptions(options));
    expect(error.constructor).toBe(errorClass);
    expect(error.message).toBe(`ioredis-coalesce: options.${name} must be ${expected}, got ${got}`);
    expect(error.code).toBe('COALESCE_ERR_OPTION');
    expect(Object.keys(error)).toEqual(['code']);
  });

  it.each(['maxInflight', 'enableAutoPipelining', '__proto', 'toString', ''])('refuses the key %j', (key) => {
    const error = thrownBy(() => resolveOptions({ [key]: 1 } as CoalesceOptions));
    expect(error.constructor).toBe(TypeError);
    expect(error.message).toBe(`ioredis-coalesce: options.${key} is not an option; the options are ${KNOWN}`);
    expect(error.code).toBe(CODES.OPTION);
  });

  it('says that an array of prefixes is empty', () => {
    const error = thrownBy(() => resolveOptions({ cache: { prefixes: [] } }));
    expect(error.message).toBe(
      'ioredis-coalesce: options.cache.prefixes must be an array of one or more strings that are not empty, got an empty array',
    );
  });

  it('names the unit of a number whose name does not', () => {
    const error = thrownBy(() => resolveOptions({ cache: { ttl: '60s' } } as unknown as CoalesceOptions));
    expect(error.message).toBe(
      'ioredis-coalesce: options.cache.ttl must be a positive integer of milliseconds, got "60s" (string)',
    );
  });

  it('takes an object of any class, or a module', async () => {
    class Config {
      maxInFlight = 5;
    }
    const module = await import('node:timers/promises');
    expect(resolveOptions(new Config())).toMatchObject({ maxInFlight: 5 });
    expect(resolveOptions(Object.assign(Object.create(null), { maxInFlight: 5 }))).toMatchObject({ maxInFlight: 5 });
    expect(thrownBy(() => resolveOptions(module as CoalesceOptions)).message).toContain('is not an option');
  });

  it.each([
    [null, 'null'],
    [5, '5 (number)'],
    ['tick', 'a string'],
    [['tick'], 'an array'],
    [() => {}, 'a function'],
    [new Map([['maxInFlight', 5]]), 'an object (Map)'],
    [new Set(), 'an object (Set)'],
    [new Date(0), 'an object (Date)'],
    [Promise.resolve({}), 'an object (Promise)'],
  ])('refuses options that are %j', (options, got) => {
    const error = thrownBy(() => resolveOptions(options as unknown as CoalesceOptions));
    expect(error.constructor).toBe(TypeError);
    expect(error.message).toBe(`ioredis-coalesce: options must be an object, true or false, got ${got}`);
    expect(error.code).toBe(CODES.OPTION);
  });

  it('resolves to a frozen copy', () => {
    const options: CoalesceOptions = { maxBatchSize: 5 };
    const client = coalesce(plainClient(), options);
    options.maxBatchSize = 6;
    expect(client.coalescer.options.maxBatchSize).toBe(5);
    expect(Object.isFrozen(client.coalescer.options)).toBe(true);
    expect(Object.isFrozen(coalesce(plainClient()).coalescer.options)).toBe(true);
  });
});

describe('coalesce()', () => {
  class Thing {}

  it.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [5, '5 (number)'],
    ['redis://127.0.0.1', 'a string'],
    [{}, 'an object (Object) without sendCommand()'],
    [new Thing(), 'an object (Thing) without sendCommand()'],
    [{ host: '127.0.0.1', port: 6379 }, 'an object (Object) without sendCommand()'],
    [IORedis, 'a function'],
    [{ sendCommand() {}, status: 'ready', options: {} }, 'an object (Object) without on()'],
    [{ sendCommand() {}, on() {}, status: 'ready', options: null }, 'an object (Object) without options'],
    [{ sendCommand() {}, on() {}, options: {} }, 'an object (Object) without status'],
    [[], 'an empty array without sendCommand()'],
  ])('refuses %s', (client, got) => {
    const error = thrownBy(() => coalesce(client as object));
    expect(error.constructor).toBe(TypeError);
    expect(error.message).toBe(
      'ioredis-coalesce: coalesce() expects an ioredis or iovalkey client, such as new Redis() or new Cluster(), ' +
        `got ${got}`,
    );
    expect(error.code).toBe('COALESCE_ERR_CLIENT');
  });

  it.each([
    ['ioredis 6', IORedis],
    ['ioredis 5', IORedis5],
    ['iovalkey', Valkey],
  ])('takes a Cluster of %s whose connect() was replaced, so that it has no status', (_, { Cluster }) => {
    const connect = vi.spyOn(Cluster.prototype, 'connect').mockResolvedValue();
    onTestFinished(() => connect.mockRestore());
    const cluster = coalesce(new Cluster([{ host: '127.0.0.1', port: 1 }]), { maxBatchSize: 5 });
    expect(cluster.status).toBeUndefined();
    expect(cluster.coalescer.options.maxBatchSize).toBe(5);
    expect(cluster.coalescer.stats().inFlight).toBe(0);
    cluster.coalescer.detach();
  });

  it('takes a Cluster', () => {
    const cluster = new IORedis.Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
    expect(coalesce(cluster, { maxBatchSize: 5 })).toBe(cluster);
    expect(coalesce(cluster).coalescer.options.maxBatchSize).toBe(5);
    cluster.disconnect();
  });

  it('refuses splitKeys for a client that is no Cluster', () => {
    const client = plainClient();
    const error = thrownBy(() => coalesce(client, { splitKeys: true }));
    expect(error.constructor).toBe(TypeError);
    expect(error.message).toBe(
      'ioredis-coalesce: the option splitKeys needs a Cluster; a single server takes keys of several slots in one command',
    );
    expect(error.code).toBe(CODES.OPTION);
    expect(client).not.toHaveProperty('coalescer');
    expect(thrownBy(() => new Redis({ lazyConnect: true, coalesce: { splitKeys: true } })).code).toBe(CODES.OPTION);
    const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true, coalesce: { splitKeys: true } });
    expect(cluster.coalescer.options.splitKeys).toBe(true);
    expect(cluster.duplicate([], { lazyConnect: true }).coalescer.options.splitKeys).toBe(true);
  });

  it('refuses a wrong option before it touches the client', () => {
    const client = plainClient();
    const keys = Reflect.ownKeys(client);
    const prototype = Object.getPrototypeOf(client);
    expect(thrownBy(() => coalesce(client, { maxInFlight: 0 })).code).toBe(CODES.OPTION);
    expect(Reflect.ownKeys(client)).toEqual(keys);
    expect(Object.getPrototypeOf(client)).toBe(prototype);
  });

  it('returns the same object, and a second call changes nothing', () => {
    const client = plainClient();
    const coalesced = coalesce(client, { maxBatchSize: 7 });
    expect(coalesced).toBe(client);
    const { coalescer } = coalesced;
    const prototype = Object.getPrototypeOf(client);
    const listeners = client.listenerCount('connect');
    expect(coalesce(client).coalescer).toBe(coalescer);
    expect(coalescer.options.maxBatchSize).toBe(7);
    expect(Object.getPrototypeOf(client)).toBe(prototype);
    expect(client.listenerCount('connect')).toBe(listeners);
  });

  it('checks the options even of a client that is coalesced already', () => {
    const client = coalesce(plainClient());
    expect(thrownBy(() => coalesce(client, { maxBatchSize: 0 })).code).toBe(CODES.OPTION);
  });

  const given = { maxBatchSize: 7, cache: true };

  it.each<[string, () => Coalesced & { disconnect(): void }]>([
    ['client', () => coalesce(plainClient(), given)],
    ['client of the drop-in class', () => new Redis({ lazyConnect: true, coalesce: given })],
    ['Cluster', () => new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true, coalesce: given })],
  ])('refuses other options than a coalesced %s has, and changes nothing', (_, make) => {
    const client = make();
    onTestFinished(() => client.disconnect());
    const { coalescer } = client;
    const others: [CoalesceSetting, string][] = [
      [{ maxBatchSize: 8 }, 'the client is coalesced already, with another maxBatchSize; '],
      [
        { maxInFlight: 5, shareReads: true, schedule: () => {} },
        'the client is coalesced already, with another maxInFlight, shareReads, schedule; ',
      ],
      [false, 'the client is coalesced already; '],
    ];
    for (const [other, message] of others) {
      const error = thrownBy(() => coalesce(client, other));
      expect(error.code).toBe(CODES.OPTION);
      expect(error.message).toBe(
        `ioredis-coalesce: ${message}give options where it is coalesced first, or call client.coalescer.detach() before`,
      );
    }
    const same: CoalesceSetting[] = [given, { ...given, fastPath: true }, {}, true];
    for (const setting of same) {
      expect(coalesce(client, setting).coalescer).toBe(coalescer);
    }
    expect(coalescer.options.maxBatchSize).toBe(7);
    coalescer.detach();
    expect(coalesce(client, { maxBatchSize: 8 }).coalescer.options.maxBatchSize).toBe(8);
  });
});

describe('new Redis()', () => {
  it('takes the options under `coalesce`, and does not hand them to the host', () => {
    const client = new Redis({ lazyConnect: true, coalesce: { maxBatchSize: 9 } });
    clients.push(client);
    expect(client.coalescer.options).toEqual({ ...DEFAULT_OPTIONS, maxBatchSize: 9 });
    expect(client.options).not.toHaveProperty('coalesce');
  });

  it('refuses a wrong option before it connects', () => {
    const wrong = { shareReads: 'yes' as unknown as boolean };
    const nodes = [{ host: '127.0.0.1', port: 1 }];
    for (const make of [() => new Redis({ coalesce: wrong }), () => new Cluster(nodes, { coalesce: wrong })]) {
      const error = thrownBy(make);
      expect(error.message).toBe('ioredis-coalesce: option coalesce.shareReads must be a boolean, got "yes" (string)');
      expect(error.code).toBe(CODES.OPTION);
    }
  });

  it('names the option coalesce if it is neither an object nor a boolean', () => {
    const error = thrownBy(() => new Redis({ coalesce: 5 as unknown as boolean }));
    expect(error.message).toBe('ioredis-coalesce: option coalesce must be an object, true or false, got 5 (number)');
  });
});
