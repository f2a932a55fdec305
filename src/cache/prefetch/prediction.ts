import { performance } from 'node:perf_hooks';
import type { FastCommand } from '../../commands/fast-commands.js';
import { words } from '../../commands/fast-commands.js';
import { type Entry, errorFor, takeFollowers } from '../../core/entry.js';
import type { EntryContext } from '../../host/command-facade.js';
import { InternalEntry } from '../../reads/internal-entry.js';
import { copyOfText, keyName, readArguments } from '../../reads/names.js';
import { now } from '../../util/clock.js';
import { SETTLED } from '../../util/deadlines.js';
import { deepCopy } from '../../util/values.js';
import { elementsOf, type Form, Forms, type Identity, type Pair, type Sequel } from './forms.js';

const SECOND_MS = 1_000;
/** Reads that may be predicted in a second beyond those that callers issue in it, if they have issued more before. */
const CARRIED_OVER = 64;
/** The share of a second with a busy loop, beyond which nothing is predicted: callers wait for it, not for replies. */
const MOST_UTILIZATION = 2 / 3;

const LISTS = new Set(
  words('smembers lrange zrange zrevrange zrangebyscore zrevrangebyscore hkeys hvals hgetall hmget'),
);

interface Predicting {
  predict(foreseen: Foreseen, key: string, time: number): boolean;
}

/**
 * Asks for what is likely to be read next, for one client, or for the nodes of a Cluster together. At rest while the
 * loop is busy, and without credit (here); where the server is near, or has no room (`ReadCache`); for pairs that were
 * of no use, and where nothing follows anything (`Forms`).
 */
export class Predictor {
  readonly forms = new Forms();
  /** Reads that may be predicted: as many as callers have issued. */
  #credit = 0;
  #second = { since: 0, reads: 0, loop: performance.eventLoopUtilization() };
  #isBusy = false;

  constructor(
    /** The cache of the connection on which this key is read; undefined if it is not ready. */
    readonly cacheFor: (command: FastCommand, key: string) => Predicting | undefined,
  ) {}

  /**
   * A caller has issued a read.
   *
   * @param wireArgs - its arguments; a single one is not in an array.
   * @param prediction - that has asked for the same.
   */
  read({ variant, wireArgs }: Pick<Entry, 'variant' | 'wireArgs'>, prediction: PredictedEntry | undefined): void {
    const time = now();
    const second = this.#second;
    if (time - second.since >= SECOND_MS) {
      this.#credit = Math.min(this.#credit, Math.max(second.reads, CARRIED_OVER));
      const loop = performance.eventLoopUtilization();
      this.#isBusy = performance.eventLoopUtilization(loop, second.loop).utilization > MOST_UTILIZATION;
      this.#second = { since: time, reads: 0, loop };
    }
    this.#second.reads += 1;
    this.#credit += 1;
    if (this.#isBusy) return;
    if (prediction !== undefined) {
      const { pair, identity, sequel } = prediction.foreseen;
      this.forms.note(pair.form, identity, time);
      this.#askFor(pair.form.followers, identity, time, sequel.predicted);
      return;
    }
    const key = keyName(Array.isArray(wireArgs) ? wireArgs[0] : wireArgs);
    const text = readArguments(wireArgs);
    if (key === undefined || text === undefined) return;
    const followers = this.forms.read(variant, key, text, wireArgs, time)?.followers;
    const { parts, hash } = this.forms.identity;
    // Predictions outlive the key, which they are cut out of.
    if (followers?.predicted.length) this.#askFor(followers, { parts: parts.map(copyOfText), hash }, time);
  }

  /** A caller has got this reply. */
  got({ variant, wireArgs }: Pick<Entry, 'variant' | 'wireArgs'>, reply: unknown, time: number): void {
    if (this.#isBusy || !LISTS.has(variant.command.name)) return;
    const key = keyName(Array.isArray(wireArgs) ? wireArgs[0] : wireArgs);
    const text = readArguments(wireArgs);
    if (key === undefined || text === undefined) return;
    const elements = elementsOf(reply, variant.command.paired || /withscores/i.test(text));
    const list = this.forms.listed(variant, key, text, wireArgs, elements, time);
    if (list === undefined) return;
    for (const identity of list.identities) this.#askFor(list.form.elements, identity, time);
  }

  /** @param asked - those that were asked for with the read itself, if it was predicted. */
  #askFor(sequel: Sequel, identity: Identity, time: number, asked: readonly Pair[] = NONE): void {
    for (const pair of sequel.predicted) {
      if (this.#credit < 1) return;
      if (asked.some(({ form }) => form === pair.form)) continue;
      const key = pair.form.keyOf(identity);
      const cache = this.cacheFor(pair.form.variant.command, key);
      if (cache?.predict({ pair, identity, sequel }, key, time)) this.#credit -= 1;
    }
  }
}

const NONE: readonly Pair[] = [];

/** What made a read be asked for before anybody wanted its answer. */
export interface Prediction {
  /** Milliseconds of `now()` until which its answer may be used, once. */
  readonly until: number;
  isUsed: boolean;
  /** Nobody has wanted its answer, or it was another one's. */
  unused(): void;
}

/** A read that is likely to be issued: why, of what identity, and with what else. */
export interface Foreseen {
  readonly pair: Pair;
  readonly identity: Identity;
  readonly sequel: Sequel;
}

/** A read that nobody has issued. Callers who do so while it is on its way follow it. */
export class PredictedEntry extends InternalEntry implements Prediction {
  isUsed = false;
  #hasOutcome = false;
  /** None: its followers have deadlines of their own. */
  override deadline: Entry['deadline'] = SETTLED;

  /** @param refused - called when the server has answered with an error, with those who wait for the answer. */
  constructor(
    readonly foreseen: Foreseen,
    key: string,
    context: EntryContext,
    readonly until: number,
    readonly refused: (form: Form, message: string, followers: readonly Entry[]) => void,
  ) {
    const { variant, args } = foreseen.pair.form;
    super(variant, args.length === 0 ? key : [key, ...args], context, () => {});
  }

  used(): void {
    if (!this.#hasOutcome) this.foreseen.pair.used += 1;
    this.#hasOutcome = true;
    this.isUsed = true;
  }

  unused(): void {
    if (!this.#hasOutcome) this.foreseen.pair.unused += 1;
    this.#hasOutcome = true;
  }

  override answer(reply: unknown, form: 'decoded' | 'raw'): void {
    if (this.slot !== undefined && form === 'raw') this.slot.raw = deepCopy(reply);
    for (const follower of takeFollowers(this)) follower.answer(deepCopy(reply), form);
  }

  /** The error is nobody's: those who follow are sent themselves. */
  override handlesError(message: string): boolean {
    this.refused(this.foreseen.pair.form, message, takeFollowers(this));
    return true;
  }

  /** What is no reply, such as a lost connection, each follower meets as a command of its own would. */
  protected override rejected(error: Error): void {
    if (error.name === 'ReplyError') this.refused(this.foreseen.pair.form, error.message, takeFollowers(this));
    for (const follower of takeFollowers(this)) follower.reject(errorFor(follower, error) as Error);
  }
}
