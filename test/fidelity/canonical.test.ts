import { ReplyError } from 'ioredis';
import { ReplyError as ReplyError5 } from 'ioredis5';
import { describe, expect, it } from 'vitest';
import { canonical, difference } from '../helpers/fidelity/canonical.js';
import { ENTRIES } from '../helpers/fidelity/command-table.js';
import { Outcomes } from '../helpers/fidelity/outcomes.js';

const replyError = (Class: new (message: string) => Error, message: string, command: object): Error =>
  Object.assign(new Class(message), { command });

const Reply6 = ReplyError as unknown as new (message: string) => Error;
const Reply5 = ReplyError5 as unknown as new (message: string) => Error;

class Named extends Error {
  override readonly name = 'ReplyError';
}

describe('the comparer distinguishes', () => {
  const get = { name: 'get', args: ['k'] };
  const descending = Object.defineProperty({}, 'a', {
    value: 1,
    enumerable: false,
    writable: true,
    configurable: true,
  });

  it.each<[what: string, a: unknown, b: unknown]>([
    ['a Buffer and a string', Buffer.from('a'), 'a'],
    ['a Buffer and a Uint8Array', Buffer.from('a'), new Uint8Array([97])],
    ['two Buffers', Buffer.from([0xff]), Buffer.from([0xfe])],
    ['a number and a string', 1, '1'],
    ['a number and a bigint', 1, 1n],
    ['null and undefined', null, undefined],
    ['null and "null"', null, 'null'],
    ['0 and -0', 0, -0],
    ['neighbouring doubles', 9007199254740992, 9007199254740994],
    ['an empty string and null', '', null],
    ['two lone surrogates', '\ud800', '\ud801'],
    ['a lone surrogate and its replacement', '\ud800', '\ufffd'],
    ['property order', { a: 1, b: 2 }, { b: 2, a: 1 }],
    ['a null prototype and a plain object', Object.create(null), {}],
    ['an own __proto__ and none', JSON.parse('{"__proto__": "x"}'), {}],
    ['a property that is not enumerable and one that is', descending, { a: 1 }],
    ['a Map and an object', new Map([['a', 1]]), { a: 1 }],
    ['an empty array and an empty object', [], {}],
    ['a nested null and a nested undefined', [[null]], [[undefined]]],
    ['a hole and undefined', new Array(1), [undefined]],
    ['an array and one with a property', ['a'], Object.assign(['a'], { extra: 1 })],
    ['flat and nested arrays', ['a', ['b']], ['a', 'b']],
    ['an error and its message', new Error('x'), 'x'],
    ['error messages', new Error('x'), new Error('y')],
    ['error classes', new Error('x'), new TypeError('x')],
    ['error classes of the same name', replyError(Reply6, 'x', get), replyError(Named, 'x', get)],
    ['names of commands', replyError(Reply6, 'x', get), replyError(Reply6, 'x', { ...get, name: 'set' })],
    [
      'types of arguments',
      replyError(Reply6, 'x', { ...get, args: ['1'] }),
      replyError(Reply6, 'x', { ...get, args: [1] }),
    ],
    ['an error with a command and one without', replyError(Reply6, 'x', get), new Reply6('x')],
  ])('%s', (_, a, b) => {
    expect(canonical(a)).not.toBe(canonical(b));
  });

  it.each<[what: string, make: () => unknown]>([
    ['reply errors made apart', () => replyError(Reply5, 'x', { name: 'get', args: ['k', Buffer.from([1])] })],
    ['nested replies', () => [null, 'a', [Buffer.from('b'), { c: new Map([[1, 2]]) }], -0, Number.NaN]],
  ])('not %s', (_, make) => {
    expect(canonical(make())).toBe(canonical(make()));
  });

  it('shows where two texts begin to differ', () => {
    expect(difference('same', 'same')).toBeUndefined();
    expect(difference(`${'x'.repeat(500)}A`, `${'x'.repeat(500)}B`)).toMatch(/plain: ….*A\n {2}coalesced: ….*B$/);
    expect(difference('a', undefined)).toContain('(nothing)');
  });
});

describe('recorded outcomes', () => {
  async function outcomesOf(...issues: (() => unknown)[]): Promise<Outcomes> {
    const outcomes = new Outcomes();
    issues.forEach((issue, index) => void outcomes.track(`call ${index}`, issue));
    await outcomes.settled(20);
    return outcomes;
  }

  it.each<[what: string, a: () => unknown, b: () => unknown]>([
    ['a value from an error', () => Promise.resolve('x'), () => Promise.reject('x')],
    [
      'a throw from a rejection',
      () => {
        throw new Error('x');
      },
      () => Promise.reject(new Error('x')),
    ],
    ['a promise from a plain value', () => Promise.resolve('x'), () => 'x'],
    ['a promise that stays open', () => Promise.resolve('x'), () => new Promise(() => {})],
  ])('tell %s', async (_, a, b) => {
    const [plain, coalesced] = await Promise.all([outcomesOf(a), outcomesOf(b)]);
    expect(coalesced.mismatches(plain)).toHaveLength(1);
    expect(coalesced.mismatches(await outcomesOf(b))).toEqual([]);
  });

  it('show a program that ended early, and a callback that was called twice', async () => {
    const plain = await outcomesOf(
      () => 1,
      () => 2,
    );
    expect((await outcomesOf(() => 1)).mismatches(plain)).toHaveLength(1);
    const [once, twice] = [new Outcomes(), new Outcomes()];
    once.callback('called')(null, 'x');
    const callback = twice.callback('called');
    callback(null, 'x');
    callback(null, 'x');
    expect(twice.mismatches(once)).toHaveLength(1);
  });
});

it('the table has every command once, with at least two calls', () => {
  const names = ENTRIES.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(ENTRIES.filter(({ calls }) => calls.length < 2).map(({ name }) => name)).toEqual(['time']);
});
