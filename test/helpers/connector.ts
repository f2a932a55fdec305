import type { Duplex } from 'node:stream';
import { AbstractConnector } from 'ioredis';

/** A `Connector` for the options of a client, whose connections are the streams that `open` makes. */
export function connectorOf(open: () => Duplex): never {
  class Connector extends AbstractConnector {
    constructor() {
      // Milliseconds until a stream that does not end is destroyed. Host: it constructs this with the options; Node
      // warns since 24 of a timeout that is no number.
      super(1);
    }

    override connect(): Promise<never> {
      this.connecting = true;
      this.stream = open() as never;
      return Promise.resolve(this.stream as never);
    }
  }
  return Connector as never;
}
