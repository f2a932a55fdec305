/**
 * The host's explicit pipelines and transactions.
 *
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.3–0.4, `built/Pipeline.js`, `built/transaction.js`.
 */
import type { Duplex } from 'node:stream';
import { methodsNamed } from '../commands/fast-commands.js';
import { RequestReader } from '../resp/request-reader.js';
import { keepSettlers, lastReject, lastResolve } from '../util/promises.js';
import { isKnown } from './functions.js';
import { definedNames } from './script.js';
import type { AnyFunction, HasOptions, HostClient, HostCommand, HostCommandClass, HostOptions } from './types.js';

/** Host: a command's position in its pipeline. Read when the connection closes (`abortIncompletePipelines`). */
export const PIPELINE_INDEX = 'pipelineIndex';

/** A command that a pipeline holds: the host's own, or a fast entry. */
export interface PipelinedCommand extends HostCommand {
  inTransaction: boolean;
  /** Of a script that only reads. */
  readonly isReadOnly?: boolean | undefined;
  /** ioredis 6 and up: the command has been written once. */
  isTraced?: boolean;
  [PIPELINE_INDEX]?: number | undefined;
  transformReply(reply: unknown): unknown;
  getKeys(): unknown[];
  setTimeout(ms: number): void;
  /** ioredis 6 and up. */
  setReplyContext?(context: unknown): void;
  toWritable(stream: unknown): string | Buffer;
}

/** The members of a host's `Pipeline` that this package uses. */
export interface HostPipeline {
  redis: object;
  replyPending: number;
  _queue: PipelinedCommand[];
  _transactions: number;
  readonly isCluster: boolean;
  readonly promise: Promise<unknown>;
  nodeifiedPromise?: boolean;
  fillResult(value: PipelineResult, position: number): void;
  exec(...args: unknown[]): unknown;
}

/** Whether the host made it for `enableAutoPipelining`: then it has the calls' callbacks, under a symbol. */
export function isAutoPipeline(pipeline: object): boolean {
  return Object.getOwnPropertySymbols(pipeline).some(({ description }) => description === 'callbacks');
}

/** The outcome of one command, as `exec()` gives it. */
export type PipelineResult = [error: unknown] | [error: null, value: unknown];

/** A client or Cluster, as far as it makes pipelines. */
interface PipelineMaker extends HasOptions {
  readonly scriptsSet: Readonly<Record<string, unknown>>;
  readonly addedBuiltinSet: ReadonlySet<string>;
}

export type PipelineMethods = Record<string, AnyFunction> & Record<'exec' | 'execBuffer' | 'sendCommand', AnyFunction>;

/** The last ones seen, so that most pipelines cost four comparisons. */
let unpatched: Partial<PipelineMethods> = {};
let unpatchedMakers: Record<string, unknown> = {};

/** Whether the host's own methods fill and send pipelines; asked each time, since user code may replace them. */
export function areUnpatched({ exec, fillResult, sendCommand, multi }: Partial<PipelineMethods>): boolean {
  const { exec: e, fillResult: f, sendCommand: s, multi: m } = unpatched;
  if (exec !== undefined && exec === e && fillResult === f && sendCommand === s && multi === m) return true;
  const methods = { exec, fillResult, sendCommand, multi } as Partial<PipelineMethods>;
  if (!Object.entries(methods).every(([name, method]) => isKnown('pipeline', name, method))) return false;
  unpatched = methods;
  return true;
}

/** Whether a client's methods `pipeline` and `multi` are the host's own. */
export function areUnpatchedMakers({ pipeline, multi }: Record<string, unknown>): boolean {
  if (pipeline !== undefined && pipeline === unpatchedMakers.pipeline && multi === unpatchedMakers.multi) return true;
  if (!isKnown('commander', 'pipeline', pipeline) || !isKnown('commander', 'multi', multi)) return false;
  unpatchedMakers = { pipeline, multi };
  return true;
}

/**
 * A class of objects that are the host's pipelines, made at a twentieth of the cost of its constructor.
 *
 * Host: `Pipeline`'s constructor gives each object its own `length`, which takes V8 longer than all else, and copies
 * the methods of scripts and added commands. Here `length` is inherited, and rarely used members are made on first use.
 */
export function pipelineClass(prototype: PipelineMethods): new (client: object, isCluster: boolean) => HostPipeline {
  class Pipeline implements HostPipeline {
    readonly isPipeline = true;
    replyPending = 0;
    _queue: PipelinedCommand[] = [];
    readonly _result: unknown[] = [];
    _transactions = 0;
    readonly options: HostOptions;
    readonly promise: Promise<unknown>;
    readonly resolve: (value: unknown) => void;
    readonly reject: (error: unknown) => void;
    declare nodeifiedPromise: boolean;
    declare fillResult: HostPipeline['fillResult'];
    declare exec: HostPipeline['exec'];

    constructor(
      public redis: object,
      readonly isCluster: boolean,
    ) {
      this.options = (redis as HasOptions).options;
      this.promise = new Promise(keepSettlers);
      this.resolve = lastResolve;
      this.reject = lastReject;
    }

    get length(): number {
      return this._queue.length;
    }
  }
  const shared = Pipeline.prototype;
  Object.setPrototypeOf(shared, prototype);
  lazyMember(shared, 'scriptsSet', () => ({}));
  lazyMember(shared, 'addedBuiltinSet', () => new Set());
  // Host: no version reads it; it only shows in lists of members.
  lazyMember(shared, '_shaToScript', () => ({}));
  inheritConstructor(Pipeline);
  return Pipeline;
}

/** Users read `pipeline.constructor`: it is the host's. */
export function inheritConstructor(pipelines: { readonly prototype: object }): void {
  Reflect.deleteProperty(pipelines.prototype, 'constructor');
}

/** A member that is created when first read. */
function lazyMember(prototype: object, name: string, make: (pipeline: HostPipeline) => unknown): void {
  const set = (pipeline: object, value: unknown) =>
    Reflect.defineProperty(pipeline, name, { value, writable: true, configurable: true, enumerable: true });
  Object.defineProperty(prototype, name, {
    get(this: HostPipeline) {
      const value = make(this);
      set(this, value);
      return value;
    },
    set(this: object, value: unknown) {
      set(this, value);
    },
    enumerable: true,
    configurable: true,
  });
}

/** How many scripts and added commands a client has: their methods are copied onto its pipelines. */
export function countOfCopied(client: object): number {
  const { scriptsSet, addedBuiltinSet } = client as PipelineMaker;
  return Object.keys(scriptsSet).length + addedBuiltinSet.size;
}

/** The class `general` with the methods of scripts and added commands, which the host copies onto each pipeline. */
export function withCopied<T extends new (...args: never[]) => HostPipeline>(general: T, client: object): T {
  // @ts-expect-error TS2545: a class that adds nothing to the constructor may extend any.
  const own = class extends general {};
  inheritConstructor(own);
  for (const [name] of definedNames(client).flatMap(methodsNamed)) {
    lazyMember(own.prototype, name, ({ redis }) => (redis as Record<string, unknown>)[name]);
  }
  return own;
}

/** Pipelines of this class keep the client's present scripts and added commands, although it is about to get others. */
export function keepCopied({ prototype }: { readonly prototype: object }, client: object): void {
  for (const [name] of definedNames(client).flatMap(methodsNamed)) {
    const value = (client as Record<string, unknown>)[name];
    const ordinary = { writable: true, configurable: true, enumerable: true };
    if (Object.hasOwn(prototype, name)) Object.defineProperty(prototype, name, { value, ...ordinary });
  }
}

/**
 * Commands that the client or the reply reader must handle when they are sent or answered; in lower case.
 * Host: `sendCommand`, `DataHandler`, `HimportCoordinator`.
 */
const STATEFUL = new Set(
  (
    'select quit auth hello reset monitor sync psync asking himport ' +
    'subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe ' +
    'blpop brpop brpoplpush blmove blmovem blmpop bzpopmin bzpopmax bzmpop xread xreadgroup'
  ).split(' '),
);

/** Whether a host command can be sent together with fast entries, without `sendCommand`, and gets one reply. */
export function isSentAsItIs(command: HostCommand, commandClass: HostCommandClass): boolean {
  if (!(command instanceof commandClass)) return false;
  // Host: its checks before it writes a command. One of them throws if the name is not a string.
  if (typeof command.name !== 'string') return !commandClass.checkFlag('WILL_DISCONNECT', command.name);
  const name = command.name.toLowerCase();
  return name === 'client' ? !/^reply$/i.test(String(command.args[0])) : !STATEFUL.has(name);
}

/** Does what the host's `sendCommand` does with a command before it writes it; returns the text to write. */
export function writableOf(command: PipelinedCommand, client: HostClient): string | Buffer {
  command.setReplyContext?.(client.condition ?? client.options);
  const { commandTimeout } = client.options;
  if (typeof commandTimeout === 'number') command.setTimeout(commandTimeout);
  if ('isTraced' in command) command.isTraced = true;
  return command.toWritable(client.stream);
}

/**
 * Runs the host's `exec` for a Cluster's pipeline, which checks slots, but sends nothing.
 *
 * @returns its promise, and whether it would send the pipeline.
 */
export function execUnsent(
  pipeline: HostPipeline,
  exec: AnyFunction,
  callback: unknown,
): { promise: Promise<unknown>; sends: boolean } {
  const { redis } = pipeline;
  let sends = false;
  pipeline.redis = Object.create(redis, {
    sendCommand: {
      value() {
        sends = true;
      },
    },
  });
  try {
    const promise = exec.call(pipeline, callback) as Promise<unknown>;
    return { promise, sends };
  } finally {
    pipeline.redis = redis;
  }
}

/**
 * The host's `exec` for a fast transaction.
 *
 * Host: `multi()` makes it for each transaction (`built/transaction.js`), as a closure over the object that it returns.
 * That object becomes an alias of ours: it has no own properties left, and every read or write of a property goes to
 * ours.
 */
export function hostTransactionExec(pipeline: HostPipeline, multi: AnyFunction): AnyFunction {
  const made = multi.call(pipeline.redis) as HostPipeline;
  const exec = made.exec as AnyFunction;
  for (const name of Reflect.ownKeys(made)) Reflect.deleteProperty(made, name);
  const alias = new Proxy(pipeline, {
    get: (target, name) => Reflect.get(target, name),
    set: (target, name, value) => Reflect.set(target, name, value),
  });
  Object.setPrototypeOf(made, alias);
  return exec;
}

const SENT_ALREADY = 'Pipeline cannot be used to send any commands when the `exec()` has been called on it.';

/**
 * The result that the host makes for a transaction: the results of EXEC, or its error with those of the earlier
 * commands. Host: `built/transaction.js`, `wrapMultiResult` in `built/utils/index.js`.
 */
export function unwrapTransaction(results: unknown): unknown {
  const settled = results as PipelineResult[];
  const last = settled[settled.length - 1];
  if (last === undefined) throw new Error(SENT_ALREADY);
  const [error, values] = last;
  if (error) {
    const before = settled.slice(0, -1).flatMap(([previous]) => (previous ? [previous] : []));
    (error as { previousErrors: unknown[] }).previousErrors = before;
    throw error;
  }
  if (!values) return null;
  // The last reply may not be that of EXEC, nor an array: other commands were added after it, or replies were omitted
  // (`CLIENT REPLY`).
  const { length } = values as ArrayLike<unknown>;
  const wrapped: unknown[] = [];
  // Not `Array.from` with a function, which iterates, and took an eighth of a transaction's time.
  for (let index = 0; index < length; index += 1) {
    const value = (values as ArrayLike<unknown>)[index];
    wrapped.push(value instanceof Error ? [value] : [null, value]);
  }
  return wrapped;
}

/** Wraps `exec()` of a pipeline or transaction, however it is sent. */
export function aroundExec(
  made: unknown,
  around: (pipeline: HostPipeline, send: (args: unknown[]) => unknown, args: unknown[]) => unknown,
): void {
  const pipeline = Object(made) as HostPipeline;
  const { exec } = pipeline;
  if (typeof exec !== 'function') return;
  // Keeps `this`, as in the host: a derived object has its own fields.
  pipeline.exec = function (this: HostPipeline, ...args: unknown[]) {
    return around(pipeline, (given) => exec.apply(this, given), args);
  };
}

/**
 * The host uses this to send the commands of a fast pipeline again after a lost connection. It writes all of them at
 * once, with the last one.
 *
 * Host: `exec` makes a writer like this for its own pipelines (`built/Pipeline.js`), and each of their queue items has
 * it. Without it the commands would be written one by one. If one of the writes failed, because the new connection was
 * lost, too, later commands would go to `offlineQueue`. There they are aborted as a fragment of a transaction, but its
 * MULTI, alone in `commandQueue`, would be sent again on the next connection.
 */
export abstract class PipelineWriter {
  #pieces: Uint8Array[] | undefined;
  /** The stream that the pieces are for. */
  #stream: Duplex | undefined;

  /** The number of commands that were sent; users may have added others to the pipeline since. */
  abstract readonly sentCount: number;
  abstract readonly context: { readonly client: HostClient };

  get isPipeline(): boolean {
    return true;
  }

  get destination(): { readonly redis: HostClient } {
    return { redis: this.context.client };
  }

  write(data: string | Uint8Array): void {
    const { stream } = this.context.client;
    if (stream !== this.#stream || this.#pieces === undefined) {
      this.#stream = stream;
      this.#pieces = [];
    }
    this.#pieces.push(typeof data === 'string' ? Buffer.from(data) : data);
    if (this.#pieces.length < this.sentCount) return;
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = undefined;
    stream?.write(bytes);
  }
}

/**
 * Reads the writes by the host. Host: a single command is written before its entry is queued. An explicit pipeline is
 * written in one piece when its last command is sent. Its other entries are queued by then and have the pipeline's
 * writer as their `stream` (`built/Pipeline.js`, `execPipeline`). So a write is a pipeline only if the last entry
 * belongs to one that was not seen before.
 */
export class HostWrites {
  readonly #seen = new WeakSet<object>();

  read(client: HostClient, data: string | Uint8Array): RequestReader {
    const queue = client.commandQueue;
    const writer = queue.peekAt(queue.length - 1)?.stream;
    if (typeof writer !== 'object' || writer === null || this.#seen.has(writer)) return new RequestReader(data, true);
    this.#seen.add(writer);
    return new RequestReader(data, false);
  }
}
