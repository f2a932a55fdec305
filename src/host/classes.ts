import * as ioredis from 'ioredis';
import { firstMissingMember } from './probe.js';

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

/** On an object made by a mock of ioredis, keeps the mock's method that our class overrides. */
export function keepMockedMethod(client: object, name: string, value: unknown): void {
  if (firstMissingMember(client) === undefined || Object.hasOwn(client, name)) return;
  Object.defineProperty(client, name, { value, writable: true, configurable: true });
}
