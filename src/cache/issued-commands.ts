import Denque from 'denque';
import { type Arguments, type Effect, type KeyedEffect, keysOf, scriptKeys } from '../commands/effects.js';
import type { Outgoing } from '../core/outgoing.js';
import { CODES, warnOnce } from '../errors.js';
import { now } from '../util/clock.js';
import type { CacheStore } from './store.js';

/** A key that the reply to a read in flight will show; that answer is not kept. */
interface Shown {
  readonly position: number;
  readonly name: string;
}

const NEVER = -1;
const SCRIPT_OF_KEYS: KeyedEffect = { changes: true, range: scriptKeys };

/**
 * The commands in flight on one connection that make cached answers unusable. A command's position is the number of
 * commands queued before it.
 *
 *     position    0   1   2   3   4   5
 *     queue      [get a][set b][get b][eval][get c]      `replies.all` of them have left it
 *
 * Invariant 12: a read is answered from memory only if no command that this client issued before it could have changed
 * the answer. After a command with unknown keys, no answer is used until all pushes that it may have caused have
 * arrived. RESP: they arrive before the next reply (Redis 7, `afterCommand`).
 *
 * With BCAST, Redis sends them at the end of its turn. So they have arrived once a command issued after the reply is
 * answered; a reply may show a change before its push arrives.
 */
export class IssuedCommands {
  /** Keys that replies will show, by position; like `#anything` and `#awaited`, used only with BCAST. */
  readonly #shown = new Denque<Shown>();
  /** The position of the last command in flight that may have changed, or show, any key. */
  #anything = NEVER;
  /** The position of the next command whose reply changes these fields. */
  #awaited = Number.POSITIVE_INFINITY;
  /** See `holdUntil`. */
  #heldUntil = NEVER;

  /** The position of the last MULTI. An EXEC at the same position was sent together with it. */
  #multiAt = NEVER;
  readonly #heldWarning = new HeldAnswersWarning();

  constructor(
    readonly connection: Pick<Outgoing, 'replies' | 'transaction' | 'stats'>,
    readonly store: CacheStore,
    /** Whether pushes are sent at the end of the server's turn (BCAST). */
    readonly usesBroadcast: boolean,
    readonly scripts: 'anything' | 'keys',
  ) {}

  /** Whether no command with unknown keys makes answers unusable. */
  get settled(): boolean {
    return this.connection.replies.all > this.#heldUntil;
  }

  /** The effect, if the command's keys are known. */
  keyed(effect: Effect): KeyedEffect | undefined {
    if (typeof effect === 'object') return effect;
    return effect === 'script' && this.scripts === 'keys' ? SCRIPT_OF_KEYS : undefined;
  }

  /** No answer is used until the reply at this position has arrived. */
  holdUntil(position: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, position);
  }

  /** @param position - where the command counts as issued. */
  note(effect: Effect, args: Arguments, position: number): void {
    const { connection, store } = this;
    const keyed = this.keyed(effect);
    if (keyed !== undefined) {
      if (!store.isEmpty) this.#noteKeys(keyed, args, position);
      return;
    }
    switch (effect) {
      case 'shows':
        // Without BCAST, the push of a change arrives before the reply that shows it.
        if (this.usesBroadcast) this.changesAnything(position);
        else this.holdUntil(position);
        break;
      case 'script':
      case 'anything':
        if (effect === 'script') this.#heldWarning.scriptSent(connection.stats.cache);
        this.changesAnything(position);
        break;
      case 'multi':
        // RESP: a nested MULTI is refused, and EXEC ends the outer transaction.
        if (!connection.transaction.open) this.#multiAt = position;
        break;
      case 'exec':
        if (this.#multiAt !== position) this.changesAnything(position);
        break;
      case 'clear':
        store.clear();
        break;
    }
  }

  #noteKeys(effect: KeyedEffect, args: Arguments, position: number): void {
    for (const name of keysOf(effect, args)) {
      const key = this.store.key(name);
      if (key === undefined) continue;
      if (effect.changes) this.store.drop(key);
      else {
        key.hold(position);
        this.noteShown(name, position);
      }
    }
  }

  changesAnything(position: number): void {
    if (!this.usesBroadcast) {
      this.#heldUntil = position + 1;
      return;
    }
    this.#anything = position;
    this.#awaits(position);
    this.#heldUntil = Number.POSITIVE_INFINITY;
  }

  /** The reply at `position` will not be kept, but will show a key that has kept answers. */
  noteShown(name: string, position: number): void {
    if (!this.usesBroadcast) return;
    this.#shown.push({ position, name });
    this.#awaits(position);
  }

  /**
   * A push was handed to user code. It may announce a change whose invalidation is still to come: Redis publishes
   * `expired` and some other events before it invalidates the key.
   *
   * @param next - the position of the next command to be issued.
   */
  pushed(next: number): void {
    this.holdUntil(this.usesBroadcast ? next : this.connection.replies.all);
  }

  #awaits(position: number): void {
    if (position < this.#awaited) this.#awaited = position;
  }

  /** A command has left `queue` with its reply. */
  answer(queue: { readonly length: number }): void {
    const answered = this.connection.replies.all;
    if (answered > this.#awaited) this.#awaitedAnswered(answered, answered + queue.length);
  }

  #awaitedAnswered(answered: number, next: number): void {
    if (answered > this.#anything) {
      if (this.#anything !== NEVER) this.#heldUntil = next;
      this.#anything = NEVER;
    }
    this.#awaited = this.#anything === NEVER ? Number.POSITIVE_INFINITY : this.#anything;
    for (let first = this.#shown.peekFront(); first !== undefined; first = this.#shown.peekFront()) {
      if (first.position >= answered) {
        this.#awaits(first.position);
        return;
      }
      this.#shown.shift();
      this.store.key(first.name)?.hold(next);
    }
  }
}

const MINUTE_MS = 60_000;
/** Answers held back in a minute; below this, traffic is too light to judge. */
const MIN_HELD = 10_000;

/** Warns once per process if scripts have held back more answers in a minute than were given. */
export class HeldAnswersWarning {
  #since = { atMs: Number.NaN, held: 0, hits: 0 };

  /** A script that may change anything was sent. */
  scriptSent({ held, hits }: { held: number; hits: number }, atMs = now()): void {
    const since = this.#since;
    if (atMs - since.atMs < MINUTE_MS) return;
    this.#since = { atMs, held, hits };
    const more = held - since.held;
    if (Number.isNaN(since.atMs) || more < MIN_HELD || more < hits - since.hits) return;
    const cure = "`cache: { scripts: 'keys' }` cures it, or a client of their own";
    warnOnce(
      CODES.CACHE_HELD,
      `ioredis-coalesce: for a minute, scripts have held back most answers of a cache; ${cure}`,
    );
  }
}
