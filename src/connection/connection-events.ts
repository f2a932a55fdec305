import type { Duplex } from 'node:stream';
import { type ConnectionEvent, reportConnection, watchesConnections } from '../channels.js';
import { addressOf } from '../host/state.js';
import type { HostClient } from '../host/types.js';

/** Tells subscribers and `DEBUG` how the coalescing of one connection changes. */
export class ConnectionEvents {
  #address: string | undefined;

  constructor(
    readonly client: HostClient,
    readonly stream: Duplex,
  ) {}

  /** The server's. Read only when there are subscribers: a socket keeps its peer's address once it was read. */
  get address(): string {
    this.#address ??= addressOf(this.client, this.stream);
    return this.#address;
  }

  /** @param reason - why there is only the cork; undefined with the hot path. */
  attached(reason: string | undefined): void {
    this.#report(
      reason === undefined ? { change: 'attached', mode: 'hot' } : { change: 'attached', mode: 'cork', reason },
    );
  }

  downgraded(reason: string): void {
    this.#report({ change: 'downgraded', mode: 'cork', reason });
  }

  detached(reason: string): void {
    this.#report({ change: 'detached', mode: 'detached', reason });
  }

  #report(event: Omit<ConnectionEvent, 'address'>): void {
    if (watchesConnections()) reportConnection({ ...event, address: this.address });
  }
}
