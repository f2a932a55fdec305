/**
 * The interfaces by which features plug into the core. `attach/` creates the features; where one is absent, a call
 * costs one comparison. The core passes their values on without inspecting them.
 */
import type { Arguments, Effect } from '../commands/effects.js';
import type { CommandVariant } from '../commands/fast-commands.js';
import type { EntryContext } from '../host/command-facade.js';
import type { HostCommand, HostWrite } from '../host/types.js';
import type { CallOptions } from '../options.js';
import type { CallEntry, Entry } from './entry.js';

/** The options of one call, and what they change. */
export interface Call extends CallOptions {
  /** Whether others observe the command: then it is not fused with other reads. */
  readonly unfused?: boolean;
  /** Makes the call's entry, where an ordinary one is not enough. */
  newEntry?(variant: CommandVariant, context: EntryContext, sent: readonly unknown[], select: number): CallEntry;
  /** The entry was sent, or waits for a reply that a feature has. */
  sent?(entry: CallEntry): void;
}

/** A reply to a read that a feature already has. */
export type Answer = object;

/** Features that send reads differently, or answer them. They see every command in wire order. */
export interface Reads {
  /** Follows incoming bytes; undefined if no feature needs them. */
  readonly incoming: Incoming | undefined;
  /** Whether calls of this turn wait for a reply that a feature has. */
  readonly waits: boolean;
  /** Looks for a reply before a call is admitted. A read that has one goes to `send` at once. */
  lookUp(variant: CommandVariant, args: readonly unknown[], call: Call | undefined): Answer | undefined;
  /**
   * Enqueues the entry (`Outgoing#enqueue`), or settles it with a reply that a feature has or awaits. A read that
   * waited in vain is enqueued later; if the fast path is not available then, the host sends it.
   */
  send(entry: CallEntry, args: readonly unknown[], call: Call | undefined, answer: Answer | undefined): void;
  /** These commands are about to be queued in one step. */
  sendsTogether(commands: readonly HostCommand[]): void;
  /** The host is about to write this: a single command, which it has not queued yet, or a pipeline. */
  hostWrites(data: HostWrite['data'], isSingle: boolean): void;
  /** A command in the host's write. */
  hostSends(effect: Effect, args: Arguments): void;
  /** The host writes bytes that are not commands. */
  hostSendsUnknown(): void;
  /** The batch is sent, or a command that may change keys follows: later reads must not join earlier ones. */
  endRun(): void;
  /** The server was told to omit replies. */
  repliesOff(): void;
}

/** The part of `Reads` that follows the incoming bytes of a connection. It may end before the connection. */
export interface Incoming {
  started(): void;
  /** A chunk has arrived; nothing of it has been read. */
  chunkCame(): void;
  /** Whether it holds the beginning of an incomplete push. */
  readonly holdsPush: boolean;
  /**
   * Reads the push at `position`, or the rest of the one that it holds, and returns its end. -1 if the host must get
   * the push: then the caller forwards the bytes of `release()` first.
   */
  push(chunk: Buffer, position: number): number;
  /** Gives back the beginning of a push that it holds. */
  release(): Buffer | undefined;
  /** The head of the queue is answered with an error, of which these are the first characters. */
  failed(head: HostCommand, error: string): void;
  /** The head of the queue has its reply. `value` is undefined if the host has decoded it. */
  answered(entry: Entry | undefined, value: unknown): void;
  /** Settles the calls whose replies it has. User code runs, so no state may be inconsistent. */
  deliver(): void;
  /** Replies are no longer read here. `staysOpen`: after `detach()`, the host continues with the connection. */
  ended(staysOpen?: boolean): void;
}

/** Rejects calls while too many commands await their reply. */
export interface Admission {
  /** The error of a call of so many commands; undefined if it may be sent. */
  refusalOf(commands: number): Error | undefined;
  /** If a command that the host is about to send may not be sent, rejects it and returns true. */
  refuses(command: HostCommand, stream: unknown): boolean;
  /** Removes the calls beyond the bound, and returns them. `refusalOf` has counted them as one; this adds the rest. */
  refuseBeyond<Call>(calls: Call[]): Call[];
}
