import * as ioredis from 'ioredis';
import { firstMissingMember, isMock } from './probe.js';
import type { AnyFunction } from './types.js';

/**
 * A class of ioredis. Host: before 5.1 `Redis` is the module itself, not a named export.
 *
 * A test may replace ioredis by a module without the class. Then this returns a class whose constructor throws; users
 * of the other class never see that. Not read as `ioredis.Redis`: bundlers make that an import named `Redis`, and
 * rename the class that extends it; Vitest throws if a mock lacks the member.
 */
export function hostClass(name: 'Redis' | 'Cluster'): unknown {
  const itself: unknown = 'default' in ioredis ? ioredis.default : undefined;
  for (const holder of [ioredis, itself] as Record<string, unknown>[]) {
    if (holder && name in holder && isClass(holder[name])) return holder[name];
  }
  if (name === 'Redis' && isClass(itself)) return itself;
  return class {
    constructor() {
      throw new TypeError(
        `ioredis-coalesce: new ${name}() needs the class ${name} of the package "ioredis", ` +
          'and the module in its place, such as a mock of a test, has no such class',
      );
    }
  };
}

function isClass(value: unknown): boolean {
  try {
    Reflect.construct(Object, [], value as new () => unknown);
    return true;
  } catch {
    return false;
  }
}

/**
 * On an object made by a mock of ioredis, keeps the mock's method that our class overrides.
 *
 * @param onCopy - called with each copy. Not if a mocking library made the method, since tests inspect its calls.
 */
export function keepMockedDuplicate(client: object, mocked: unknown, onCopy: (copy: object) => void): void {
  if (firstMissingMember(client) === undefined || Object.hasOwn(client, 'duplicate')) return;
  function duplicate(this: unknown, ...args: unknown[]): unknown {
    const copy = (mocked as AnyFunction).apply(this, args);
    if (typeof copy === 'object' && copy !== null) onCopy(copy);
    return copy;
  }
  const value = typeof mocked !== 'function' || isMock(mocked) ? mocked : duplicate;
  Object.defineProperty(client, 'duplicate', { value, writable: true, configurable: true });
}
