/**
 * Detects new clients of every copy of the host in this process, however its files were loaded.
 *
 * Host: the constructors of `Redis` and `Cluster` call `EventEmitter`, which calls `EventEmitter.init`: there the class
 * is first seen. They end with their first `setStatus()`: then the client is complete, and nothing has been sent
 * (`built/Redis.js`, `built/cluster/index.js`). So the classes stay what they are: `instanceof`, statics, subclasses
 * and stubs on prototypes work as before.
 */
import { EventEmitter } from 'node:events';
import { define, hostPrototype } from './probe.js';
import type { AnyFunction } from './types.js';

/** Calls `made` with every client and Cluster from now on, within their constructor: it must not throw. */
export function onNewClient(made: (client: object) => void): void {
  const emitters = EventEmitter as unknown as { init: AnyFunction };
  const { init } = emitters;
  const watched = new WeakSet<object>();
  const seen = new WeakSet<object>();
  emitters.init = function (...args) {
    init.apply(this, args);
    const client = this as object;
    // Every emitter of the process runs this, so it must be cheap. It reads no property: a getter may need fields that
    // are not set yet.
    if (!('setStatus' in client && 'sendCommand' in client)) return;
    const prototype = hostPrototype(client);
    if (prototype === undefined || watched.has(prototype)) return;
    watched.add(prototype);
    const { setStatus } = prototype;
    // A frozen class keeps its own: its clients stay plain.
    define(prototype, 'setStatus', function (this: object, ...status: unknown[]) {
      const result = setStatus.apply(this, status);
      if (!seen.has(this)) {
        seen.add(this);
        made(this);
      }
      return result;
    });
  };
}
