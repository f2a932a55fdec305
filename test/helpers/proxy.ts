import { onTestFinished } from 'vitest';
import { until } from './hosts.js';
import { type Budget, Relay, type Treatment } from './relay.js';

/** A proxy that spoils connections on request. */
export class FaultyProxy extends Relay {
  readonly #received: Buffer[] = [];
  readonly #replies: Budget = { bytes: Number.POSITIVE_INFINITY };
  #pieceSize = Number.POSITIVE_INFINITY;

  /** What the clients have sent, on all connections, but for the first chunks. */
  received(chunks = 0): string {
    return Buffer.concat(this.#received.slice(chunks)).toString();
  }

  /**
   * Lets `bytes` more bytes of replies through, then resets the connection that they came on.
   * @param read - resolves when the client has read them. @default 20 ms later
   */
  resetAfterReplyBytes(bytes: number, read?: () => Promise<unknown>): void {
    this.#replies.bytes = bytes;
    this.#replies.read = read;
  }

  /** Passes replies on in pieces of `bytes` bytes, each in a packet of its own. */
  cutRepliesInto(bytes: number): void {
    this.#pieceSize = bytes;
  }

  /**
   * Loses the connection with all that was issued in flight, up to `sent`: the server has it, the replies are lost.
   *
   * @param ms - after which it does so without `sent`, which may wait for room under `maxInFlight`.
   */
  async loseReplies(sent: string, ms?: number): Promise<void> {
    this.stall();
    await this.#resetOnceSent(sent, ms);
    this.resume();
  }

  /** The same, but nothing reaches the server. */
  async loseRequests(sent: string, ms?: number): Promise<void> {
    this.swallowRequests();
    await this.#resetOnceSent(sent, ms);
  }

  async #resetOnceSent(sent: string, ms = Number.POSITIVE_INFINITY): Promise<void> {
    // A program before may have sent the same.
    const before = this.#received.length;
    const latest = performance.now() + ms;
    const isDue = () => performance.now() > latest || this.received(before).includes(sent);
    await until(isDue, `${sent} to be on the wire`);
    this.reset();
  }

  protected treat(): Treatment {
    return {
      replies: this.#replies,
      onRequest: (chunk) => void this.#received.push(chunk),
      cut: () => {
        const size = this.#pieceSize;
        return () => size;
      },
    };
  }
}

/** A proxy in front of the server at `target`; it is closed when the running test ends. */
export async function startProxy(target: string): Promise<FaultyProxy> {
  const proxy = new FaultyProxy(Number(new URL(target).port));
  await proxy.listen();
  onTestFinished(() => proxy.close());
  return proxy;
}
