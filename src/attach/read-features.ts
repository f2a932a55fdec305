import type { Predictor } from '../cache/prefetch/prediction.js';
import { ReadCache } from '../cache/read-cache.js';
import type { CachedRead } from '../cache/store.js';
import { isBlocking } from '../calls/blocking-warning.js';
import { CallArguments } from '../commands/call-arguments.js';
import type { Arguments, Effect } from '../commands/effects.js';
import type { CommandVariant } from '../commands/fast-commands.js';
import { type CallEntry, Entry } from '../core/entry.js';
import type { Answer, Call, Reads } from '../core/features.js';
import type { Encoded, Outgoing } from '../core/outgoing.js';
import type { HostCommand, HostWrite, QueueItem } from '../host/types.js';
import type { ResolvedOptions } from '../options.js';
import { FusedReads } from '../reads/fused-reads.js';
import { SharedReads } from '../reads/shared-reads.js';
import { RequestReader } from '../resp/request-reader.js';

/**
 * The read features of one connection, in this order:
 *
 *     cache: from memory ─▶ shared with an identical read ─▶ fused with its neighbour ─▶ `Outgoing#enqueue`
 */
export class ReadFeatures implements Reads {
  readonly incoming: ReadCache | undefined;
  readonly #shared: SharedReads | undefined;
  readonly #fused: FusedReads | undefined;

  constructor(
    readonly outgoing: Outgoing,
    readonly options: ResolvedOptions,
    prefixes: readonly string[] | undefined,
    predictor: Predictor | undefined,
  ) {
    const { cache, shareReads, fuseReads } = options;
    if (cache) this.incoming = new ReadCache(outgoing, cache, prefixes, predictor, (...args) => this.#resend(...args));
    else if (fuseReads) this.#fused = new FusedReads(outgoing);
    if (shareReads || cache) this.#shared = new SharedReads(outgoing.transaction);
  }

  get waits(): boolean {
    return this.incoming?.hasDeferred ?? false;
  }

  /** A call that bypasses the cache is sent without a lookup, but its answer is kept. */
  lookUp(variant: CommandVariant, args: readonly unknown[], call: Call | undefined): Answer | undefined {
    const asks = this.incoming !== undefined && variant.command.cacheable && call?.cache !== false;
    return asks ? this.incoming.lookUp(variant, args) : undefined;
  }

  send(entry: CallEntry, args: readonly unknown[], call: Call | undefined, answer: Answer | undefined): void {
    const { incoming: cache } = this;
    const { batch } = this.outgoing;
    const { variant } = entry;
    if (answer !== undefined) cache?.defer(answer as CachedRead, entry, call);
    else if (!call?.unfused && this.#fused?.accepts(entry)) this.#issue(entry, this.#fused, call);
    else this.#issue(entry, batch.encode(variant, args) ?? entry.encode(), call);
    if (cache !== undefined && variant.command.cacheable && call?.cache !== false)
      cache.issued(variant, args, answer as CachedRead | undefined);
  }

  /** Applies the features to a command's entry, then queues it. */
  #issue(entry: CallEntry, encoded: Encoded, call: Call | undefined): void {
    const { outgoing, incoming: cache } = this;
    const shared = this.#shared;
    const { shareable, cacheable } = entry.variant.command;
    const deadline = outgoing.deadlineOf(entry, call);
    const shares = shareable && (this.options.shareReads || (cacheable && cache?.isPending(entry)));
    let name = shares ? shared?.nameOf(entry, encoded) : undefined;
    if (name !== undefined && shared?.follow(name, entry, deadline)) {
      outgoing.stats.sharedReads += 1;
      return;
    }
    const kept = cache?.sends(entry, call) ?? false;
    // `sends` may have just sent reads that waited, before this command.
    if (!shareable) shared?.close();
    if (kept) name ??= shared?.nameOf(entry, encoded);
    // Before queueing: an in-memory stream may answer during the write, and user code then issue the same read.
    if (name !== undefined) shared?.lead(name, entry);
    try {
      outgoing.enqueue(entry, encoded, deadline);
    } catch (error) {
      // It was not queued, so no read may follow it.
      shared?.close();
      throw error;
    }
    if (kept) cache?.sentKept(entry);
  }

  /** Sends a read whose answer from memory can no longer be used. */
  #resend(entry: CallEntry, call: Call | undefined): void {
    const { outgoing } = this;
    const reason = outgoing.connection.fallbackReason();
    // Subscribers have already seen this command, so `traced` is no obstacle.
    if (reason === undefined || reason === 'traced') this.#issue(entry, entry.encodeAssumingAscii(), call);
    // Host: depending on the state of the connection, it holds the command back or rejects it.
    else outgoing.client.sendCommand(entry);
  }

  sendsTogether(commands: readonly HostCommand[]): void {
    const { incoming: cache } = this;
    if (cache !== undefined) {
      for (const command of commands) {
        // Fast commands do not block.
        if (!(command instanceof Entry)) this.#noteIfBlocking(new CallArguments().of(command.name, command.args));
      }
      cache.sendsPipeline(commands);
    }
    this.#fused?.sendsTogether(commands);
    // Last, because reads that waited are sent before these commands.
    this.#shared?.close();
  }

  /** Ordering: waiting reads go before the pipeline that the host writes next. All but its last entry are queued. */
  hostWrites(data: HostWrite['data'], isSingle: boolean): void {
    const { incoming: cache } = this;
    if (isSingle || !cache?.hasDeferred) return;
    const { commandQueue } = this.outgoing.client;
    const requests = new RequestReader(data, false);
    const later: QueueItem[] = [];
    requests.next();
    while (requests.next()) later.push(commandQueue.pop() as QueueItem);
    cache.decideAll();
    for (const item of later.reverse()) commandQueue.push(item);
  }

  hostSends(effect: Effect, args: Arguments): void {
    this.#noteIfBlocking(args);
    this.incoming?.sendsOther(effect, args);
    this.#fused?.sends(args.text(0), effect);
  }

  /** Ordering: reads that wait, or follow a predicted one, are not sent behind a command that may block them. */
  #noteIfBlocking(args: Arguments): void {
    const { incoming: cache } = this;
    if ((cache?.hasDeferred || cache?.predictor) && mayBlock(args)) cache.sendsBlocking();
  }

  hostSendsUnknown(): void {
    this.incoming?.hostSendsUnknown();
  }

  endRun(): void {
    this.#shared?.close();
  }

  repliesOff(): void {
    this.#shared?.stop();
    this.#fused?.stop();
  }
}

function mayBlock(args: Arguments): boolean {
  const name = args.text(0);
  if (/^client$/i.test(name)) return /^pause$/i.test(args.text(1));
  // The arguments of other commands do not matter, and may be large.
  const rest = /^xread/i.test(name) ? Array.from({ length: args.count - 1 }, (_, at) => args.text(at + 1)) : [];
  return isBlocking({ name, args: rest });
}
