/** Loaded into the service before its own code (`node --import`), so that the example holds nothing of the bench. */
import { Socket } from 'node:net';
import type { ServiceUsage } from './service.js';

// However the demo ends, its services end with it.
process.on('disconnect', () => process.exit());

let writes = 0;
const redisPort = process.env.COUNT_WRITES_TO_PORT;
if (redisPort !== undefined) {
  countWrites(Number(redisPort));
}
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuUs: user + system, writes } satisfies ServiceUsage);
});
// A listener keeps the channel open, and an open channel would keep a service alive that has shut down.
process.channel?.unref();

/** Counts what Node hands to the operating system: `_write` and `_writev`, below any cork. */
function countWrites(port: number): void {
  for (const name of ['_write', '_writev'] as const) {
    const original: unknown = Socket.prototype[name];
    if (typeof original !== 'function') {
      throw new Error(`expected net.Socket.prototype.${name} to be a function, got ${typeof original}`);
    }
    Socket.prototype[name] = function (this: Socket, ...args: unknown[]): void {
      if (this.remotePort === port) {
        writes += 1;
      }
      Reflect.apply(original, this, args);
    };
  }
}
