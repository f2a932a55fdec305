import { once } from 'node:events';
import { Socket } from 'node:net';
import { type Random, seeded } from '../hostile/random.js';
import type { Outcomes } from './outcomes.js';
import { type Client, invoke } from './variants.js';

type Listener = (chunk: Buffer) => void;

/**
 * Code that changes the socket of a client in use, between two steps of a program: replaces `write`, wraps it, puts an
 * earlier one back, or delays replies. The same for a plain client and a coalesced one.
 */
export class SocketMeddler {
  readonly #random: Random;
  readonly #stream: Socket;
  readonly #own: PropertyDescriptor | undefined;
  readonly #listeners: Listener[];
  #isChanged = false;

  constructor(
    readonly client: Client,
    seed: number,
  ) {
    this.#random = seeded(seed);
    this.#stream = client.stream as Socket;
    this.#own = Object.getOwnPropertyDescriptor(this.#stream, 'write');
    this.#listeners = this.#stream.listeners('data') as Listener[];
  }

  /** A fast command follows: what the host writes first past a coalesced client would end its connection. */
  meddle(outcomes: Outcomes): void {
    const stream = this.#stream;
    if (!this.#random.oneIn(3)) return;
    this.#isChanged = true;
    const present = stream.write;
    const how = this.#random.below(4);
    if (how === 0) stream.write = Socket.prototype.write.bind(stream);
    else if (how === 1) stream.write = ((...args: never[]) => Reflect.apply(present, stream, args)) as typeof present;
    else if (how === 2) Reflect.deleteProperty(stream, 'write');
    else this.#delayReplies();
    void outcomes.track('an echo', () => invoke(this.client, 'echo', [`after ${how}`]));
  }

  #delayReplies(): void {
    const stream = this.#stream;
    const wrapped = stream.listeners('data') as Listener[];
    stream.removeAllListeners('data');
    stream.on('data', (chunk: Buffer) => {
      setImmediate(() => {
        for (const each of wrapped) each.call(stream, chunk);
      });
    });
  }

  /** Puts back what was there, once all is answered. A coalesced client is fast again on a new connection. */
  async end(): Promise<void> {
    const stream = this.#stream;
    if (this.#own === undefined) Reflect.deleteProperty(stream, 'write');
    else Object.defineProperty(stream, 'write', this.#own);
    stream.removeAllListeners('data');
    for (const each of this.#listeners) stream.on('data', each);
    if (!this.#isChanged) return;
    const isReady = once(this.client as never, 'ready');
    (this.client as unknown as { disconnect(reconnect: boolean): void }).disconnect(true);
    await isReady;
  }
}
