import { inspect } from 'node:util';
import { type CommandVariant, KEY_POSITIONS, UNLISTED } from '../commands/fast-commands.js';
import { Entry, variantOf } from '../core/entry.js';
import { transformsReply } from '../host/command-class.js';
import type { EntryContext } from '../host/command-facade.js';
import {
  type HostPipeline,
  PIPELINE_INDEX,
  type PipelinedCommand,
  type PipelineResult,
  PipelineWriter,
} from '../host/pipeline.js';
import { NOT_DECODED, type ReplyDecoder } from '../resp/decoder.js';
import { keepSettlers, lastReject, lastResolve } from '../util/promises.js';

/** The first and the last command of fast transactions. Host: each command converts its element of EXEC's reply. */
export const MULTI = variantOf({ ...UNLISTED, name: 'multi', keys: 'none' }, 'utf8');
export const EXEC = variantOf({ ...UNLISTED, name: 'exec', keys: 'none' }, null);

interface OwnPromise {
  readonly promise: Promise<unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

function noop(): void {}

const NONE: number[] = [];

/** The entries of a fast pipeline and their shared state. The host sends the entries again through this. */
export class PipelineRecording<Of = unknown> extends PipelineWriter {
  /** Whether it still records. After it was sent, or left to the host, calls go to the host's methods. */
  open = true;
  /** Whether `multi()` created it. If so, it begins with MULTI and ends with EXEC. */
  isTransaction = false;
  /** The database that was selected when it was sent. */
  select = 0;
  sentCount = 0;
  /** Results that wait to be filled into the pipeline, with their positions. */
  #results: PipelineResult[] | undefined;
  #positions: number[] = NONE;

  constructor(
    readonly pipeline: HostPipeline,
    /** The target of the calls. */
    readonly target: Of,
    /** The context of its connection. Before it is sent, a context with which the host may send its entries. */
    public context: EntryContext,
  ) {
    super();
  }

  get commands(): readonly PipelinedCommand[] {
    return this.pipeline._queue;
  }

  /** Called before its commands are queued on a connection with the selected database `select`. */
  sentWith(context: EntryContext, select: number): void {
    this.open = false;
    this.context = context;
    this.select = select;
    this.sentCount = this.commands.length;
  }

  /** Breaks the cycle from the client's queue to this, and by `context` back to the client. */
  toJSON(): object {
    return { open: this.open, sent: this.sentCount };
  }

  [inspect.custom](): object {
    return this.toJSON();
  }

  /**
   * Fills in a result, in the microtask in which the host would fill in the first of the waiting results.
   *
   * Invariant 7: `fillResult` may be a user's, and user code that runs between two replies may call `exec()` again.
   */
  fillSoon(result: PipelineResult, position: number): void {
    if (this.#results === undefined) {
      this.#results = [result];
      this.#positions = [position];
      void this.settled(undefined).then(() => this.#fill());
    } else {
      this.#results.push(result);
      this.#positions.push(position);
    }
  }

  #fill(): void {
    const results = this.#results as PipelineResult[];
    const positions = this.#positions;
    this.#results = undefined;
    for (let index = 0; index < results.length; index += 1) {
      const position = positions[index] as number;
      try {
        this.pipeline.fillResult(results[index] as PipelineResult, position);
      } catch (error) {
        fillWithError(this.pipeline, Promise.reject(error), position);
      }
    }
  }

  /** A promise that settles when that of a host command would. */
  settled(value: unknown): Promise<unknown> {
    const promise = Promise.resolve(value);
    return this.context.settlesInFinally ? promise.finally(noop) : promise;
  }
}

/** Host: `promise.then(fill).catch(fill)`, so an error of `fillResult` itself becomes the command's result. */
function fillWithError(pipeline: HostPipeline, failed: Promise<unknown>, position: number): void {
  failed.catch((error: unknown) => pipeline.fillResult([error], position));
}

/**
 * The fast entry of a command in an explicit pipeline or a transaction. Its result is filled into the host's pipeline,
 * which has one promise for all.
 *
 * It also replaces the host's command in the pipeline, so that the host can send the pipeline, or send it again.
 */
export class PipelineEntry extends Entry implements PipelinedCommand {
  #settled = false;
  /** The promise of this command, created when it is first read. */
  #ownPromise: OwnPromise | undefined;
  /** Whether the host fills the pipeline from the promise. */
  #hostFills = false;
  /** Host: its index in the pipeline, to which it is about to be added. */
  [PIPELINE_INDEX]: number;
  inTransaction: boolean;
  override isTraced = false;
  /** The arguments as layers over `sendCommand` see them, once they were read or replaced. */
  declare seenArgs: unknown[] | undefined;

  constructor(
    variant: CommandVariant,
    sent: unknown,
    readonly recording: PipelineRecording,
  ) {
    super(variant, sent);
    const { pipeline } = recording;
    this[PIPELINE_INDEX] = pipeline._queue.length;
    this.inTransaction = pipeline._transactions > 0;
  }

  get context(): EntryContext {
    return this.recording.context;
  }

  get select(): number {
    return this.recording.select;
  }

  // Layers over `sendCommand` may assign to it. If there are any, the host sends it.

  override get name(): string {
    return super.name;
  }

  override set name(name: string) {
    this.variant = variantOf({ ...UNLISTED, name }, this.variant.encoding);
  }

  override get args(): unknown[] {
    this.seenArgs ??= super.args;
    return this.seenArgs;
  }

  override set args(args: unknown[]) {
    this.seenArgs = args;
  }

  protected override ownArguments(): readonly unknown[] {
    return this.seenArgs ?? super.ownArguments();
  }

  override get replyEncoding(): 'utf8' | null {
    return super.replyEncoding;
  }

  override set replyEncoding(encoding: 'utf8' | null) {
    this.variant = { ...this.variant, encoding };
  }

  override answer(reply: unknown, form: 'decoded' | 'raw'): void {
    if (form === 'decoded') super.answer(reply, form);
    else {
      try {
        this.fulfil(this.transformReply(reply));
      } catch (error) {
        this.reject(error as Error);
      }
    }
  }

  protected settleValue(value: unknown): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#ownPromise?.resolve(value);
    if (this.#hostFills) return;
    const { recording, [PIPELINE_INDEX]: index } = this;
    const { pipeline } = recording;
    // Users can observe when the last result is filled in, so it is not delayed.
    if (index < recording.sentCount - 1 && !isThenable(value)) {
      recording.fillSoon([null, value], index);
    } else {
      const filled = recording.settled(value).then((settled) => pipeline.fillResult([null, settled], index));
      fillWithError(pipeline, filled, index);
    }
  }

  protected settleError(error: unknown): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#ownPromise?.reject(error);
    if (this.#hostFills) return;
    const failed = this.recording.settled(undefined).then(() => {
      throw error;
    });
    fillWithError(this.recording.pipeline, failed, this[PIPELINE_INDEX]);
  }

  // ---- Called or read by the host ----

  /** Host: used to send the command again. */
  get stream(): PipelineWriter {
    return this.recording;
  }

  get promise(): Promise<unknown> {
    this.#ownPromise ??= ownPromise();
    return this.#ownPromise.promise;
  }

  /** Host: a Cluster calls it before it sends a whole pipeline again, then fills the pipeline from this promise. */
  initPromise(): void {
    this.#settled = false;
    // Host: makes new ones, without what layers have put around them.
    this.replacedResolve = undefined;
    this.replacedReject = undefined;
    // Its timeout restarts when it is sent.
    this.deadline = undefined;
    this.#hostFills = true;
    this.#ownPromise = ownPromise();
  }

  /** Host: `fillResult` calls it on each command of a transaction, with its element of EXEC's reply. */
  override transformReply(reply: unknown): unknown {
    const { commandClass } = this.context;
    if (!transformsReply(commandClass, this.name) && (typeof reply !== 'object' || reply === null)) {
      return reply;
    }
    return super.transformReply(reply);
  }

  override toJSON(): object {
    return { ...super.toJSON(), inTransaction: this.inTransaction, [PIPELINE_INDEX]: this[PIPELINE_INDEX] };
  }

  /** Host: a Cluster computes slots from the keys. */
  override getKeys(): unknown[] {
    const { count, step } = KEY_POSITIONS[this.variant.command.keys] ?? KEY_POSITIONS.none;
    return super.args.slice(0, count * step).filter((_, index) => index % step === 0);
  }
}

PipelineEntry.prototype.seenArgs = undefined;

/** EXEC, whose reply contains those to the commands of the transaction. */
export class ExecEntry extends PipelineEntry {
  /** A user's transformer for EXEC expects all replies as the host decodes them. */
  override decode(decoder: ReplyDecoder, bytes: Buffer, position: number): unknown {
    if (transformsReply(this.context.commandClass, 'exec')) return NOT_DECODED;
    return decoder.decodeElements(bytes, position, this);
  }

  /** Whether the reply at `index` of `count` is decoded to text. Its command is one of the `count` before EXEC. */
  utf8At(index: number, count: number): boolean {
    const position = (this[PIPELINE_INDEX] as number) - count + index;
    const command = this.recording.pipeline._queue[position];
    // A host command expects Buffers, as the host's decoder gives them.
    return command instanceof PipelineEntry && command.variant.encoding === 'utf8';
  }
}

/**
 * Whether a promise would read `then` of a value, which a user's reply transformer may have returned. It is not read
 * here, because it may be a getter.
 */
function isThenable(value: unknown): boolean {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'function') return false;
  try {
    return 'then' in value;
  } catch {
    return true;
  }
}

function ownPromise(): OwnPromise {
  const own = { promise: new Promise<unknown>(keepSettlers), resolve: lastResolve, reject: lastReject };
  // The pipeline's result has the error; only the host uses this promise.
  own.promise.catch(noop);
  return own;
}
