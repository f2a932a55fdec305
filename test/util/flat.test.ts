import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { flatOf } from '../../src/util/values.js';

describe('flatOf', () => {
  it('gives what flat() gives', () => {
    const value = fc.oneof(
      fc.string(),
      fc.constant(undefined),
      fc.array(fc.oneof(fc.integer(), fc.array(fc.integer()))),
    );
    fc.assert(
      fc.property(fc.array(value), (values) => {
        expect(flatOf(values)).toStrictEqual(values.flat());
      }),
    );
  });

  it('leaves out holes, but not what a prototype has in their place', () => {
    const holes = ['a', undefined, 'b'];
    delete holes[1];
    expect(flatOf([holes])).toStrictEqual(['a', 'b']);
    Object.setPrototypeOf(holes, Object.assign(Object.create(Array.prototype), { 1: 'c' }));
    expect(flatOf([holes])).toStrictEqual(['a', 'c', 'b']);
  });

  it('reads a length once, and elements in order, as flat() does', () => {
    const logged = (log: string[]): unknown[] =>
      new Proxy(['a', 'b', 'c'], {
        get: (target, name) => {
          log.push(`get ${String(name)}`);
          if (name === '0') target.push('d');
          if (name === '1') target.length = 2;
          return Reflect.get(target, name);
        },
        has: (target, name) => {
          log.push(`has ${String(name)}`);
          return Reflect.has(target, name);
        },
      });
    const [ours, theirs]: [string[], string[]] = [[], []];
    expect(flatOf(['key', logged(ours)])).toStrictEqual(['key', logged(theirs)].flat());
    expect(ours).toEqual(theirs);
    expect(ours).toContain('has 2');
  });

  it('passes on what a getter throws', () => {
    const throws = Object.defineProperty([1, 2], 1, {
      get: () => {
        throw new RangeError('no value');
      },
    });
    expect(() => flatOf([throws])).toThrow(new RangeError('no value'));
  });
});
