import { onTestFinished } from 'vitest';
import { until } from './hosts.js';
import { type Budget, Relay, type Treatment } from './relay.js';

/** A proxy that spoils connections on request. */
export class FaultyProxy extends Relay {
  readonly #received: Buffer[] = [];
  readonly #replies: Budget = { bytes: Number.POSITIVE_INFINITY };
  #pieceSize = Number.POSITIVE_INFINITY;

  /** What the clients have sent, on all connections. */
  received(): string {
    return Buffer.concat(this.#received).toString();
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

  /** Loses the connection with all that was issued in flight, up to `sent`: the server has it, the replies are lost. */
  async loseReplies(sent: string): Promise<void> {
    this.stall();
    await this.#resetOnceSent(sent);
    this.resume();
  }

  /** The same, but nothing reaches the server. */
  async loseRequests(sent: string): Promise<void> {
    this.swallowRequests();
    await this.#resetOnceSent(sent);
  }

  async #resetOnceSent(sent: string): Promise<void> {
    await until(() => this.received().includes(sent), `${sent} to be on the wire`);
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
