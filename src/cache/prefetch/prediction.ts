import { performance } from 'node:perf_hooks';
import type { FastCommand } from '../../commands/fast-commands.js';
import { words } from '../../commands/fast-commands.js';
import { type Entry, takeFollowers } from '../../core/entry.js';
import type { EntryContext } from '../../host/command-facade.js';
import { InternalEntry } from '../../reads/internal-entry.js';
import { copyOfText, keyName, readArguments } from '../../reads/names.js';
import { now } from '../../util/clock.js';
import { SETTLED } from '../../util/deadlines.js';
import { deepCopy, errorFor } from '../../util/values.js';
import { elementsOf, type Identity, type KeyPattern, KeyPatterns, type Successor } from './key-patterns.js';

type Successors = KeyPattern['successors'];
const SECOND_MS = 1_000;
/** The lowest limit on the credit carried over to the next second. */
const MIN_CARRIED_OVER = 64;
/** Above this utilization of the event loop, nothing is predicted: callers wait for the loop, not for replies. */
const MAX_UTILIZATION = 2 / 3;

const LISTS = new Set(
  words('smembers lrange zrange zrevrange zrangebyscore zrevrangebyscore hkeys hvals hgetall hmget'),
);

interface Predicting {
  predict(origin: PredictionOrigin, key: string, time: number): boolean;
}

/**
 * Sends reads that are likely to be issued next, for one client or for all nodes of a Cluster. Disabled here while the
 * event loop is busy, and without credit; by `ReadCache` for nearby servers, and at high load; by `KeyPatterns` for
 * useless successors, and if no reads follow each other.
 */
export class Predictor {
  readonly patterns = new KeyPatterns();
  /** The number of reads that may be predicted: as many as callers have issued. */
  #credit = 0;
  #second = { since: 0, reads: 0, loop: performance.eventLoopUtilization() };
  #isBusy = false;

  constructor(
    /** The cache of the connection that serves this key; undefined if the connection is not ready. */
    readonly cacheFor: (command: FastCommand, key: string) => Predicting | undefined,
  ) {}

  /**
   * A caller has issued a read.
   *
   * @param wireArgs - its arguments; a single one is not in an array.
   * @param prediction - a prediction of the same read.
   */
  read({ variant, wireArgs }: Pick<Entry, 'variant' | 'wireArgs'>, prediction: PredictedEntry | undefined): void {
    const time = now();
    const second = this.#second;
    if (time - second.since >= SECOND_MS) {
      this.#credit = Math.min(this.#credit, Math.max(second.reads, MIN_CARRIED_OVER));
      const loop = performance.eventLoopUtilization();
      this.#isBusy = performance.eventLoopUtilization(loop, second.loop).utilization > MAX_UTILIZATION;
      this.#second = { since: time, reads: 0, loop };
    }
    this.#second.reads += 1;
    this.#credit += 1;
    if (this.#isBusy) return;
    if (prediction !== undefined) {
      const { successor, identity, successors } = prediction.origin;
      this.patterns.note(successor.pattern, identity, time);
      this.#predict(successor.pattern.successors, identity, time, successors.predicted);
      return;
    }
    const key = keyName(Array.isArray(wireArgs) ? wireArgs[0] : wireArgs);
    const text = readArguments(wireArgs);
    if (key === undefined || text === undefined) return;
    const successors = this.patterns.read(variant, key, text, wireArgs, time)?.successors;
    const { parts, hash } = this.patterns.identity;
    // Copied, because predictions outlive the key and would keep it in memory.
    if (successors?.predicted.length) this.#predict(successors, { parts: parts.map(copyOfText), hash }, time);
  }

  /** A caller has received this reply. */
  onReply({ variant, wireArgs }: Pick<Entry, 'variant' | 'wireArgs'>, reply: unknown, time: number): void {
    if (this.#isBusy || !LISTS.has(variant.command.name)) return;
    const key = keyName(Array.isArray(wireArgs) ? wireArgs[0] : wireArgs);
    const text = readArguments(wireArgs);
    if (key === undefined || text === undefined) return;
    const elements = elementsOf(reply, variant.command.paired || /withscores/i.test(text));
    const list = this.patterns.listed(variant, key, text, wireArgs, elements, time);
    if (list === undefined) return;
    for (const identity of list.identities) this.#predict(list.pattern.elements, identity, time);
  }

  /** @param asked - successors already predicted together with the read itself. */
  #predict(successors: Successors, identity: Identity, time: number, asked: readonly Successor[] = NONE): void {
    for (const successor of successors.predicted) {
      if (this.#credit < 1) return;
      if (asked.some(({ pattern }) => pattern === successor.pattern)) continue;
      const key = successor.pattern.keyOf(identity);
      const cache = this.cacheFor(successor.pattern.variant.command, key);
      if (cache?.predict({ successor, identity, successors }, key, time)) this.#credit -= 1;
    }
  }
}

const NONE: readonly Successor[] = [];

/** Why a read is predicted: the successor, its identity, and the other successors. */
export interface PredictionOrigin {
  readonly successor: Successor;
  readonly identity: Identity;
  readonly successors: Successors;
}

/** A read that was sent before any caller issued it. Callers that do so while it is in flight become its followers. */
export class PredictedEntry extends InternalEntry {
  isUsed = false;
  /** Whether a command issued since may block its followers, or change what they would get, if they were sent now. */
  isOutdated = false;
  #hasOutcome = false;
  /** No deadline: its followers have their own. */
  override deadline: Entry['deadline'] = SETTLED;

  /** @param refused - called with an error reply and the followers, which have no answer. */
  constructor(
    readonly origin: PredictionOrigin,
    key: string,
    context: EntryContext,
    /** Its answer may be used once, before this time of `now()`. */
    readonly until: number,
    readonly refused: (pattern: KeyPattern, message: string, followers: readonly Entry[]) => void,
  ) {
    const { variant, args } = origin.successor.pattern;
    super(variant, args.length === 0 ? key : [key, ...args], context, () => {});
  }

  /** A caller has used its answer. */
  used(): void {
    if (!this.#hasOutcome) this.origin.successor.used += 1;
    this.#hasOutcome = true;
    this.isUsed = true;
  }

  /** No caller has used its answer. */
  unused(): void {
    if (!this.#hasOutcome) this.origin.successor.unused += 1;
    this.#hasOutcome = true;
  }

  override answer(reply: unknown, form: 'decoded' | 'raw'): void {
    if (this.slot !== undefined && form === 'raw') this.slot.raw = deepCopy(reply);
    for (const follower of takeFollowers(this)) follower.answer(deepCopy(reply), form);
  }

  /** No caller gets the error: the followers are sent instead. They would be too late if it is outdated. */
  override handlesError(message: string): boolean {
    if (this.isOutdated && this.followers !== undefined) return false;
    this.refused(this.origin.successor.pattern, message, takeFollowers(this));
    return true;
  }

  /** Rejects each follower with an error that is not a reply, or that is outdated, as if it had been sent. */
  protected override rejected(error: Error): void {
    if (error.name === 'ReplyError' && !this.isOutdated)
      this.refused(this.origin.successor.pattern, error.message, takeFollowers(this));
    for (const follower of takeFollowers(this)) follower.reject(errorFor(follower, error) as Error);
  }
}
