/** What `cache.prefetch` learns: the forms of reads, their identities, and what follows what. */
import { describe, expect, it } from 'vitest';
import { elementsOf, KeyPatterns } from '../../src/cache/prefetch/key-patterns.js';
import { type CommandVariant, UNLISTED } from '../../src/commands/fast-commands.js';
import { variantOf } from '../../src/core/entry.js';

const variants = new Map<string, CommandVariant>();

function variant(name: string): CommandVariant {
  const known = variants.get(name) ?? variantOf({ ...UNLISTED, name, cacheable: true }, 'utf8');
  variants.set(name, known);
  return known;
}

/** A client whose reads are noted, with a clock of its own. */
class Reader {
  readonly patterns = new KeyPatterns();
  time = 1_000;

  /** Reads a key, when the reply to the read before has come. */
  read(key: string, command = 'get', ...args: string[]) {
    this.patterns.replies += 1;
    return this.readAtOnce(key, command, ...args);
  }

  readAtOnce(key: string, command = 'get', ...args: string[]) {
    const sent = args.length === 0 ? key : [key, ...args];
    return this.patterns.read(variant(command), key, args.join(), sent, this.time);
  }

  /** The keys that are predicted with this read. */
  predictedWith(key: string, command = 'get', ...args: string[]): string[] {
    const form = this.read(key, command, ...args);
    const { identity } = this.patterns;
    return form?.successors.predicted.map((successor) => successor.pattern.keyOf(identity)) ?? [];
  }

  list(key: string, elements: string[], command = 'smembers') {
    return this.patterns.listed(variant(command), key, '', key, elements, this.time);
  }
}

const hex = (index: number, length: number) =>
  Array.from({ length }, (_, at) => ((index * 2_654_435_761 + at * 40_503) >>> (at % 16)) % 16)
    .map((digit) => digit.toString(16))
    .join('');

const uuid = (index: number) => hex(index, 32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
const base64 = (index: number) => Buffer.from(hex(index, 24), 'hex').toString('base64');
const word = (index: number) => Array.from(String(index), (digit) => 'abcdefghij'[Number(digit)]).join('');

describe('the identity in a key', () => {
  /** Keys of a kind, how their form is shown, and a key that is read with it. */
  const KINDS: readonly (readonly [
    what: string,
    (index: number) => string,
    shown: string,
    (index: number) => string,
  ])[] = [
    ['a number at the end', (index) => `user:${index}`, 'get user:*', (index) => `cart:${index}`],
    [
      'a number in the middle',
      (index) => `user:${index}:profile`,
      'get user:*:profile',
      (index) => `user:${index}:cart`,
    ],
    [
      'a number before a part that also has a digit',
      (index) => `user:${index}:settings:v2`,
      'get user:*:settings:?',
      (index) => `user:${index}:profile`,
    ],
    [
      'a number of one of few tenants',
      (index) => `tenant:acme:user:${index}`,
      'get tenant:acme:user:*',
      (index) => `tenant:acme:cart:${index}`,
    ],
    [
      'a number and one of many tenants',
      (index) => `tenant:${word(index)}:user:${index}`,
      'get tenant:*:user:*',
      (index) => `tenant:${word(index)}:cart:${index}`,
    ],
    ['a hash tag', (index) => `{user:${index}}:cart`, 'get {user:*}:cart', (index) => `{user:${index}}:profile`],
    ['a UUID', (index) => `session:${uuid(index)}`, 'get session:*', (index) => `grants:${uuid(index)}`],
    ['a hash', (index) => `file:${hex(index, 40)}:meta`, 'get file:*:meta', (index) => `file:${hex(index, 40)}:size`],
    ['a session id in base64', (index) => `sess:${base64(index)}`, 'get sess:*', (index) => `cart:${base64(index)}`],
    [
      'an e-mail address',
      (index) => `login:${word(index)}@example.com`,
      'get login:*',
      (index) => `roles:${word(index)}@example.com`,
    ],
    [
      'an IPv4 address',
      (index) => `limit:10.0.${index >> 8}.${index % 256}`,
      'get limit:*',
      (index) => `block:10.0.${index >> 8}.${index % 256}`,
    ],
    ['a name without digits', (index) => `page:${word(index)}`, 'get page:*', (index) => `views:${word(index)}`],
    ['a whole key', (index) => uuid(index), 'get *', (index) => `meta:${uuid(index)}`],
  ];

  it.each(KINDS)('%s', (_, key, shown, other) => {
    const reader = new Reader();
    for (let index = 0; index < 400; index += 1) {
      reader.time += 1;
      reader.read(key(index));
      reader.read(other(index));
    }
    expect(String(reader.read(key(1_000)))).toBe(shown);
    reader.time += 1_000;
    expect(reader.predictedWith(key(1_001))).toEqual([other(1_001)]);
  });

  it('is not in a key without one', () => {
    const reader = new Reader();
    for (let index = 0; index < 1_000; index += 1) expect(reader.read('config:flags')).toBeUndefined();
  });

  it('is no word, whatever numbers are beside it: words and numbers are counted separately', () => {
    const reader = new Reader();
    const words = Array.from({ length: 20 }, (_, index) => `config:${word(index + 10)}`);
    for (let round = 0; round < 3; round += 1) {
      for (const key of words) reader.read(key);
      for (let number = 0; number < 40; number += 1) reader.read(`config:${number}`);
    }
    expect(words.filter((key) => reader.read(key) !== undefined)).toEqual([]);
    expect(String(reader.read('config:41'))).toBe('get config:*');
  });

  it('is found in the first keys, too, which were taken for names', () => {
    const reader = new Reader();
    for (let index = 0; index < 100; index += 1) {
      reader.time += 10;
      reader.read(`user:${index}`);
      reader.read(`cart:${index}`);
    }
    reader.time += 1_000;
    expect(reader.predictedWith('user:0')).toEqual(['cart:0']);
  });

  it('is not shown, even where it has not been distinguished from a name yet', () => {
    const reader = new Reader();
    for (let index = 0; index < 200; index += 1) {
      reader.time += 1;
      reader.read(`user:4711:order:${index}`);
      reader.read(`user:4711:items:${index}`, 'hget', 'x42');
    }
    const shown = JSON.stringify(reader.patterns.learned());
    expect(shown).toContain('get user:?:order:*');
    expect(shown).toContain('hget user:?:items:* ?');
    expect(shown).not.toMatch(/\d{2}/);
  });
});

describe('what follows', () => {
  /** A flow of which each read but the first is made in some of ten cases. */
  function train(reader: Reader, flows: number, tenths: Record<string, number>, first = 0): void {
    for (let index = first; index < first + flows; index += 1) {
      reader.time += 10;
      reader.read(`user:${index}`);
      for (const [kind, share] of Object.entries(tenths)) if (index % 10 < share) reader.read(`${kind}:${index}`);
    }
  }

  it('is predicted in 7 of 10 cases, and not in 6', () => {
    const reader = new Reader();
    train(reader, 1_000, { always: 10, eight: 8, six: 6, seldom: 1 });
    expect(reader.predictedWith('user:5000')).toEqual(['always:5000', 'eight:5000']);
  });

  it('is predicted after a few tens of cases', () => {
    const reader = new Reader();
    train(reader, 40, { cart: 10 });
    expect(reader.predictedWith('user:5000')).toEqual(['cart:5000']);
  });

  it('has the same identity', () => {
    const reader = new Reader();
    for (let index = 0; index < 1_000; index += 1) {
      reader.time += 10;
      reader.read(`user:${index}`);
      reader.read(`cart:${index + 1}`);
    }
    expect(reader.predictedWith('user:5000')).toEqual([]);
  });

  it('comes after a reply: what is issued at once is sent at once anyway', () => {
    const reader = new Reader();
    for (let index = 0; index < 1_000; index += 1) {
      reader.time += 10;
      reader.read(`user:${index}`);
      reader.readAtOnce(`cart:${index}`);
      reader.read(`orders:${index}`);
    }
    expect(reader.predictedWith('user:5000')).toEqual(['orders:5000']);
  });

  it('comes soon', () => {
    const reader = new Reader();
    for (let index = 0; index < 1_000; index += 1) {
      reader.time += 10;
      reader.read(`user:${index}`);
      reader.time += 600;
      reader.read(`cart:${index}`);
    }
    expect(reader.predictedWith('user:5000')).toEqual([]);
  });

  it('is distinguished by the command, and by its other arguments', () => {
    const reader = new Reader();
    for (let index = 0; index < 200; index += 1) {
      reader.time += 10;
      reader.read(`user:${index}`, 'hget', 'name');
      reader.read(`user:${index}`, 'hget', 'mail');
    }
    const [pair] = reader.read('user:5000', 'hget', 'name')?.successors.predicted ?? [];
    expect([pair?.pattern.variant.command.name, pair?.pattern.args]).toEqual(['hget', ['mail']]);
    expect(reader.predictedWith('user:5001', 'hget', 'age')).toEqual([]);
  });

  it('is at most eight forms', () => {
    const reader = new Reader();
    train(reader, 500, Object.fromEntries(Array.from({ length: 14 }, (_, index) => [`kind-${word(index)}`, 10])));
    expect(reader.predictedWith('user:5000')).toHaveLength(8);
  });

  it('changes: the old is forgotten, the new is learned', () => {
    const reader = new Reader();
    train(reader, 1_000, { cart: 10 });
    train(reader, 1_000, { orders: 10 }, 1_000);
    expect(reader.predictedWith('user:5000')).toEqual(['orders:5000']);
  });

  it('is no longer predicted when it is not used, and again later', () => {
    const reader = new Reader();
    train(reader, 200, { cart: 10 });
    const pair = reader.read('user:5000')?.successors.predicted[0];
    Object.assign(pair as object, { used: 30, unused: 40 });
    train(reader, 100, { cart: 10 }, 1_000);
    expect(reader.predictedWith('user:5001')).toEqual([]);
    reader.time += 10_000;
    train(reader, 100, { cart: 10 }, 2_000);
    expect(reader.predictedWith('user:5002')).toEqual(['cart:5002']);
  });

  it('is predicted later each time that it is not used', () => {
    const reader = new Reader();
    train(reader, 200, { cart: 10 });
    let first = 1_000;
    const rests: number[] = [];
    for (let time = 0; time < 4; time += 1) {
      const pair = reader.read('user:5000')?.successors.candidates[0];
      Object.assign(pair as object, { used: 0, unused: 64 });
      train(reader, 20, { cart: 10 }, first);
      first += 20;
      const from = reader.time;
      while (reader.predictedWith('user:5001').length === 0) {
        train(reader, 20, { cart: 10 }, first);
        first += 20;
      }
      rests.push(Math.round((reader.time - from) / 10_000));
    }
    expect(rests).toEqual([1, 2, 4, 8]);
  });

  it('is none in 3 of 10 cases, although many are begun before the first is followed', () => {
    const reader = new Reader();
    for (let burst = 0; burst < 5; burst += 1) {
      reader.time += 1_000;
      for (let index = 0; index < 500; index += 1) {
        expect(reader.predictedWith(`user:${burst * 500 + index}`)).toEqual([]);
      }
      for (let index = 0; index < 150; index += 1) reader.read(`cart:${burst * 500 + index}`);
    }
  });

  it('is still predicted where enough of it is used', () => {
    const reader = new Reader();
    train(reader, 200, { cart: 10 });
    const pair = reader.read('user:5000')?.successors.predicted[0];
    Object.assign(pair as object, { used: 50, unused: 20 });
    train(reader, 100, { cart: 10 }, 1_000);
    expect(reader.predictedWith('user:5001')).toEqual(['cart:5001']);
  });
});

describe('the elements of a list', () => {
  function train(reader: Reader, lists: number, read: number): void {
    for (let index = 0; index < lists; index += 1) {
      reader.time += 10;
      const elements = Array.from({ length: 10 }, (_, at) => String(index * 10 + at));
      reader.list(`list:${index}`, elements);
      for (const element of elements.slice(0, read)) reader.read(`product:${element}`);
    }
  }

  it.each([
    [10, ['product:*']],
    [7, ['product:*']],
    [5, []],
  ])('are predicted where %i of 10 are read by a form', (read, expected) => {
    const reader = new Reader();
    train(reader, 300, read);
    const list = reader.list('list:5000', ['a1', 'a2']);
    expect(
      list?.pattern.elements.predicted.map((successor) => successor.pattern.keyOf({ parts: ['*'], hash: 0 })) ?? [],
    ).toEqual(expected);
  });

  it('may be those of a list that has no identity', () => {
    const reader = new Reader();
    for (let index = 0; index < 300; index += 1) {
      reader.time += 10;
      reader.list('leaders', [`${index}`]);
      reader.read(`player:${index}`);
    }
    expect(reader.list('leaders', ['1'])?.pattern.elements.predicted).toHaveLength(1);
  });

  it.each([
    ['an array', ['1', '2'], false, ['1', '2']],
    ['names and values in turn', ['1', 'x', '2', 'y'], true, ['1', '2']],
    [
      'pairs',
      [
        ['1', 10],
        ['2', 20],
      ],
      true,
      ['1', '2'],
    ],
    ['a map', { 1: 'x', 2: 'y' }, true, ['1', '2']],
    ['what is no text, or too long', [1, Buffer.from('1'), null, 'x'.repeat(65), 'ok'], false, ['ok']],
    ['nothing', null, false, []],
  ])('are taken from %s', (_, reply, inTurn, expected) => {
    expect(elementsOf(reply, inTurn)).toEqual(expected);
  });

  it('are at most 64', () => {
    const elements = Array.from({ length: 500 }, (_, index) => String(index));
    expect(elementsOf(elements, false)).toHaveLength(64);
    expect(elementsOf(elements, true)).toHaveLength(64);
  });
});

describe('what is learned stays small', () => {
  const sizeOf = ({ patterns }: Reader) => patterns.all.length;

  it('over a million identities that never come back', () => {
    const reader = new Reader();
    for (let index = 0; index < 1_000_000; index += 1) {
      if (index % 100 === 0) reader.time += 1;
      reader.read(`user:${index}`);
    }
    expect(sizeOf(reader)).toBe(1);
  });

  it('whatever keys and arguments are chosen', () => {
    const reader = new Reader();
    for (let index = 0; index < 200_000; index += 1) {
      reader.time += 0.01;
      const parts = Array.from({ length: 1 + (index % 6) }, (_, at) =>
        index % 2 ? hex(index + at, 8) : word(index * 7 + at),
      );
      reader.read(parts.join(index % 3 ? ':' : '{'), index % 5 ? 'get' : 'hget', word(index));
    }
    expect(sizeOf(reader)).toBeLessThanOrEqual(512);
  });

  it('and starts again a minute after it was full', () => {
    const reader = new Reader();
    const learns = () => {
      for (let index = 0; index < 100; index += 1) {
        reader.time += 10;
        reader.read(`new:user:${index}`);
        reader.read(`new:cart:${index}`);
      }
      return reader.predictedWith('new:user:5000').length > 0;
    };
    for (let index = 0; index < 100_000; index += 1)
      reader.read(`${word(index % 300)}:${word(index % 40)}:${word(index % 50)}:${index}`);
    expect(learns()).toBe(false);
    reader.time += 60_000;
    expect(learns() || learns()).toBe(true);
  });

  it('and starts again when other forms were too many', () => {
    const reader = new Reader();
    for (let index = 0; index < 100_000; index += 1) {
      reader.read(`${word(index % 40)}:${index}`, 'hget', word(index % 600));
    }
    expect(sizeOf(reader)).toBe(512);
    reader.time += 60_000;
    for (let index = 0; index < 100; index += 1) {
      reader.time += 10;
      reader.read(`new:user:${index}`);
      reader.read(`new:cart:${index}`);
    }
    expect(reader.predictedWith('new:user:5000')).toEqual(['new:cart:5000']);
    expect(sizeOf(reader)).toBeLessThan(10);
  });

  it('looks at few reads where nothing follows, until something does', () => {
    const reader = new Reader();
    let looked = 0;
    for (let index = 0; index < 300_000; index += 1) {
      if (index % 30 === 0) reader.time += 1;
      if (reader.read(`user:${index}`) !== undefined) looked += 1;
    }
    // 10 seconds: the first 16,384 reads, and 2,048 each time it looks again.
    expect(looked).toBeLessThan(40_000);
    for (let index = 0; index < 60_000; index += 1) {
      if (index % 3 === 0) reader.time += 1;
      reader.read(`user:${index}`);
      reader.read(`cart:${index}`);
    }
    expect(reader.predictedWith('user:1000000')).toEqual(['cart:1000000']);
  });
});
