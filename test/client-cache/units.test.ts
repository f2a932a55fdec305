import { createHash } from 'node:crypto';
import Denque from 'denque';
import { describe, expect, it } from 'vitest';
import { InvalidationReader } from '../../src/cache/invalidations.js';
import { IssuedCommands } from '../../src/cache/issued-commands.js';
import type { PredictedEntry } from '../../src/cache/prefetch/prediction.js';
import { type CachedRead, CacheStore, RecentReads } from '../../src/cache/store.js';
import { Liveness } from '../../src/cache/tracking.js';
import { type CommandVariant, UNLISTED } from '../../src/commands/fast-commands.js';
import { variantOf } from '../../src/core/entry.js';
import { ReplyCount } from '../../src/core/reply-count.js';
import { TransactionState } from '../../src/core/transaction-state.js';
import type { QueueItem } from '../../src/host/types.js';
import { readArguments } from '../../src/reads/names.js';
import { Stats } from '../../src/stats.js';
import { now } from '../../src/util/clock.js';
import { deepCopy, hashOf } from '../../src/util/values.js';
import { heapNow } from '../helpers/hostile/heap.js';

const get: CommandVariant = variantOf({ ...UNLISTED, name: 'get', cacheable: true, missing: null }, 'utf8');
const NONE = '';
const field = (text: string) => text;

/** Keeps an answer, as when its reply has come. */
function put(store: CacheStore, name: string, read: string, value: unknown, now = 0): CachedRead {
  const expected = store.key(name)?.find(get, read) ?? store.addPending(store.key(name) ?? name, get, read, true);
  store.put(expected, value, now);
  return expected;
}

describe('CacheStore', () => {
  it('finds every read that was stored, by search and by index', () => {
    const store = new CacheStore(1_000, 1e9);
    for (let index = 0; index < 100; index += 1) put(store, 'k', field(`f${index}`), index, 0);
    for (let index = 0; index < 100; index += 1)
      expect(store.key('k')?.find(get, field(`f${index}`))?.value).toBe(index);
    expect(store.key('k')?.find(get, field('f100'))).toBeUndefined();
    expect(store.invalidate('k')).toBe(100);
    expect([store.entries, store.bytes]).toEqual([0, 0]);
  });

  it('counts a read that is stored again once, with its new size', () => {
    const store = new CacheStore(10, 1e9);
    put(store, 'k', NONE, 'x'.repeat(1_000), 0);
    const large = store.bytes;
    put(store, 'k', NONE, 'x', 1);
    expect(store.entries).toBe(1);
    expect(large - store.bytes).toBe(999);
    expect(store.key('k')?.find(get, NONE)).toMatchObject({ value: 'x', readAt: 1 });
  });

  it('removes reads that were not used, and starts again at the first key', () => {
    const store = new CacheStore(4, 1e9);
    for (const name of ['a', 'b', 'c', 'd']) put(store, name, NONE, name, 0);
    for (const name of ['a', 'c']) (store.key(name) as { used: boolean }).used = true;
    put(store, 'e', NONE, 'e', 0);
    expect(['a', 'b', 'c', 'd', 'e'].filter((name) => store.key(name))).toEqual(['a', 'c', 'd', 'e']);
    for (let index = 0; index < 100; index += 1) put(store, `more ${index}`, NONE, '', 0);
    expect([store.entries, store.evictions]).toEqual([4, 101]);
  });

  it('goes round a second time if every read was used', () => {
    const store = new CacheStore(10, 900);
    for (const name of ['a', 'b']) put(store, name, NONE, 'x'.repeat(100), 0).key.used = true;
    // The value of one has grown, and there is room for one of them only.
    put(store, 'b', NONE, 'x'.repeat(250), 0);
    expect(['a', 'b'].filter((name) => store.key(name))).toEqual(['b']);
    expect([store.entries, store.evictions]).toEqual([1, 1]);
  });

  describe('without room', () => {
    const full = () => {
      const store = new CacheStore(100, 1e9);
      for (let index = 0; index < 100; index += 1) put(store, `key ${index}`, NONE, 'v', 0);
      return store;
    };
    /** Reads as a client does; returns whether the answer was found. */
    const read = (store: CacheStore, name: string) => {
      const key = store.key(name);
      if (key !== undefined) key.used = true;
      else if (store.admits(name, NONE)) put(store, name, NONE, 'v', 0);
      return key !== undefined;
    };

    /** How many of 100 reads are admitted. */
    const admitted = (store: CacheStore, ask: (time: number) => [name: string, read: string]) =>
      Array.from({ length: 100 }, (_, time) => store.admits(...ask(time))).filter(Boolean).length;

    it('admits a key when it is requested again, not at once', () => {
      const store = full();
      expect(admitted(store, (time) => [`new ${time}`, NONE])).toBe(0);
      expect(admitted(store, () => ['new', NONE])).toBeGreaterThan(5);
      store.drop(store.key('key 7'));
      expect(store.admits('another', NONE)).toBe(true);
    });

    it('admits no further answers of a key that is kept, unless they are requested again', () => {
      const store = full();
      expect(admitted(store, (time) => ['key 7', field(`${time}`)])).toBe(0);
      expect(admitted(store, () => ['key 7', field('a')])).toBeGreaterThan(5);
    });

    it('admits each read that is requested again and again, whatever the number of reads between', () => {
      for (const period of [2, 8, 32, 64, 100]) {
        const store = full();
        const names = new Set<string>();
        for (let time = 0; time < 100 * period; time += 1) {
          const name = `new ${time % period}`;
          if (store.admits(name, NONE)) names.add(name);
        }
        expect(names.size).toBe(period);
      }
    });

    it('counts reads on their way', () => {
      const store = new CacheStore(2, 1e9);
      for (const name of ['a', 'b']) store.addPending(name, get, NONE, true);
      expect(store.admits('c', NONE)).toBe(false);
    });

    it('has no room when a read of the usual size would exceed its bytes', () => {
      const store = new CacheStore(1_000, 1_100);
      let kept = 0;
      while (store.admits(`key ${kept}`, NONE) && kept < 1_000) {
        put(store, `key ${kept}`, NONE, 'v', 0);
        kept += 1;
      }
      expect(kept).toBe(3);
      expect(store.evictions).toBe(0);
    });

    it('keeps what is read again and again while many keys are read once', () => {
      const store = full();
      for (let index = 0; index < 100_000; index += 1) {
        read(store, `key ${index % 100}`);
        read(store, `once ${index}`);
      }
      expect(Array.from({ length: 100 }, (_, index) => store.key(`key ${index}`)?.name)).not.toContain(undefined);
      expect(store.evictions).toBe(0);
    });

    it('keeps most of the keys that are read in turn, although all of them do not fit', () => {
      const store = full();
      let found = 0;
      for (let index = 0; index < 120 * 50; index += 1) if (read(store, `key ${index % 120}`)) found += 1;
      expect(found / (120 * 50)).toBeGreaterThan(0.75);
    });

    it('replaces all keys when others are read instead', () => {
      const store = full();
      for (let index = 0; index < 100; index += 1) read(store, `key ${index}`);
      for (let index = 0; index < 10_000; index += 1) read(store, `other ${index % 100}`);
      let kept = 0;
      for (let index = 0; index < 100; index += 1) if (store.key(`other ${index}`)) kept += 1;
      expect(kept).toBe(100);
    });
  });

  it('does not grow while invalidated keys are read again and nothing has to be evicted', () => {
    const store = new CacheStore(10_001, 1e9);
    const names = Array.from({ length: 10_000 }, (_, index) => `key ${index}`);
    const readAgain = () => {
      for (const name of names) {
        store.drop(store.key(name));
        put(store, name, NONE, 'v', 0);
      }
    };
    for (let index = 0; index < 10_100; index += 1) put(store, `evicted ${index}`, NONE, 'v', 0);
    readAgain();
    const before = heapNow();
    for (let time = 0; time < 50; time += 1) readAgain();
    expect(heapNow() - before).toBeLessThan(5e6);
  });

  it('counts the bytes of the elements of an array or object', () => {
    const bytesOf = (value: unknown) => {
      const store = new CacheStore(10, 1e9);
      put(store, 'k', NONE, value, 0);
      return store.bytes;
    };
    const text = 'x'.repeat(1_000);
    expect(bytesOf([text]) - bytesOf([''])).toBe(1_000);
    expect(bytesOf({ field: text }) - bytesOf({ field: '' })).toBe(1_000);
    expect(bytesOf({ [text]: '' }) - bytesOf({ '': '' })).toBe(1_000);
    expect(bytesOf([{ field: [text] }]) - bytesOf([{ field: [''] }])).toBe(1_000);
    expect(bytesOf({ a: '', b: '' })).toBeGreaterThan(bytesOf({ a: '' }));
  });

  it('stays within its bytes over any number of keys, and never keeps a value larger than that', () => {
    const store = new CacheStore(1_000, 10_000);
    for (let index = 0; index < 10_000; index += 1) {
      put(store, `key ${index}`, NONE, 'x'.repeat(index % 300), 0);
      expect(store.bytes).toBeLessThanOrEqual(10_000);
    }
    put(store, 'large', NONE, 'x'.repeat(10_001), 0);
    expect(store.key('large')).toBeUndefined();
    put(store, 'last', NONE, 'v', 0);
    expect(store.key('last')).toBeDefined();
    store.clear();
    expect([store.entries, store.bytes]).toEqual([0, 0]);
    expect(store.key('last')).toBeUndefined();
    put(store, 'k', NONE, 'v', 0);
    expect(store.entries).toBe(1);
  });
});

describe('reads on their way', () => {
  const expecting = (tracked: boolean) => {
    const store = new CacheStore(10, 1e9);
    put(store, 'k', NONE, 'old');
    const read = store.addPending(store.key('k') ?? 'k', get, field('f'), tracked);
    return { store, read };
  };
  const find = (store: CacheStore, text: string) => store.key('k')?.find(get, text === '' ? NONE : field(text));

  it('are not answers yet', () => {
    const { store, read } = expecting(true);
    expect([read.pending, store.entries]).toEqual([true, 1]);
    store.put(read, 'v', 0);
    expect([read.pending, store.entries]).toEqual([false, 2]);
  });

  it('see the change of a key that is announced before their reply, if the key is tracked because of them', () => {
    const { store, read } = expecting(true);
    expect(store.invalidate('k')).toBe(1);
    expect([find(store, ''), find(store, 'f'), store.entries]).toEqual([undefined, read, 0]);
    store.put(read, 'new', 0);
    expect(find(store, 'f')?.value).toBe('new');
    expect(store.invalidateAll()).toBe(1);
    expect([store.entries, store.bytes, store.isEmpty]).toEqual([0, 0, true]);
  });

  it('are not kept if the key may not be tracked any more', () => {
    const { store, read } = expecting(false);
    store.invalidate('k');
    store.put(read, 'new', 0);
    expect([store.entries, store.bytes, store.isEmpty]).toEqual([0, 0, true]);
  });

  it.each<[string, (store: CacheStore) => void]>([
    ['an own write', (store) => store.drop(store.key('k'))],
    ['a command that empties the cache', (store) => store.clear()],
  ])('are not kept after %s', (_, forget) => {
    const { store, read } = expecting(true);
    forget(store);
    store.put(read, 'old', 0);
    expect([store.entries, store.bytes, store.isEmpty]).toEqual([0, 0, true]);
  });
});

it('the arguments of two different reads never give the same text', () => {
  const lists = [[], [''], ['', ''], ['a'], ['a', ''], ['1:a'], ['a', 'b'], ['\u0000'], ['\u00001:a1:b'], ['1:a1:b']];
  const texts = new Map(lists.map((list) => [readArguments(list.length === 0 ? 'k' : ['k', ...list]), list]));
  expect(texts.size).toBe(new Set(lists.map((list) => JSON.stringify(list))).size);
});

it.each([
  ['40,000 fields of one hash', (index: number) => ['h', `f${index}`]],
  ['30,000 ranges with long limits', (index: number) => ['z', `[${'x'.repeat(500)}${index}`, '+']],
  ['20,000 keys', (index: number) => [`key:${index}`]],
] as const)('counts the bytes that %s take, within a third', (name, readOf) => {
  const reads = Number.parseInt(name.replace(',', ''), 10);
  const store = new CacheStore(1e6, 1e9);
  const before = heapNow();
  for (let index = 0; index < reads; index += 1) {
    const [key = '', ...args] = readOf(index);
    put(store, key, readArguments(args.length === 0 ? key : [key, ...args]) as string, 'v');
  }
  const taken = heapNow() - before;
  console.log(`${name}: ${(store.bytes / taken).toFixed(2)} of the bytes are counted`);
  expect(store.bytes / taken).toBeGreaterThan(0.67);
  expect(store.bytes / taken).toBeLessThan(1.5);
});

describe('RecentReads', () => {
  it('remembers a key that was read recently, and forgets it after many others', () => {
    const recent = new RecentReads(1_000);
    expect(recent.remember(hashOf('a'))).toBe(false);
    expect(recent.remember(hashOf('a'))).toBe(true);
    for (let index = 0; index < 20_000; index += 1) recent.remember(hashOf(`other ${index}`));
    expect(recent.remember(hashOf('a'))).toBe(false);
  });

  it('learns keys that take the same place, although they are requested in turn', () => {
    const recent = new RecentReads(1);
    const names = Array.from({ length: 500 }, (_, index) => `key ${index}`);
    const known = new Set<string>();
    for (let round = 0; round < 2_000; round += 1) {
      for (const name of names) if (recent.remember(hashOf(name))) known.add(name);
    }
    expect(known.size).toBe(names.length);
  });

  it.each([
    ['numbered', (index: number) => `product:${index}:price`],
    ['with a number in front', (index: number) => `${index}:session`],
    ['random', (index: number) => `s:${createHash('sha1').update(String(index)).digest('hex')}`],
    ['not in ASCII', (index: number) => `größe:${index}`],
  ])('tells most keys apart that are %s', (_, name) => {
    const recent = new RecentReads(10_000);
    let unknown = 0;
    for (let index = 0; index < 5_000; index += 1) if (!recent.remember(hashOf(name(index)))) unknown += 1;
    let known = 0;
    for (let index = 0; index < 5_000; index += 1) if (recent.remember(hashOf(name(index)))) known += 1;
    expect(unknown).toBe(5_000);
    expect(known).toBeGreaterThan(3_000);
  });

  it('distinguishes keys with common beginnings or ends of any length', () => {
    for (const name of [
      (index: number) => `${index}:${'x'.repeat(1_000)}`,
      (index: number) => `${'x'.repeat(1_000)}:${index}`,
    ]) {
      const recent = new RecentReads(1_000);
      for (let index = 0; index < 500; index += 1) expect(recent.remember(hashOf(name(index)))).toBe(false);
    }
  });

  it('looks at both ends of a long key only', () => {
    const middle = (text: string) => hashOf(`${'x'.repeat(1e6)}${text}${'x'.repeat(1e6)}`);
    expect(middle('a')).toBe(middle('b'));
    expect(middle('a')).not.toBe(middle('ab'));
  });
});

it('predictions whose keys end alike are found as fast as others', () => {
  const fill = (nameOf: (index: number) => string) => {
    const store = new CacheStore(10_000, 1e9);
    const names = Array.from({ length: 4_000 }, (_, index) => nameOf(index));
    const prediction = { until: 1e9, unused() {} } as unknown as PredictedEntry;
    for (const name of names) store.addPending(name, get, NONE, false, prediction);
    return () => {
      const from = performance.now();
      const found = names.filter((name) => store.key(name)?.name === name);
      const ms = performance.now() - from;
      expect(found).toHaveLength(names.length);
      return ms;
    };
  };
  const others = fill((index) => `${'x'.repeat(80)}:${index}`);
  const alike = fill((index) => `${index}:${'x'.repeat(80)}`);
  // The best of several rounds, each right after the other: 15 to 60 times as long where they share one place.
  const rounds = Array.from({ length: 9 }, () => [others(), alike()] as const);
  const best = (of: 0 | 1) => Math.min(...rounds.map((round) => round[of]));
  expect(best(1) / best(0)).toBeLessThan(5);
});

describe('values of a caller', () => {
  const reply = () => {
    const fields = { a: ['1', Buffer.from([0xff])], b: { c: null } };
    // As the host's decoder does: a field of this name is data.
    Object.defineProperty(fields, '__proto__', { value: 'data', enumerable: true, configurable: true, writable: true });
    return fields;
  };

  it('a copy is equal, and a change to it does not change the value', () => {
    const value = reply();
    const copy = deepCopy(value) as ReturnType<typeof reply>;
    expect(Object.getOwnPropertyDescriptors(copy)).toEqual(Object.getOwnPropertyDescriptors(value));
    expect(Object.keys(copy)).toEqual(['a', 'b', '__proto__']);
    (copy.a[1] as Buffer)[0] = 0;
    copy.a.push('more');
    Reflect.deleteProperty(copy.b, 'c');
    Reflect.deleteProperty(copy, '__proto__');
    expect(value).toEqual(reply());
    expect(copy).not.toEqual(value);
  });

  it('an object of a class is not copied', () => {
    const date = new Date();
    expect((deepCopy([date]) as Date[])[0]).toBe(date);
  });
});

it.each([
  ['a short silence: nothing', 1_000, undefined, undefined],
  ['a long one: the next command', 60_000, undefined, 9],
  ['a read was sent less than 2 s ago: that one', 60_000, 1_000, 5],
  ['a read was sent longer ago: the next command', 60_000, 3_000, 9],
] as const)(
  'what must be answered after a silence before memory is used: %s',
  (_, silenceMs, askedBeforeMs, expected) => {
    const liveness = new Liveness();
    const time = now();
    const next = () => 9;
    liveness.lastByteAt = time - silenceMs;
    if (askedBeforeMs !== undefined) liveness.asks(time - askedBeforeMs, 5);
    expect([liveness.bytesReceived(next), liveness.bytesReceived(next)]).toEqual([expected, undefined]);
  },
);

describe('IssuedCommands', () => {
  /** @param left - commands in flight after the last of these replies. */
  const answer = (own: IssuedCommands, times: number, left = 0) => {
    for (let time = times - 1; time >= 0; time -= 1) {
      own.connection.replies.fast += 1;
      own.answer({ length: left + time });
    }
  };

  const issued = (usesBroadcast: boolean) => {
    const transaction = new TransactionState();
    const store = new CacheStore(100, 10_000);
    const connection = { replies: new ReplyCount(), transaction, stats: new Stats() };
    return { own: new IssuedCommands(connection, store, usesBroadcast, 'anything'), store };
  };

  it('a command that is issued while the host settles a reply comes after that reply’s command', () => {
    const replies = new ReplyCount();
    const queue = new Denque<QueueItem>([{}, {}, {}] as QueueItem[]);
    expect(replies.nextPosition(queue)).toBe(3);
    replies.headBeforeForward = queue.peekFront();
    queue.shift();
    expect(replies.nextPosition(queue)).toBe(3);
    replies.headBeforeForward = undefined;
    replies.others += 1;
    expect(replies.nextPosition(queue)).toBe(3);
  });

  it('after a command of unknown keys, the reply after its own lets answers be served again', () => {
    const { own } = issued(false);
    own.changesAnything(2);
    answer(own, 3);
    expect(own.settled).toBe(false);
    answer(own, 1);
    expect(own.settled).toBe(true);
  });

  it('with late pushes, answers are served again after the reply to a command that was issued after that reply', () => {
    const { own } = issued(true);
    own.changesAnything(0);
    // Three more commands were in flight when its reply came.
    answer(own, 4);
    expect(own.settled).toBe(false);
    answer(own, 1);
    expect(own.settled).toBe(true);
  });

  it('with late pushes, the answers of a key that a reply has shown wait for the reply to a later command', () => {
    const { own, store } = issued(true);
    const { key } = store.addPending('a', get, NONE, true);
    own.noteShown('a', 1);
    answer(own, 1, 1);
    expect(key.heldUntil).toBe(-1);
    answer(own, 1, 5);
    expect(key.heldUntil).toBe(7);
  });

  it.each([
    ['the next reply shows that its invalidation has come', false, 2],
    ['with late pushes, the reply to a command issued later does', true, 4],
  ])('after a push to user code, %s', (_, usesBroadcast, replies) => {
    const { own } = issued(usesBroadcast);
    answer(own, 1, 2);
    own.pushed(3);
    expect(own.settled).toBe(false);
    answer(own, replies - 2, 0);
    expect(own.settled).toBe(false);
    answer(own, 1);
    expect(own.settled).toBe(true);
  });
});

describe('InvalidationReader', () => {
  const bulk = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
  const push = (...keys: string[]) => `>2\r\n${bulk('invalidate')}*${keys.length}\r\n${keys.map(bulk).join('')}`;

  it.each([
    [push('a'), ['a']],
    [push('', 'é', 'a,b', '\r\n$1\r\n'), ['', 'é', 'a,b', '\r\n$1\r\n']],
    [`>2\r\n${bulk('invalidate')}_\r\n`, undefined],
    [`>2\r\n${bulk('invalidate')}*-1\r\n`, undefined],
    [`>2\r\n${bulk('invalidate')}*2\r\n${bulk('a')}+b\r\n`, ['a', 'b']],
    // Of another form than Redis sends: whichever keys are meant.
    [`>2\r\n${bulk('invalidate')}*2\r\n${bulk('a')}:1\r\n`, undefined],
    [`>2\r\n${bulk('invalidate')}*1\r\n:${'1'.repeat(30)}\r\n`, undefined],
  ])('reads %j, however it is split', (text, keys) => {
    const bytes = Buffer.from(text);
    for (let first = 1; first <= bytes.length; first += 1) {
      for (let second = first; second <= bytes.length; second += 1) {
        const found: unknown[] = [];
        const reader = new InvalidationReader((invalid) => found.push(invalid));
        for (const piece of [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)]) {
          if (piece.length > 0) expect(reader.read(piece, 0)).toBe(true);
        }
        expect(found).toEqual([keys]);
        expect(reader.open).toBe(false);
      }
    }
  });

  it('gives another push back from its first byte on', () => {
    const bytes = Buffer.from(`>3\r\n${bulk('message')}${bulk('c')}${bulk('m')}`);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      const reader = new InvalidationReader(() => {
        throw new Error('expected no invalidation');
      });
      const taken = reader.read(bytes.subarray(0, cut), 0);
      if (taken) expect(reader.read(bytes.subarray(cut), 0)).toBe(false);
      expect(Buffer.concat([reader.release(), bytes.subarray(taken ? cut : 0)])).toEqual(bytes);
    }
  });

  it('invalidates all keys when an invalidation is too long to be assembled', () => {
    const found: unknown[] = [];
    const reader = new InvalidationReader((keys) => found.push(keys));
    const bytes = Buffer.from(push('x'.repeat(3 * 1024 * 1024)));
    expect(reader.read(bytes.subarray(0, 1_000), 0)).toBe(true);
    expect(reader.read(bytes.subarray(1_000, 2 * 1024 * 1024), 0)).toBe(false);
    expect(found).toEqual([undefined]);
    expect(reader.release().length).toBe(1_000);
  });

  it('reads the next one after an invalidation of which one chunk has more than can be assembled', () => {
    const found: unknown[] = [];
    const reader = new InvalidationReader((keys) => found.push(keys));
    const bytes = Buffer.from(push('x'.repeat(3 * 1024 * 1024)));
    // The host gets this one, in as many chunks as it comes.
    expect(reader.read(bytes.subarray(0, 2 * 1024 * 1024), 0)).toBe(false);
    const next = Buffer.from(push('k'));
    expect([reader.read(next, 0), reader.end]).toEqual([true, next.length]);
    expect(found).toEqual([undefined, ['k']]);
  });
});
