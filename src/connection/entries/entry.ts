import { inspect } from 'node:util';
import calculateSlot from 'cluster-key-slot';
import { type CommandVariant, type FastCommand, UNLISTED } from '../../commands/fast-commands.js';
import { keysOf, transformsReply } from '../../host/command-class.js';
import { replyProtocol, selectedDatabase } from '../../host/state.js';
import type { HostClient, HostCommand, HostCommandClass, QueueItem } from '../../host/types.js';
import {
  CommandHeads,
  commandHead,
  encodeAssumingAscii,
  encodeExactly,
  isAscii,
  type Part,
  toBytes,
} from '../../resp/encoder.js';
import { keepSettlers, lastReject, lastResolve } from '../../util/promises.js';
import { deepCopy } from '../../util/values.js';
import { Deadlines, SETTLED, type Timed } from './deadlines.js';
import type { Abortable, AbortList } from './signals.js';

/** The data that the entries of one connection share. */
export interface EntryContext {
  readonly client: HostClient;
  readonly commandClass: HostCommandClass;
  /** See `settlesLate` in `host/command-class.ts`. */
  readonly settlesLate: boolean;
  /** Lets a Cluster put its redirection in the place of the `reject` of its command; undefined for others. */
  readonly redirect?: (entry: Entry) => void;
}

/** The deadlines of entries on which the host calls `setTimeout`. */
const hostDeadlines = new Deadlines();

/** The index of the first key: after the script, or its hash, and the number of keys. */
const FIRST_KEY_OF_SCRIPT = 2;

/** No caller waits for commands of this package's own. */
const NOBODY = Promise.resolve();

function noop(): void {}

/** An argument as it is in a host's command. */
function asRead(argument: unknown): unknown {
  return typeof argument === 'number' ? String(argument) : argument;
}

/**
 * A fast entry: the queue's element and its command in one small object, in the host's own `commandQueue`. A
 * subclass decides how it settles: through one caller's promise, or as one element of a pipeline's result.
 *
 * Invariant 5: an entry can always be re-sent. The host may resolve or reject it from its own decoder, flush it with an
 * error, keep it over a lost connection and send it again, like any command in its queue. So an entry has every
 * property that the host reads while doing so; rarely used ones are computed on demand.
 */
export abstract class Entry implements QueueItem, HostCommand, Timed {
  /** Further callers of the same read (`shareReads`), who settle when this one does. */
  declare followers: Entry[] | undefined;
  /** The deadline, if there is a timeout; `SETTLED` afterwards, or when the call was aborted. */
  declare deadline: Timed['deadline'];
  /** What a tracer has put in the place of `resolve` and `reject`, and a Cluster's redirection beneath that. */
  declare protected replacedResolve: ((reply: unknown) => void) | undefined;
  declare protected replacedReject: ((error: Error) => void) | undefined;
  declare protected redirected: ((error: Error) => void) | undefined;
  /**
   * What the cache will keep of the reply, as it is or `raw`, from the host. Always there: V8 would otherwise have a
   * class more of each kind of entry.
   */
  slot: { raw?: unknown } | undefined = undefined;

  abstract readonly context: EntryContext;
  /** The database selected when it was sent. */
  abstract readonly select: number;
  abstract readonly promise: Promise<unknown>;
  protected abstract settleValue(value: unknown): void;
  protected abstract settleError(error: unknown): void;

  constructor(
    public variant: CommandVariant,
    /**
     * The arguments as they were sent, `keyPrefix` applied: an array of strings, numbers and Buffers. A single argument
     * is stored without the array, which saves an eighth of the memory per command in flight.
     */
    public wireArgs: unknown,
  ) {}

  get command(): this {
    return this;
  }

  /** The client whose protocol reply transformers ask for. */
  get sender(): Pick<HostClient, 'condition'> {
    return this.context.client;
  }

  /**
   * Deals with an error reply of this text here, if it can: it settles a command that nobody has issued, or sends the
   * calls again by themselves.
   *
   * @returns whether it has: then the host never sees the error, nor asks `reconnectOnError` about it.
   */
  handlesError(_message: string): boolean {
    return false;
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
    const { variant, slot: read } = this;
    const followers = this.followers && takeFollowers(this);
    if (read !== undefined && form === 'raw') read.raw = deepCopy(reply);
    // Made first: a transformer may change its argument.
    const copies = followers?.map(() => deepCopy(reply));
    try {
      if (form === 'raw') this.fulfil(transformReply(this, variant.encoding, reply));
      else if (!transformsReply(this.context.commandClass, variant.command.name)) this.fulfil(reply);
      else this.fulfil(transformReply(this, null, reply));
    } catch (error) {
      this.failAlone(error);
    }
    if (followers !== undefined) for (const [index, each] of followers.entries()) each.answer(copies?.[index], form);
  }

  fail(error: unknown): void {
    this.failAlone(error);
    for (const follower of takeFollowers(this)) follower.fail(errorFor(follower, error));
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

  // ---- Called or read by the host, and by layers when it is sent again ----
  // Host: `pipelineIndex` and `inTransaction` are read when the connection closes (`abortIncompletePipelines`,
  // `abortTransactionFragments`). Neither has to exist.

  /** Host: whether it was written once; then it is not published on the channel of commands, or no more. */
  declare isTraced: boolean;

  get name(): string {
    return this.variant.command.name;
  }

  /** Strings and Buffers, as in a host's command. Read for `error.command` and by tracers. */
  get args(): unknown[] {
    return this.arguments().map(asRead);
  }

  /**
   * Host: its decoder calls `command.resolve(reply)` with Buffers for strings. A getter, since tracers read the
   * function, call it unbound and replace it by their own (OpenTelemetry's ioredis instrumentation).
   */
  get resolve(): (reply: unknown) => void {
    return this.replacedResolve ?? ((reply) => this.answer(reply, 'raw'));
  }

  set resolve(replacement: (reply: unknown) => void) {
    this.replacedResolve = replacement;
  }

  get reject(): (error: Error) => void {
    return this.replacedReject ?? ((error) => this.rejected(error));
  }

  set reject(replacement: (error: Error) => void) {
    this.replacedReject = replacement;
  }

  /** Fails, or lets the Cluster redirect it: what `reject` does unless it was replaced. */
  protected rejected(error: Error): void {
    const { replacedReject, redirected, variant } = this;
    const { client, redirect } = this.context;
    if (redirected === undefined && client.stream !== undefined) variant.script?.rejected(client.stream, error);
    if (redirected === undefined && redirect !== undefined) {
      this.reject = (final) => this.fail(final);
      redirect(this);
      this.redirected = this.reject;
      this.replacedReject = replacedReject;
    }
    if (this.redirected === undefined) this.fail(error);
    else this.redirected(error);
  }

  /** Rejects the caller, whose time is over. */
  timedOut(error: Error): void {
    this.fail(error);
  }

  /** Host: `sendCommand` writes this when it sends a command again. */
  toWritable(stream: object): string | Buffer {
    const { script } = this.variant;
    if (script !== undefined) {
      this.variant = script.formOn(stream);
      const { reject } = this;
      this.reject = (error) => {
        script.rejected(stream, error);
        reject(error);
      };
    }
    const parts = this.encode();
    return parts.length === 1 ? toBytes(parts[0] as Part) : Buffer.concat(parts.map(toBytes));
  }

  /** Host: `sendCommand` starts `commandTimeout` here, unless it is running. */
  setTimeout(ms: number): void {
    if (this.deadline === undefined) hostDeadlines.for(ms)?.add(this);
  }

  /** Host: ioredis 6 tells a command the protocol it is sent under. An entry asks its connection's context. */
  setReplyContext(_condition: NonNullable<HostClient['condition']>): void {}

  /** Host: the encoding of text in its reply. */
  get replyEncoding(): 'utf8' | null {
    return this.variant.encoding;
  }

  getKeys(): readonly unknown[] {
    return keysOf(this.context.commandClass, this.name, this.args);
  }

  transformReply(reply: unknown): unknown {
    return transformReply(this, this.replyEncoding, reply);
  }

  /** Host: read by a Cluster that sends a command. The slot of the first key, a fast command's first argument. */
  getSlot(): number {
    return calculateSlot(this.args[this.variant.script === undefined ? 0 : FIRST_KEY_OF_SCRIPT] as string | Buffer);
  }

  /** Host: read by a Cluster that sends the command of a script; it knows other commands by their names. */
  get isReadOnly(): boolean {
    return this.variant.command.readOnly;
  }

  /** Shows what the host's commands show: a log of the client may hold it, whose `context` leads back to the client. */
  toJSON(): object {
    const { name, replyEncoding, args, select } = this;
    return { name, replyEncoding, args, select };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }

  /** The arguments of the call, without what a script has before them. */
  protected ownArguments(): readonly unknown[] {
    return Array.isArray(this.wireArgs) ? this.wireArgs : [this.wireArgs];
  }

  protected arguments(): readonly unknown[] {
    const own = this.ownArguments();
    const { script } = this.variant;
    return script === undefined ? own : [...script.leading, ...own];
  }
}

Entry.prototype.isTraced = true;

/** Not a private method: V8 would mark each entry as one that has it. */
function leaveDeadline(entry: Entry): void {
  const { deadline } = entry;
  entry.deadline = SETTLED;
  deadline?.settled();
}

/** The followers of an entry that settles: once, also if a reply comes after a timeout. */
export function takeFollowers(entry: Entry): readonly Entry[] {
  const { followers } = entry;
  if (followers === undefined) return [];
  entry.followers = undefined;
  return followers;
}

/** The entry of a single call, which has its own promise. */
export class CallEntry extends Entry {
  declare promise: Promise<unknown>;
  declare protected readonly settleValue: (value: unknown) => void;
  declare protected readonly settleError: (error: unknown) => void;

  /** @param sent - the arguments as they are encoded, `keyPrefix` applied. */
  constructor(
    variant: CommandVariant,
    readonly context: EntryContext,
    sent: readonly unknown[],
    readonly select: number,
  ) {
    super(variant, sent.length === 1 ? sent[0] : sent);
    const promise = new Promise<unknown>(keepSettlers);
    // Set by `keepSettlers` in the line above. Read at once: another promise runs the hooks of tracers, which may send.
    this.settleValue = lastResolve;
    this.settleError = lastReject;
    // Ordering: callers settle in the order of their replies, on the fast path or not.
    this.promise = context.settlesLate ? promise.finally(noop) : promise;
  }
}

/** The entry of a single call that a signal can abort. */
export class AbortableEntry extends CallEntry implements Abortable {
  place = -1;

  constructor(
    variant: CommandVariant,
    context: EntryContext,
    sent: readonly unknown[],
    select: number,
    readonly abortList: AbortList,
  ) {
    super(variant, context, sent, select);
  }

  override fulfil(value: unknown): void {
    this.abortList.delete(this);
    super.fulfil(value);
  }

  override failAlone(error: unknown): void {
    this.abortList.delete(this);
    super.failAlone(error);
  }

  /** Rejects its caller. The entry stays queued and is sent: the next caller must not get its reply (invariant 3). */
  abort(reason: unknown): void {
    if (this.followers !== undefined) {
      // The followers still wait for its reply, under its deadline.
      this.settleError(reason);
      return;
    }
    this.failAlone(reason);
    this.deadline = SETTLED;
  }
}

/** A fast command as entries have it. */
export function variantOf(command: FastCommand, encoding: 'utf8' | null): CommandVariant {
  const heads = new CommandHeads((count) => commandHead(command.name, count));
  return { command, encoding, heads, script: undefined };
}

export function internalVariant(name: string): CommandVariant {
  return variantOf({ ...UNLISTED, name, keys: 'none', readOnly: true }, 'utf8');
}

/** A command of this package's own, among those of the user. */
export class InternalEntry extends Entry {
  readonly promise = NOBODY;
  readonly select: number;

  constructor(
    variant: CommandVariant,
    sent: unknown,
    readonly context: EntryContext,
    /** Gets the outcome, also of a reply that comes after a timeout; an error is not undefined. */
    readonly done: (error: unknown, value?: unknown) => void,
  ) {
    super(variant, sent);
    this.select = selectedDatabase(context.client);
  }

  override handlesError(message: string): boolean {
    this.fail(Object.assign(new Error(message), { name: 'ReplyError' }));
    return true;
  }

  protected settleValue(value: unknown): void {
    this.done(undefined, value);
  }

  protected settleError(error: unknown): void {
    this.done(error);
  }
}

/**
 * The host's own conversion of a reply: Buffers to strings, then the command's reply transformer.
 *
 * @param replyEncoding - null if strings are converted already.
 */
export function transformReply(entry: Entry, replyEncoding: 'utf8' | null, reply: unknown): unknown {
  return entry.context.commandClass.prototype.transformReply.call(
    { name: entry.name, replyEncoding, ...replyProtocol(entry.sender) },
    reply,
  );
}

/** An equal error for another caller, about its own command. A native one, which `structuredClone` knows. */
export function errorFor({ name, args }: Entry, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const copy: object = new Error();
  Object.setPrototypeOf(copy, Object.getPrototypeOf(error));
  // V8: `stack` may be an accessor, which gives each error its own.
  const { stack: _, ...others } = Object.getOwnPropertyDescriptors(error);
  Object.defineProperties(copy, others);
  Object.defineProperty(copy, 'stack', { value: error.stack, writable: true, enumerable: false, configurable: true });
  return 'command' in copy ? Object.assign(copy, { command: { name, args } }) : copy;
}
