import { Socket } from 'node:net';

type Method = '_write' | '_writev';
type Prototype = Record<Method, (this: Socket, ...args: unknown[]) => unknown>;

/**
 * Counts what sockets hand to the system, those to a port if one is given: a `_write` or a `_writev`, below any cork,
 * is one write each. The prototype stays patched, so a process that has counted is good for nothing else.
 */
export class WriteCounter {
  writes = 0;

  constructor(port?: number) {
    const prototype = Socket.prototype as unknown as Prototype;
    for (const method of ['_write', '_writev'] as const) {
      const original = prototype[method];
      const count = (socket: Socket) => {
        if (port === undefined || socket.remotePort === port) this.writes += 1;
      };
      prototype[method] = function (...args) {
        count(this);
        return original.apply(this, args);
      };
    }
  }
}
