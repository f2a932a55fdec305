import { createHash } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { CacheStore } from '../../src/connection/cache-store.js';
import { Doorkeeper } from '../../src/connection/doorkeeper.js';
import type { CommandVariant } from '../../src/connection/entry.js';
import { InvalidationReader } from '../../src/connection/invalidation-reader.js';
import { OwnCommands } from '../../src/connection/own-commands.js';
import { ownCopy, sameValue } from '../../src/connection/own-values.js';
import { ReadSampling } from '../../src/connection/read-sampling.js';
import { ReplyCount } from '../../src/connection/reply-count.js';
import { heapNow } from '../helpers/hostile/heap.js';

const get: CommandVariant = {
  command: { name: 'get', keys: 'first', readOnly: true, shareable: true, cacheable: true, paired: false },
  encoding: 'utf8',
};
const NONE = { count: 1, text: '' };
const field = (text: string) => ({ count: 2, text });

describe('CacheStore', () => {
  it('finds every read that was stored, by search and by index', () => {
    const store = new CacheStore(1_000, 1e9, new ReplyCount());
    for (let index = 0; index < 100; index += 1) store.put('k', get, field(`f${index}`), index, 0);
    for (let index = 0; index < 100; index += 1) expect(store.key('k')?.find(get, 2, `f${index}`)?.value).toBe(index);
    expect(store.key('k')?.find(get, 2, 'f100')).toBeUndefined();
    expect(store.key('k')?.find(get, 3, 'f1')).toBeUndefined();
    expect(store.drop('k')).toBe(100);
    expect([store.entries, store.bytes]).toEqual([0, 0]);
  });

  it('counts a read that is stored again once, with its new size', () => {
    const store = new CacheStore(10, 1e9, new ReplyCount());
    store.put('k', get, NONE, 'x'.repeat(1_000), 0);
    const large = store.bytes;
    store.put('k', get, NONE, 'x', 1);
    expect(store.entries).toBe(1);
    expect(large - store.bytes).toBe(999);
    expect(store.key('k')?.find(get, 1, '')).toMatchObject({ value: 'x', readAt: 1 });
  });

  it('removes reads that were not used, and starts again at the first key', () => {
    const store = new CacheStore(4, 1e9, new ReplyCount());
    for (const name of ['a', 'b', 'c', 'd']) store.put(name, get, NONE, name, 0);
    for (const name of ['a', 'c']) (store.key(name) as { used: boolean }).used = true;
    store.put('e', get, NONE, 'e', 0);
    expect(['a', 'b', 'c', 'd', 'e'].filter((name) => store.key(name))).toEqual(['a', 'c', 'd', 'e']);
    for (let index = 0; index < 100; index += 1) store.put(`more ${index}`, get, NONE, '', 0);
    expect([store.entries, store.evictions]).toEqual([4, 101]);
  });

  it('goes round a second time if every read was used', () => {
    const store = new CacheStore(10, 800, new ReplyCount());
    for (const name of ['a', 'b']) store.put(name, get, NONE, 'x'.repeat(100), 0).key.used = true;
    // The value of one has grown, and there is room for one of them only.
    store.put('b', get, NONE, 'x'.repeat(250), 0);
    expect(['a', 'b'].filter((name) => store.key(name))).toEqual(['b']);
    expect([store.entries, store.evictions]).toEqual([1, 1]);
  });

  describe('without room', () => {
    const full = () => {
      const store = new CacheStore(100, 1e9, new ReplyCount());
      for (let index = 0; index < 100; index += 1) store.put(`key ${index}`, get, NONE, 'v', 0);
      return store;
    };
    /** Reads as a client does; returns whether the answer was found. */
    const read = (store: CacheStore, name: string) => {
      const key = store.key(name);
      if (key !== undefined) key.used = true;
      else if (store.admits(name)) store.put(name, get, NONE, 'v', 0);
      return key !== undefined;
    };

    it('admits a key when it is asked for again, not at once', () => {
      const store = full();
      expect(store.admits('new')).toBe(false);
      expect(store.admits('newer')).toBe(false);
      expect(store.admits('new')).toBe(true);
      store.drop('key 7');
      expect(store.admits('another')).toBe(true);
    });

    it('looks at few keys while none is read again, and at each when one has been', () => {
      const store = full();
      const looks = vi.spyOn(Doorkeeper.prototype, 'knows');
      onTestFinished(() => looks.mockRestore());
      const { sampling } = store;
      const admits = (name: string) => {
        sampling.replies.light += 1;
        return sampling.replies.light > sampling.passedUntil && store.admits(name);
      };
      for (let index = 0; index < 100_000; index += 1) admits(`once ${index}`);
      expect(looks.mock.calls.length).toBeLessThan(5_000);
      let turnedAway = 0;
      while (!admits('again')) turnedAway += 1;
      expect(turnedAway).toBeLessThan(32_032);
      expect([admits('new'), admits('new')]).toEqual([false, true]);
    });

    it('has no room when a read of the usual size would exceed its bytes', () => {
      const store = new CacheStore(1_000, 1_000, new ReplyCount());
      let kept = 0;
      while (store.admits(`key ${kept}`) && kept < 1_000) {
        store.put(`key ${kept}`, get, NONE, 'v', 0);
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
      for (let index = 0; index < 1_000; index += 1) read(store, `other ${index % 100}`);
      let kept = 0;
      for (let index = 0; index < 100; index += 1) if (store.key(`other ${index}`)) kept += 1;
      expect(kept).toBe(100);
    });
  });

  it('does not grow while invalidated keys are read again and nothing has to be evicted', () => {
    const store = new CacheStore(10_001, 1e9, new ReplyCount());
    const names = Array.from({ length: 10_000 }, (_, index) => `key ${index}`);
    const readAgain = () => {
      for (const name of names) {
        store.drop(name);
        store.put(name, get, NONE, 'v', 0);
      }
    };
    for (let index = 0; index < 10_100; index += 1) store.put(`evicted ${index}`, get, NONE, 'v', 0);
    readAgain();
    const before = heapNow();
    for (let time = 0; time < 50; time += 1) readAgain();
    expect(heapNow() - before).toBeLessThan(5e6);
  });

  it('counts the bytes of the elements of an array or object', () => {
    const bytesOf = (value: unknown) => {
      const store = new CacheStore(10, 1e9, new ReplyCount());
      store.put('k', get, NONE, value, 0);
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
    const store = new CacheStore(1_000, 10_000, new ReplyCount());
    for (let index = 0; index < 10_000; index += 1) {
      store.put(`key ${index}`, get, NONE, 'x'.repeat(index % 300), 0);
      expect(store.bytes).toBeLessThanOrEqual(10_000);
    }
    store.put('large', get, NONE, 'x'.repeat(10_001), 0);
    expect(store.key('large')).toBeUndefined();
    store.put('last', get, NONE, 'v', 0);
    expect(store.key('last')).toBeDefined();
    store.clear();
    expect([store.entries, store.bytes]).toEqual([0, 0]);
    expect(store.key('last')).toBeUndefined();
    store.put('k', get, NONE, 'v', 0);
    expect(store.entries).toBe(1);
  });
});

describe('ReadSampling', () => {
  /** How many of the next reads are looked up, none of which finds anything. */
  const lookedUp = (sampling: ReadSampling, reads: number) => {
    let looked = 0;
    for (let index = 0; index < reads; index += 1) {
      if (!sampling.passesLookup()) looked += 1;
      sampling.replies.light += 1;
      if (sampling.replies.light > sampling.passedUntil) sampling.fruitless();
    }
    return looked;
  };

  it('looks up each of the first 256 reads that find nothing, then 32 of 1,024, and in the end 32 of 32,032', () => {
    const sampling = new ReadSampling(new ReplyCount());
    expect(lookedUp(sampling, 256)).toBe(256);
    expect(lookedUp(sampling, 1_024)).toBe(32);
    expect(lookedUp(sampling, 2_016)).toBe(32);
    for (const passed of [3_968, 7_936, 15_872, 31_744]) expect(lookedUp(sampling, 32 + passed)).toBe(32);
    expect(lookedUp(sampling, 10 * 32_032)).toBe(10 * 32);
  });

  it('looks up each read again as soon as one was fruitful', () => {
    const sampling = new ReadSampling(new ReplyCount());
    lookedUp(sampling, 500);
    sampling.replies.quietUntil = sampling.passedUntil;
    sampling.fruitful();
    expect(sampling.replies.quietUntil).toBe(0);
    expect(lookedUp(sampling, 256)).toBe(256);
  });

  it('looks up each read again after 100 ms, when few reads are issued', () => {
    const sampling = new ReadSampling(new ReplyCount());
    lookedUp(sampling, 256);
    sampling.heard(5_000);
    expect(lookedUp(sampling, 10)).toBe(0);
    sampling.heard(5_100);
    expect(lookedUp(sampling, 10)).toBe(0);
    sampling.heard(5_101);
    expect(lookedUp(sampling, 40)).toBe(32);
  });

  it('tells how many replies it has passed over, once', () => {
    const sampling = new ReadSampling(new ReplyCount());
    lookedUp(sampling, 256);
    expect(sampling.takeSkipped()).toBe(0);
    lookedUp(sampling, 10);
    expect(sampling.takeSkipped()).toBe(10);
    lookedUp(sampling, 1_000);
    expect([sampling.takeSkipped(), sampling.takeSkipped()]).toEqual([982, 0]);
    lookedUp(sampling, 14 + 5);
    sampling.fruitful();
    lookedUp(sampling, 10);
    expect([sampling.takeSkipped(), sampling.takeSkipped()]).toEqual([5, 0]);
  });

  it('passes over nothing while one of 256 reads is fruitful', () => {
    const sampling = new ReadSampling(new ReplyCount());
    for (let time = 0; time < 100; time += 1) {
      expect(lookedUp(sampling, 255)).toBe(255);
      sampling.fruitful();
    }
  });

  it('passes over as many replies as lookups, although reads are in flight between the two', () => {
    const sampling = new ReadSampling(new ReplyCount());
    const inFlight = 200;
    let [looked, dealtWith] = [0, 0];
    for (let index = 0; index < 100_000; index += 1) {
      if (!sampling.passesLookup()) looked += 1;
      if (index < inFlight) continue;
      sampling.replies.light += 1;
      if (sampling.replies.light <= sampling.passedUntil) continue;
      dealtWith += 1;
      sampling.fruitless();
    }
    expect(looked).toBeLessThan(1_500);
    expect(dealtWith).toBeLessThan(1_500);
  });
});

describe('Doorkeeper', () => {
  it('knows a key that was asked for recently, and forgets it after many others', () => {
    const doorkeeper = new Doorkeeper(1_000);
    expect(doorkeeper.knows('a')).toBe(false);
    expect(doorkeeper.knows('a')).toBe(true);
    for (let index = 0; index < 20_000; index += 1) doorkeeper.knows(`other ${index}`);
    expect(doorkeeper.knows('a')).toBe(false);
  });

  it('forgets as many keys for those that it passes over as for those that it looks at', () => {
    const remembered = (pass: (doorkeeper: Doorkeeper, index: number) => unknown) => {
      const doorkeeper = new Doorkeeper(1 << 12);
      for (let index = 0; index < 1_000; index += 1) doorkeeper.knows(`key ${index}`);
      for (let index = 0; index < 1 << 12; index += 1) pass(doorkeeper, index);
      let known = 0;
      for (let index = 0; index < 1_000; index += 1) if (doorkeeper.knows(`key ${index}`)) known += 1;
      return known;
    };
    const afterOthers = remembered((doorkeeper, index) => doorkeeper.knows(`other ${index}`));
    const afterPassing = remembered((doorkeeper) => doorkeeper.passOver(1));
    expect(afterOthers).toBeGreaterThan(200);
    expect(afterPassing / afterOthers).toBeGreaterThan(0.8);
    expect(afterPassing / afterOthers).toBeLessThan(1.25);
  });

  it('comes to know keys that take the same place, although they are asked for in turn', () => {
    const doorkeeper = new Doorkeeper(1);
    const names = Array.from({ length: 500 }, (_, index) => `key ${index}`);
    const known = new Set<string>();
    for (let round = 0; round < 2_000; round += 1) {
      for (const name of names) if (doorkeeper.knows(name)) known.add(name);
    }
    expect(known.size).toBe(names.length);
  });

  it.each([
    ['numbered', (index: number) => `product:${index}:price`],
    ['with a number in front', (index: number) => `${index}:session`],
    ['random', (index: number) => `s:${createHash('sha1').update(String(index)).digest('hex')}`],
    ['not in ASCII', (index: number) => `größe:${index}`],
  ])('tells most keys apart that are %s', (_, name) => {
    const doorkeeper = new Doorkeeper(10_000);
    let unknown = 0;
    for (let index = 0; index < 5_000; index += 1) if (!doorkeeper.knows(name(index))) unknown += 1;
    let known = 0;
    for (let index = 0; index < 5_000; index += 1) if (doorkeeper.knows(name(index))) known += 1;
    expect(unknown).toBe(5_000);
    expect(known).toBeGreaterThan(3_000);
  });

  it('looks at the end of a long key only', () => {
    const doorkeeper = new Doorkeeper(10);
    doorkeeper.knows(`a${'x'.repeat(1e6)}`);
    expect(doorkeeper.knows(`b${'x'.repeat(1e6)}`)).toBe(true);
    expect(doorkeeper.knows(`${'x'.repeat(1e6)}b`)).toBe(false);
  });
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
    const copy = ownCopy(value) as ReturnType<typeof reply>;
    expect(Object.getOwnPropertyDescriptors(copy)).toEqual(Object.getOwnPropertyDescriptors(value));
    expect(Object.keys(copy)).toEqual(['a', 'b', '__proto__']);
    (copy.a[1] as Buffer)[0] = 0;
    copy.a.push('more');
    Reflect.deleteProperty(copy.b, 'c');
    Reflect.deleteProperty(copy, '__proto__');
    expect(sameValue(value, reply())).toBe(true);
    expect(sameValue(copy, value)).toBe(false);
  });

  it('an object of a class is not copied', () => {
    const date = new Date();
    expect((ownCopy([date]) as Date[])[0]).toBe(date);
  });

  it.each<[unknown, unknown]>([
    ['1', 1],
    [null, undefined],
    [null, {}],
    ['', []],
    [Buffer.from('a'), Buffer.from('b')],
    [Buffer.from('a'), 'a'],
    [Buffer.from('a'), { 0: 97 }],
    [['a'], ['b']],
    [['a'], ['a', 'b']],
    [['a', 'b'], ['a']],
    [['a'], { 0: 'a' }],
    [{ a: '1' }, { a: '2' }],
    [{ a: '1' }, { b: '1' }],
    [{ a: '1' }, { a: '1', b: '2' }],
    [{ a: '1', b: '2' }, { a: '1' }],
    [{ a: { b: ['1'] } }, { a: { b: ['2'] } }],
  ])('%j is another value than %j', (one, other) => {
    expect(sameValue(one, other)).toBe(false);
    expect(sameValue(other, one)).toBe(false);
    for (const value of [one, other]) expect(sameValue(value, ownCopy(value))).toBe(true);
  });
});

describe('OwnCommands', () => {
  /** @param left - commands in flight after the last of these replies. */
  const answer = (own: OwnCommands, times: number, left = 0) => {
    for (let time = times - 1; time >= 0; time -= 1) {
      own.replies.light += 1;
      own.answer({ length: left + time });
    }
  };

  it('keeps no reply for a key with a write in flight, by position and not by number of writes', () => {
    const own = new OwnCommands(new ReplyCount(), false, () => {});
    own.writes(['a', 'b'], 1);
    own.writes(['a'], 3);
    answer(own, 1);
    expect([own.mayFill('a'), own.mayFill('b'), own.mayFill('c')]).toEqual([false, false, true]);
    answer(own, 1);
    expect([own.mayFill('a'), own.mayFill('b')]).toEqual([false, true]);
    answer(own, 2);
    expect(own.mayFill('a')).toBe(true);
  });

  it('deals with several replies at once', () => {
    const own = new OwnCommands(new ReplyCount(), false, () => {});
    own.writes(['a'], 1);
    own.writes(['b'], 4);
    own.replies.light += 3;
    own.replies.others += 1;
    own.answer({ length: 1 });
    expect([own.mayFill('a'), own.mayFill('b')]).toEqual([true, false]);
  });

  it('after a command of unknown keys, the reply after its own lets answers be served again', () => {
    const own = new OwnCommands(new ReplyCount(), false, () => {});
    own.changesAnything(2);
    answer(own, 3);
    expect(own.settled).toBe(false);
    answer(own, 1);
    expect(own.settled).toBe(true);
  });

  it('with late pushes, answers are served again after the reply to a command that was issued after that reply', () => {
    const own = new OwnCommands(new ReplyCount(), true, () => {});
    own.changesAnything(0);
    // Three more commands were in flight when its reply came.
    answer(own, 4);
    expect(own.settled).toBe(false);
    answer(own, 1);
    expect(own.settled).toBe(true);
  });

  it('with late pushes, it reports the keys that a reply has shown, and from when they may be used', () => {
    const shown: unknown[] = [];
    const own = new OwnCommands(new ReplyCount(), true, (keys, position) => shown.push([keys, position]));
    own.shows(['a', 'b'], 1);
    answer(own, 1, 1);
    expect(shown).toEqual([]);
    answer(own, 1, 5);
    expect(shown).toEqual([[['a', 'b'], 7]]);
  });

  it('keeps no replies to reads from before a position', () => {
    const own = new OwnCommands(new ReplyCount(), false, () => {});
    own.forgetBefore(2);
    answer(own, 2);
    expect(own.mayFill('a')).toBe(false);
    answer(own, 1);
    expect(own.mayFill('a')).toBe(true);
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
    // Of another form than Redis sends: whichever keys are meant.
    [`>2\r\n${bulk('invalidate')}*2\r\n${bulk('a')}+b\r\n`, undefined],
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
});
