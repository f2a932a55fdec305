import Denque from 'denque';
import type { HostQueue, HostWrite } from '../host/types.js';
import { appendParts, type Part, toBytes } from '../resp/encoder.js';
import type { InFlightBound } from '../util/in-flight-bound.js';
import { exiting } from '../util/process-exit.js';
import type { Batch } from './batch.js';

/** One element of the backlog: bytes of fast commands, or one write of the host's. It is sent as a whole. */
interface Held {
  commands: number;
  /** The fast ones among them. */
  fast: number;
  bytes: number;
  readonly content: Part[] | HostWrite;
  /** Whether a transaction was open when it was issued. */
  readonly inTransaction: boolean;
}

/**
 * Limits the unanswered commands on the wire, to `maxInFlight`, or to less for a while after a connection was lost
 * (`InFlightBound`). Holds the backlog: the commands that wait.
 *
 * Invariant 10: commands in the backlog are in the host's queue. An entry is queued at once and only its bytes are held
 * in the backlog, in order. So everything that the host does with queued commands, it does with these too.
 */
export class InFlightGate {
  /** Commands whose bytes are in the backlog. */
  waiting = 0;
  readonly #backlog = new Denque<Held>();
  #inFlightAtRelease = 0;
  #isLifted = false;

  constructor(
    readonly limits: { readonly maxBatchSize: number; readonly maxBatchBytes: number },
    readonly inFlightBound: InFlightBound,
    readonly client: { readonly commandQueue: HostQueue },
  ) {}

  /** The most fast commands in one item of the backlog: few enough to leave soon, enough to be worth a write. */
  get #commandsPerItem(): number {
    return Math.max(1, Math.min(this.limits.maxBatchSize, this.inFlightBound.current >> 3));
  }

  /** Queued commands whose bytes are not in the backlog: they are in the batch, or were sent. */
  get inFlight(): number {
    return this.client.commandQueue.length - this.waiting;
  }

  /**
   * Whether the bytes of `commands` more commands must wait. Ordering: behind a backlog, every command waits. Without
   * one, these do not: commands of an open transaction, a pipeline larger than the limit if nothing else is in flight,
   * and any command once the limit is lifted or the process exits.
   *
   * @param inQueue - how many of them are queued already.
   */
  mustWait(commands: number, inTransaction: boolean, inQueue = 0): boolean {
    if (this.waiting > 0) return true;
    const queued = this.client.commandQueue.length - inQueue;
    if (queued + commands <= this.inFlightBound.current) return false;
    return queued > 0 && !inTransaction && !this.#isLifted && !exiting;
  }

  /**
   * Lifts the limit for the rest of the connection: the length of the queue no longer says how many replies will come
   * (after `CLIENT REPLY`, or where layers delay commands).
   */
  lift(batch: Batch): void {
    this.#isLifted = true;
    this.drain(batch);
  }

  /** @param encoded - one command, in exact parts: text in the backlog is not checked again. */
  holdFast(encoded: readonly Part[], inTransaction: boolean): void {
    const { maxBatchBytes } = this.limits;
    const mostCommands = this.#commandsPerItem;
    this.waiting += 1;
    let last = this.#backlog.peekBack();
    if (
      last === undefined ||
      !Array.isArray(last.content) ||
      last.commands >= mostCommands ||
      last.bytes >= maxBatchBytes
    ) {
      last = { commands: 0, fast: 0, bytes: 0, content: [], inTransaction };
      this.#backlog.push(last);
    }
    last.commands += 1;
    last.fast += 1;
    for (const part of encoded) last.bytes += part.length;
    const parts = last.content as Part[];
    appendParts(parts, encoded);
    if (last.commands < mostCommands && last.bytes < maxBatchBytes) return;
    // Joined text is a tree of its pieces until it is written; a million commands must not be kept as trees.
    for (const [index, part] of parts.entries()) parts[index] = toBytes(part);
  }

  /** Holds back what the host writes, or a pipeline, as one element: nothing joins it. */
  hold(content: Held['content'], commands: number, fast: number, inTransaction: boolean): void {
    this.waiting += commands;
    this.#backlog.push({ commands, fast, bytes: Number.POSITIVE_INFINITY, content, inTransaction });
  }

  /** Replies have come, and there is a backlog: hands the batch the part of it that has room now, and flushes it. */
  release(batch: Batch): void {
    this.inFlightBound.repliesCame(Math.max(0, this.#inFlightAtRelease - this.inFlight));
    while (this.#next(batch, this.inFlightBound.current - this.inFlight, this.inFlight <= 0));
    this.#inFlightAtRelease = this.inFlight;
    batch.flush('capacity');
  }

  /** Hands the batch the whole backlog, without the limit: the stream or the process ends, or no replies come. */
  drain(batch: Batch): void {
    // Ordering: the caller has asked `mayWrite`. Otherwise `addHost` would, which may drain within this.
    while (this.#next(batch, Number.POSITIVE_INFINITY, true));
  }

  /** Hands the batch the next item of the backlog, if it fits, continues a transaction or `force` is set. */
  #next(batch: Batch, capacity: number, force: boolean): boolean {
    const first = this.#backlog.peekFront();
    if (first === undefined || !(force || first.inTransaction || first.commands <= capacity)) return false;
    this.#backlog.shift();
    this.waiting -= first.commands;
    const { content } = first;
    if (Array.isArray(content)) batch.addExact(content, first.commands, first.fast);
    else batch.addHost(content, first.commands);
    return true;
  }
}
