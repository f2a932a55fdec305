import type { CommandVariant, FastCommand } from '../commands/fast-commands.js';
import { transformsReply } from '../host/command-class.js';
import { type EntryContext, HostCommandFacade } from '../host/command-facade.js';
import type { QueueItem } from '../host/types.js';
import type { ReplyDecoder } from '../resp/decoder.js';
import { CommandHeads, commandHead, encodeAssumingAscii, encodeExactly, isAscii, type Part } from '../resp/encoder.js';
import { leaveDeadline } from '../util/deadlines.js';
import { keepSettlers, lastReject, lastResolve } from '../util/promises.js';
import { deepCopy, errorFor } from '../util/values.js';

function noop(): void {}

/**
 * A fast entry: the queue's element and its command in one small object, in the host's own `commandQueue`. What the
 * host does with it is in `HostCommandFacade`. A subclass decides how it settles: through one caller's promise, or as
 * one element of a pipeline's result.
 */
export abstract class Entry extends HostCommandFacade {
  /** Further callers of the same command, who settle when this one does. */
  declare followers: Entry[] | undefined;
  /**
   * A feature's record of this read. If the host decoded the reply, `answer` puts a copy of it in `raw`. Always
   * assigned, so that V8 has one hidden class for each kind of entry.
   */
  declare slot: { raw?: unknown } | undefined;
  /** Whether its reply is decoded here although a queue item of the host holds it; see `entryOf`. */
  declare readHere: boolean;

  protected abstract settleValue(value: unknown): void;
  protected abstract settleError(error: unknown): void;

  declare variant: CommandVariant;
  /**
   * The arguments as they were sent, `keyPrefix` applied: an array of strings, numbers and Buffers. A single argument
   * is stored without the array, which saves an eighth of the memory per command in flight.
   */
  declare wireArgs: unknown;

  constructor(variant: CommandVariant, wireArgs: unknown) {
    super();
    this.variant = variant;
    this.wireArgs = wireArgs;
    this.slot = undefined;
  }

  /** Whether it expects the host's raw value, because others have replaced its `resolve`. */
  get takesRaw(): boolean {
    return false;
  }

  /**
   * Handles an error reply: a predicted read settles, fused calls are sent again one by one. Ordinary entries have no
   * such method.
   *
   * @returns whether it did; then the host neither sees the error nor calls `reconnectOnError`.
   */
  handlesError?(message: string): boolean;

  /** Decodes its reply at `position`; see `ReplyDecoder#decode`. */
  decode(decoder: ReplyDecoder, bytes: Buffer, position: number, raw: boolean): unknown {
    const { command, encoding } = this.variant;
    return decoder.decode(bytes, position, encoding === 'utf8' && !raw, command.paired && !raw);
  }

  /** @param value - decoded and transformed. */
  fulfil(value: unknown): void {
    this.settleValue(value);
    if (this.deadline !== undefined) leaveDeadline(this);
  }

  /**
   * Settles it and its followers with a reply: `decoded` here, or `raw` as the host's decoder gives it, with Buffers
   * for strings. Every caller gets its own value, Buffers included.
   */
  answer(reply: unknown, form: 'decoded' | 'raw'): void {
    const { variant, slot } = this;
    const followers = this.followers && takeFollowers(this);
    if (slot !== undefined && form === 'raw') slot.raw = deepCopy(reply);
    // Made first: a transformer may change its argument.
    const copies = followers?.map(() => deepCopy(reply));
    try {
      if (form === 'raw') this.fulfil(this.transformed(variant.encoding, reply));
      else if (!transformsReply(this.context.commandClass, variant.command.name)) this.fulfil(reply);
      else this.fulfil(this.transformed(null, reply));
    } catch (error) {
      this.failAlone(error);
    }
    if (followers !== undefined) for (const [index, each] of followers.entries()) each.answer(copies?.[index], form);
  }

  fail(error: unknown): void {
    this.failAlone(error);
    for (const follower of takeFollowers(this)) follower.fail(errorFor(follower, error));
  }

  /** Followers with deadlines of their own still await the reply. */
  override timedOut(error: Error): void {
    const own = this.followers?.filter(({ deadline }) => deadline !== undefined);
    this.followers = this.followers?.filter(({ deadline }) => deadline === undefined);
    try {
      super.timedOut(error);
    } finally {
      this.followers = own;
    }
  }

  /** Rejects this caller only: its value could not be made, but each follower has its own value. */
  failAlone(error: unknown): void {
    this.settleError(error);
    if (this.deadline !== undefined) leaveDeadline(this);
  }

  /** The command as exact RESP, encoded again from its arguments. */
  encode(): Part[] {
    const args = this.arguments();
    const parts = encodeExactly(commandHead(this.variant.command.name, args.length), args);
    if (parts === undefined) throw new TypeError(`${this.name}: an argument can no longer be encoded`);
    return parts;
  }

  /** The command as RESP, on the assumption that text is ASCII; see `encodeAssumingAscii` in `resp/encoder.ts`. */
  encodeAssumingAscii(): string | Part[] {
    const args = this.ownArguments();
    const { heads } = this.variant;
    return (heads && encodeAssumingAscii(heads.for(args.length), args)) ?? this.encode();
  }

  /** The command's exact parts. `encoded` is text that was assumed to be ASCII, or exact already. */
  exactParts(encoded: string | readonly Part[]): readonly Part[] {
    if (typeof encoded !== 'string') return encoded;
    return isAscii(encoded) ? [encoded] : this.encode();
  }

  /** The arguments of the call, without those that a script has before them. */
  protected ownArguments(): readonly unknown[] {
    return Array.isArray(this.wireArgs) ? this.wireArgs : [this.wireArgs];
  }

  protected arguments(): readonly unknown[] {
    const own = this.ownArguments();
    const { script } = this.variant;
    return script === undefined ? own : [...script.leading, ...own];
  }
}

Entry.prototype.readHere = false;

/** The entry in an element of the host's queue, if its reply is decoded here. */
export function entryOf(item: QueueItem | undefined): Entry | undefined {
  if (item instanceof Entry) return item;
  const command = item?.command;
  return command instanceof Entry && command.readHere ? command : undefined;
}

/** Removes the followers of an entry that settles. A second call returns none: a reply may follow a timeout. */
export function takeFollowers(entry: Entry): readonly Entry[] {
  const { followers } = entry;
  if (followers === undefined) return [];
  entry.followers = undefined;
  return followers;
}

/** The entry of a single call, which has its own promise. */
export class CallEntry extends Entry {
  declare readonly context: EntryContext;
  declare readonly select: number;
  declare promise: Promise<unknown>;
  declare protected readonly settleValue: (value: unknown) => void;
  declare protected readonly settleError: (error: unknown) => void;

  /** @param sent - the arguments as they are encoded, `keyPrefix` applied. */
  constructor(variant: CommandVariant, context: EntryContext, sent: readonly unknown[], select: number) {
    super(variant, sent.length === 1 ? sent[0] : sent);
    this.context = context;
    this.select = select;
    const promise = new Promise<unknown>(keepSettlers);
    // Read at once: V8 runs async hooks before the executor, and those of the next promise may send a command.
    this.settleValue = lastResolve;
    this.settleError = lastReject;
    // Ordering: callers settle in the order of their replies, on the fast path or not.
    this.promise = context.settlesInFinally ? promise.finally(noop) : promise;
  }
}

/** The variant of a command that has no script. */
export function variantOf(command: FastCommand, encoding: 'utf8' | null): CommandVariant {
  const heads = new CommandHeads((count) => commandHead(command.name, count));
  return { command, encoding, heads, script: undefined };
}
