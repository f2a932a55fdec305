/** How the host's `Command` class treats its commands. */
import type { HostCommandClass } from './types.js';

const inAnyCase = new WeakMap<HostCommandClass, boolean>();

/**
 * Whether the host finds the keys of `GET` as it finds those of `get`, for `keyPrefix` and a Cluster's slots. Host:
 * ioredis 6 and the last versions of 5 do, earlier ones and iovalkey do not (`Command#_iterateKeys`).
 */
export function findsKeysInAnyCase(commandClass: HostCommandClass): boolean {
  let finds = inAnyCase.get(commandClass);
  if (finds === undefined) {
    // Not constructed: that would make a promise, and run the argument transformers of users.
    const probe = Object.assign(Object.create(commandClass.prototype) as HostCommandClass['prototype'], {
      name: 'GET',
      args: ['key'],
    });
    finds = probe.getKeys().length === 1;
    inAnyCase.set(commandClass, finds);
  }
  return finds;
}
