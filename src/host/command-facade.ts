import { inspect } from 'node:util';
import calculateSlot from 'cluster-key-slot';
import type { CommandVariant } from '../commands/fast-commands.js';
import { type Part, toBytes } from '../resp/encoder.js';
import { Deadlines, type Timed } from '../util/deadlines.js';
import { keysOf } from './command-class.js';
import { replyProtocol } from './state.js';
import type { HostClient, HostCommand, HostCommandClass, QueueItem } from './types.js';

/** The data that the entries of one connection share. */
export interface EntryContext {
  readonly client: HostClient;
  readonly commandClass: HostCommandClass;
  /** See `settlesInFinally` in `host/command-class.ts`. */
  readonly settlesInFinally: boolean;
  /** Lets a Cluster replace its command's `reject` by its redirection; undefined for others. */
  readonly redirect?: (command: HostCommandFacade) => void;
}

/** The deadlines of entries on which the host calls `setTimeout`. */
const hostDeadlines = new Deadlines();

/**
 * The members of a queued command that the host, a tracer or a Cluster reads, calls or replaces. A fast entry has them
 * all, so the host may resolve or reject it from its own decoder, flush it with an error, keep it after a lost
 * connection and send it again, like any command (invariant 5). Rarely used properties are computed on demand.
 *
 * Host: `pipelineIndex` and `inTransaction` are read when the connection closes (`abortIncompletePipelines`,
 * `abortTransactionFragments`). Neither has to exist.
 */
export abstract class HostCommandFacade implements QueueItem, HostCommand, Timed {
  /** The deadline, if there is a timeout; `SETTLED` afterwards, or when the call was aborted. */
  declare deadline: Timed['deadline'];
  /** The functions with which a tracer has replaced `resolve` and `reject`, and a Cluster's redirection below them. */
  declare protected replacedResolve: ((reply: unknown) => void) | undefined;
  declare protected replacedReject: ((error: Error) => void) | undefined;
  declare protected redirected: ((error: Error) => void) | undefined;
  /** Host: whether it was written already; if so, it is not published on the command channel again. */
  declare isTraced: boolean;
  /** The other client that has sent it, if any. */
  declare sentBy: Pick<HostClient, 'condition'> | undefined;

  abstract variant: CommandVariant;
  abstract readonly context: EntryContext;
  /** The database selected when it was sent. */
  abstract readonly select: number;
  abstract readonly promise: Promise<unknown>;
  /** Settles every caller with a reply as the host's decoder gives it, with Buffers for strings. */
  abstract answer(reply: unknown, form: 'raw'): void;
  abstract fail(error: unknown): void;
  /** The command as exact RESP. */
  abstract encode(): Part[];
  /** All arguments, as they are sent. */
  protected abstract arguments(): readonly unknown[];

  get command(): this {
    return this;
  }

  /** The client whose protocol reply transformers read. */
  get sender(): Pick<HostClient, 'condition'> {
    return this.sentBy ?? this.context.client;
  }

  get name(): string {
    return this.variant.command.name;
  }

  /** Strings and Buffers, as in a host's command. Read for `error.command` and by tracers. */
  get args(): unknown[] {
    return this.arguments().map((argument) => (typeof argument === 'number' ? String(argument) : argument));
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

  /** The default `reject`: fails, or lets the Cluster redirect it. */
  protected rejected(error: Error): void {
    const { replacedReject, redirected, variant } = this;
    const { client, redirect } = this.context;
    if (client.stream !== undefined) variant.script?.rejected(client.stream, error);
    if (redirected === undefined && redirect !== undefined) {
      this.reject = (final) => this.fail(final);
      redirect(this);
      this.redirected = this.reject;
      this.replacedReject = replacedReject;
    }
    if (this.redirected === undefined) this.fail(error);
    else this.redirected(error);
  }

  /** Rejects the caller at its timeout. */
  timedOut(error: Error): void {
    this.reject(error);
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

  /** Host: ioredis 6 sets a command's protocol here: that of another client, if a layer or a Cluster sends it there. */
  setReplyContext(condition: NonNullable<HostClient['condition']>): void {
    if (this.sender.condition !== condition) this.sentBy = { condition };
  }

  /** Host: the encoding of text in its reply. */
  get replyEncoding(): 'utf8' | null {
    return this.variant.encoding;
  }

  getKeys(): readonly unknown[] {
    return keysOf(this.context.commandClass, this.name, this.args);
  }

  transformReply(reply: unknown): unknown {
    return this.transformed(this.replyEncoding, reply);
  }

  /**
   * The host's own conversion of a reply: Buffers to strings, then the command's reply transformer.
   *
   * @param replyEncoding - null if strings are converted already.
   */
  protected transformed(replyEncoding: 'utf8' | null, reply: unknown): unknown {
    const { name, context, sender } = this;
    const replyContext = { name, replyEncoding, ...replyProtocol(sender) };
    return context.commandClass.prototype.transformReply.call(replyContext, reply);
  }

  /** Host: read by a Cluster that sends a command. */
  getSlot(): number | null {
    const [key] = this.getKeys();
    return key === undefined ? null : calculateSlot(key as string | Buffer);
  }

  /** Host: set only for scripts that were defined as such. */
  get isReadOnly(): true | undefined {
    const { script, command } = this.variant;
    return (script !== undefined && command.readOnly) || undefined;
  }

  /** Shows the same as the host's commands: a log of the client may show it, and `context` refers to the client. */
  toJSON(): object {
    const { name, replyEncoding, args, select } = this;
    return { name, replyEncoding, args, select };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}

HostCommandFacade.prototype.isTraced = true;
HostCommandFacade.prototype.sentBy = undefined;
