import calculateSlot from 'cluster-key-slot';
import type { HotCommand } from '../commands/hot-commands.js';
import { replyProtocol } from '../host/state.js';
import type { HostClient, HostCommand, HostCommandClass, QueueItem } from '../host/types.js';
import { commandHead, encodeExactly, type Part, toBytes } from '../resp/encoder.js';

/** A hot command in one of its two variants: `get` or `getBuffer`. */
export interface CommandVariant {
  readonly command: HotCommand;
  readonly encoding: 'utf8' | null;
  /** Set for a defined script. */
  readonly script?: ScriptForm;
}

/** A script as EVAL or EVALSHA. */
export interface ScriptForm {
  /** What stands before the arguments of each call: the script or its hash, and the number of keys if that is fixed. */
  readonly leading: readonly unknown[];
  /** The form that its next command on this stream takes. */
  formOn(stream: object): CommandVariant;
  /** A command on this stream was rejected. */
  rejected(stream: object, error: Error): void;
}

/** What the entries of one connection have in common. */
export interface EntryContext {
  readonly client: HostClient;
  readonly commandClass: HostCommandClass;
  /** See `settlesLate` in `host.ts`. */
  readonly settlesLate: boolean;
  /** Set for commands that a Cluster has sent: what becomes of one that fails. */
  readonly redirect?: (entry: Entry, error: Error) => void;
}

/** Someone who waits for `count` promises, to clear a timer when the last has settled. */
export interface SettleObserver {
  settled(): void;
}

type Settle = (value: unknown) => void;

/** Behind the script, or its hash, and the number of keys. */
const FIRST_KEY_OF_SCRIPT = 2;

let settleValue: Settle;
let settleError: (error: unknown) => void;
/** One executor for all promises: it saves a closure per command. */
function keepSettlers(resolve: Settle, reject: (error: unknown) => void): void {
  settleValue = resolve;
  settleError = reject;
}

function noop(): void {}

/** @param sent - the arguments as they are encoded, `keyPrefix` applied. */
export function createEntry(
  variant: CommandVariant,
  context: EntryContext,
  sent: readonly unknown[],
  select: number,
): CallEntry {
  let promise = new Promise<unknown>(keepSettlers);
  // Ordering: callers settle in the order of their replies, whichever path each of them took.
  if (context.settlesLate) promise = promise.finally(noop);
  const kept = sent.length === 1 ? sent[0] : sent;
  return new CallEntry(variant, context, kept, select, promise, settleValue, settleError);
}

/**
 * A light in-flight entry: the queue's element and its command in one small object, in the host's own `commandQueue`.
 * What settles with it is the subclass's: one caller's promise, or its place in a pipeline's result.
 *
 * The host may do with it what it does with a command: resolve or reject it from its own decoder, flush it with an
 * error, keep it over a lost connection and send it again. It has all that the host reads on those ways; what is
 * rarely needed is made when it is asked for.
 */
export abstract class Entry implements QueueItem, HostCommand {
  /** Further callers of the same read (`shareReads`), who settle when this one does. */
  declare followers: Entry[] | undefined;
  /** The key under which the answer of this read may be kept, see `ReadCache`. */
  declare cachedAs: string | undefined;
  /** Set when the command outlives its connection while a time-out is pending. */
  declare observer: SettleObserver | undefined;

  abstract readonly context: EntryContext;
  /** The database selected when it was sent. */
  abstract readonly select: number;
  abstract readonly promise: Promise<unknown>;
  protected abstract settleValue(value: unknown): void;
  protected abstract settleError(error: unknown): void;

  constructor(
    public variant: CommandVariant,
    /**
     * The arguments as they went out, `keyPrefix` applied: strings, numbers and Buffers in an array, or the only one
     * without, which saves an eighth of what a command in flight takes.
     */
    readonly sent: unknown,
  ) {}

  get command(): this {
    return this;
  }

  /** Called by our reader: the value is decoded and transformed. */
  fulfil(value: unknown): void {
    this.settleValue(value);
    this.observer?.settled();
  }

  fail(error: unknown): void {
    this.failAlone(error);
    if (this.followers !== undefined) {
      for (const follower of this.followers) follower.fail(copyOfError(error));
    }
  }

  /** For what has gone wrong with this caller's value: the followers have theirs. */
  failAlone(error: unknown): void {
    this.settleError(error);
    this.observer?.settled();
  }

  /** The command as RESP, for those who cannot take it from a batch. */
  encode(): Part[] {
    const args = this.arguments();
    const parts = encodeExactly(commandHead(this.name, args.length), args);
    if (parts === undefined) throw new TypeError(`${this.name}: an argument has become one that cannot be encoded`);
    return parts;
  }

  // ---- What the host calls or reads ----
  // Host: `pipelineIndex` and `inTransaction` are read when the connection closes (`abortIncompletePipelines`,
  // `abortTransactionFragments`), `isTraced` when a command is sent. None of them has to exist.

  get name(): string {
    return this.variant.command.name;
  }

  /** As a host's command has them: strings and Buffers. Read for `error.command` and by tracers. */
  get args(): unknown[] {
    return this.arguments().map((argument) => (typeof argument === 'number' ? String(argument) : argument));
  }

  /**
   * Host: its decoder calls `command.resolve(reply)` with Buffers for strings. A getter, since tracers take the
   * function off the command, call it unbound and put their own in its place (OpenTelemetry's ioredis instrumentation).
   */
  get resolve(): (reply: unknown) => void {
    return (reply) => this.#resolveReply(reply);
  }

  set resolve(replacement: (reply: unknown) => void) {
    Object.defineProperty(this, 'resolve', { value: replacement, writable: true, configurable: true });
  }

  get reject(): (error: Error) => void {
    return (error) => {
      const { stream } = this.context.client;
      if (stream !== undefined) this.variant.script?.rejected(stream, error);
      if (this.context.redirect === undefined) this.fail(error);
      else this.context.redirect(this, error);
    };
  }

  set reject(replacement: (error: Error) => void) {
    Object.defineProperty(this, 'reject', { value: replacement, writable: true, configurable: true });
  }

  /** Host: `sendCommand` writes this when it sends a command again. */
  toWritable(stream: object): Buffer {
    const { script } = this.variant;
    if (script !== undefined) {
      this.variant = script.formOn(stream);
      const { reject } = this;
      this.reject = (error) => {
        script.rejected(stream, error);
        reject(error);
      };
    }
    return Buffer.concat(this.encode().map(toBytes));
  }

  /** Host: `sendCommand` starts `commandTimeout` here; the deadline of the entry's batch is running already. */
  setTimeout(): void {}

  /** Host: ioredis 6 tells a command the protocol it is sent under. An entry asks its connection's context. */
  setReplyContext(): void {}

  /** Host: a Cluster asks for it when it sends a command; that of the first key, hot commands have theirs in front. */
  getSlot(): number {
    return calculateSlot(this.args[this.variant.script === undefined ? 0 : FIRST_KEY_OF_SCRIPT] as string | Buffer);
  }

  /** Host: a Cluster asks for it when it sends the command of a script, and knows of others by their names. */
  get isReadOnly(): boolean {
    return this.variant.command.readOnly;
  }

  protected arguments(): readonly unknown[] {
    const own: readonly unknown[] = Array.isArray(this.sent) ? this.sent : [this.sent];
    const { script } = this.variant;
    return script === undefined ? own : [...script.leading, ...own];
  }

  #resolveReply(reply: unknown): void {
    // Made first: a transformer may change what it is given.
    const { followers = [] } = this;
    const copies = followers.map(() => copyOfReply(reply));
    try {
      this.fulfil(transformHostReply(this, reply));
    } catch (error) {
      this.failAlone(error);
    }
    for (const [index, follower] of followers.entries()) follower.#resolveReply(copies[index]);
  }
}

/** The entry of a single call, which has a promise of its own. */
export class CallEntry extends Entry {
  constructor(
    variant: CommandVariant,
    readonly context: EntryContext,
    sent: unknown,
    readonly select: number,
    readonly promise: Promise<unknown>,
    protected readonly settleValue: Settle,
    protected readonly settleError: (error: unknown) => void,
  ) {
    super(variant, sent);
  }
}

/** The host's own conversion of a raw reply: Buffers to strings, then the command's reply transformer. */
export function transformHostReply(entry: Entry, reply: unknown): unknown {
  return transform(entry, entry.variant.encoding, reply);
}

/** The command's reply transformer alone, on a value whose strings are converted already. */
export function transformDecodedReply(entry: Pick<Entry, 'name' | 'context'>, value: unknown): unknown {
  return transform(entry, null, value);
}

function transform(entry: Pick<Entry, 'name' | 'context'>, replyEncoding: 'utf8' | null, reply: unknown): unknown {
  const { client, commandClass } = entry.context;
  return commandClass.prototype.transformReply.call(
    { name: entry.name, replyEncoding, ...replyProtocol(client) },
    reply,
  );
}

/** An equal reply for another caller, who may well change it: Buffers, arrays and objects of its own. */
export function copyOfReply(reply: unknown): unknown {
  if (typeof reply !== 'object' || reply === null) return reply;
  if (reply instanceof Buffer) return Buffer.from(reply);
  if (Array.isArray(reply)) return reply.map(copyOfReply);
  if (Object.getPrototypeOf(reply) !== Object.prototype) return reply;
  // `fromEntries` defines properties: a map may have the key `__proto__`.
  return Object.fromEntries(Object.entries(reply).map(([key, value]) => [key, copyOfReply(value)]));
}

/** An equal error for another caller, who may well change what he gets. */
function copyOfError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  return Object.create(Object.getPrototypeOf(error), Object.getOwnPropertyDescriptors(error));
}
