import { isDeepStrictEqual } from 'node:util';
import { CODES, warnOnce } from '../errors.js';
import type { HostClient } from '../host/types.js';
import { nextTick } from '../util/clock.js';
import type { TransactionState } from './transaction-state.js';

/** Earlier servers may put a push within the reply to a command. */
const FIRST_MAJOR_VERSION = 7;

const OFF = ['TRACKING', 'OFF'] as const;
/** Clients with an OFF of ours on its way. */
const offUnanswered = new WeakSet<HostClient>();

interface ClientArguments {
  /** The name CLIENT included. */
  readonly count: number;
  text(index: number): string;
}

function equal(args: ClientArguments, own: readonly string[]): boolean {
  return args.count === own.length + 1 && own.every((argument, index) => args.text(index + 1) === argument);
}

/** `resting`: switched off here, until `wake`. `ended`: for the rest of this connection. */
type State = 'off' | 'on' | 'resting' | 'ended';

/**
 * Asks Redis to announce changes of the keys that this connection has read.
 *
 * RESP: https://redis.io/docs/latest/commands/client-tracking.
 */
export class Tracking {
  /** The arguments of CLIENT that switch tracking on. */
  readonly #args: readonly string[];
  #state: State = 'off';
  /** How often ON was asked for here: what is said of an earlier one counts no more. */
  #sent = 0;

  constructor(
    readonly client: HostClient,
    /** Prefixes of the keys to track, as on the wire; without any, all keys that are read. */
    readonly prefixes: readonly string[],
    /** The user's, on this connection. */
    readonly transaction: Pick<TransactionState, 'open' | 'closed'>,
  ) {
    const broadcast = prefixes.length > 0 ? ['BCAST', ...prefixes.flatMap((prefix) => ['PREFIX', prefix])] : [];
    this.#args = ['TRACKING', 'ON', ...broadcast];
  }

  /** Whether Redis tracks the keys that are read now. */
  get on(): boolean {
    return this.#state === 'on';
  }

  /** Whether the server can track keys, also while it does not. */
  get agreed(): boolean {
    return this.#state === 'on' || this.#state === 'resting';
  }

  get resting(): boolean {
    return this.#state === 'resting';
  }

  /** Switches tracking on. If the server cannot, a warning says why, once: commands work without it. */
  async arm(): Promise<void> {
    this.#sent += 1;
    const number = this.#sent;
    if (await this.#agreed()) this.#becomesOn(number);
  }

  async #agreed(): Promise<boolean> {
    try {
      const version = String(fieldOf(await this.#call('HELLO'), 'version'));
      if (!(Number.parseInt(version, 10) >= FIRST_MAJOR_VERSION)) {
        warnUncached(`the server is of version ${version}, and pushes are reliable from ${FIRST_MAJOR_VERSION}.0 on`);
        return false;
      }
      await this.#call('CLIENT', ...this.#args).catch((error: unknown) => this.#unlessOn(error));
      return true;
    } catch (error) {
      // A lost connection says nothing about the server.
      if (isReplyError(error)) warnUncached(`the server says "${error.message}"`);
      return false;
    }
  }

  /** Ordering: within a transaction, this would be one of the user's commands, and EXEC would show its reply. */
  async #call(name: string, ...args: string[]): Promise<unknown> {
    const { transaction } = this;
    for (let open = transaction.closed(); open !== undefined; open = transaction.closed()) await open;
    if (this.#state === 'ended') throw new Error('the connection has ended');
    return this.client.call(name, ...args);
  }

  /**
   * Host: unanswered commands of a lost connection are sent again on the next one (ioredis, event_handler.js). There
   * our own command is the second one with the same prefixes, so the server refuses it.
   *
   * @throws the error if tracking is not on with this object's settings.
   */
  async #unlessOn(error: unknown): Promise<void> {
    if (!isReplyError(error) || this.prefixes.length === 0) throw error;
    const info = await this.#call('CLIENT', 'TRACKINGINFO').catch((reason: unknown) => {
      if (!isReplyError(reason)) throw reason;
    });
    const prefixes = fieldOf(info, 'prefixes');
    if (!Array.isArray(prefixes) || !isDeepStrictEqual([...prefixes].sort(), [...this.prefixes].sort())) throw error;
  }

  /** Whether these arguments of CLIENT are ON as this object sends it, or the host again. */
  isOwnOn(args: ClientArguments): boolean {
    return equal(args, this.#args);
  }

  /** Whether these arguments of CLIENT are OFF as `rest` sends it, or the host again, maybe on the next connection. */
  isOwnOff(args: ClientArguments): boolean {
    return equal(args, OFF) && offUnanswered.has(this.client);
  }

  #becomesOn(number: number): void {
    if (this.#state === 'off' && this.#sent === number) this.#state = 'on';
  }

  /** Switches tracking off until `wake`: to track a key that is read costs Redis a quarter of the read. */
  rest(): void {
    const { client } = this;
    if (!this.on || client.status !== 'ready' || this.transaction.open) return;
    this.#state = 'resting';
    offUnanswered.add(client);
    const answered = () => void offUnanswered.delete(client);
    client.call('CLIENT', ...OFF).then(answered, answered);
  }

  wake(): void {
    if (!this.resting) return;
    this.#state = 'off';
    this.#sent += 1;
    const number = this.#sent;
    this.#call('CLIENT', ...this.#args).then(
      () => this.#becomesOn(number),
      () => {},
    );
  }

  /** `isOwnOff` is about to be queued. If the host sends it again on the next connection, tracking is needed there. */
  switchesOff(): void {
    if (this.resting || this.#state === 'ended') return;
    this.#state = 'resting';
    nextTick(() => this.wake());
  }

  /**
   * The connection becomes plain and stays open. Within a transaction, OFF would be one of the user's commands, so
   * tracking stays on: ioredis 6 drops invalidations.
   */
  disarm(): void {
    const asked = this.#sent > 0 && (this.on || this.#state === 'off');
    if (!asked || this.client.status !== 'ready' || this.transaction.open) return;
    this.client.call('CLIENT', ...OFF).catch(() => {});
  }

  end(): void {
    this.#state = 'ended';
  }
}

/** A field of a reply that is a map, which hosts return as an object or as a flat array. */
function fieldOf(map: unknown, name: string): unknown {
  if (Array.isArray(map)) return map[map.indexOf(name) + 1];
  return (map as Record<string, unknown> | null | undefined)?.[name];
}

function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

function warnUncached(why: string): void {
  warnOnce(CODES.CACHE, `ioredis-coalesce: options.cache is set, but nothing is cached: ${why}`);
}
