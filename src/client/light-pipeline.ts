import { HOT_COMMANDS, type HotCommand } from '../commands/hot-commands.js';
import type { Connection } from '../connection/connection.js';
import { EXEC, ExecEntry, MULTI, PipelineEntry, PipelineVariant } from '../connection/pipeline-entry.js';
import {
  callBack,
  execUnsent,
  type HostPipeline,
  hostCommandOf,
  inheritConstructor,
  isSentAsItIs,
  type PipelinedCommand,
  type PipelineMethods,
  pipelineClass,
} from '../host/pipeline.js';
import { isGenuineMethod } from '../host/probe.js';
import { keyPrefixOf, tracesBatches } from '../host/state.js';
import { becomeHostTransaction, unwrapTransaction } from '../host/transaction.js';
import {
  argumentTransformerOf,
  runTransformer,
  type Transformation,
  withTransformation,
} from '../host/transformers.js';
import type { AnyFunction, HostCommandClass } from '../host/types.js';
import { isPlainNumber } from '../resp/encoder.js';
import type { FallThroughReason } from '../stats.js';
import { flatOf } from '../util/flat.js';
import { countFallThrough, type HotRoute, holdsArray, withKeyPrefix } from './hot-path.js';

/** What the hot path needs of a client to send its pipelines. */
export interface PipelineRoute extends HotRoute {
  readonly commandClass: HostCommandClass | undefined;
  /** The connection of a pipeline with this first key, or why it cannot take the hot path. */
  connectionForPipeline(key: unknown): Connection | FallThroughReason;
}

export interface LightPipeline extends HostPipeline {
  addBatch(commands: readonly unknown[]): unknown;
}

export type LightPipelineClass = new (
  client: object,
  route: PipelineRoute,
  commandClass: HostCommandClass,
  isTransaction: boolean,
) => LightPipeline;

/**
 * - `recording`: holds light entries, and host commands that are sent together with them.
 * - `sent`: as one piece; later calls go to the host's methods.
 * - `host`: the recorded commands were replayed, so this is now an ordinary host pipeline.
 */
type State = 'recording' | 'sent' | 'host';

/**
 * Host pipelines that are cheap to make and to fill.
 *
 * A pipeline records its commands as light entries; the host makes the commands that are not simple, and they are
 * queued between the entries. `exec()` encodes all, then puts their entries into the client's queue and their bytes
 * into its batch in one step. Where that is not possible, host commands are made from the recorded ones, and from then
 * on this is an ordinary host pipeline.
 *
 * @param methods - of the host's pipelines.
 * @param multi - the host's method that makes transactions.
 */
export function lightPipelineClass(methods: PipelineMethods, multi: AnyFunction): LightPipelineClass {
  const host = methods.prototype;

  class Light extends pipelineClass(host) implements LightPipeline {
    declare addBatch: LightPipeline['addBatch'];
    #state: State = 'recording';
    /** Whether a transaction is open after the recorded commands, if they open or close any. */
    #transaction: 'open' | 'closed' | undefined;
    /** The transformed arguments of the current call. */
    #transformation: Transformation | undefined;
    /** Its flattened arguments, if there were arrays among them; see `hotSender`. */
    #flattened: readonly unknown[] | undefined;
    readonly #route: PipelineRoute;
    readonly #commandClass: HostCommandClass;
    readonly #isTransaction: boolean;

    constructor(client: object, route: PipelineRoute, commandClass: HostCommandClass, isTransaction: boolean) {
      super(client, route.routing !== undefined);
      this.#route = route;
      this.#commandClass = commandClass;
      this.#isTransaction = isTransaction;
      if (isTransaction) {
        this._transactions = 1;
        this.#push(MULTI, []);
      }
    }

    static {
      inheritConstructor(Light);
      for (const command of HOT_COMMANDS) {
        for (const encoding of ['utf8', null] as const) {
          const name = encoding === null ? `${command.name}Buffer` : command.name;
          if (typeof host[name] === 'function') {
            const value = Light.#recording(name, new PipelineVariant(command, encoding));
            Object.defineProperty(Light.prototype, name, { value, writable: true, configurable: true });
          }
        }
      }
    }

    static #recording(name: string, variant: PipelineVariant): AnyFunction {
      let genuine: AnyFunction | undefined;
      return function record(this: unknown, ...args) {
        const method = host[name] as AnyFunction;
        if (!Light.#records(this)) return method.apply(this, args);
        let reason: FallThroughReason | undefined;
        if (method !== genuine && !isGenuineMethod(method)) {
          reason = 'patched';
        } else {
          genuine = method;
          reason = this.#record(variant, args);
        }
        if (reason === undefined) return this;
        countFallThrough(this.#route, name, reason);
        const transformation = this.#transformation;
        const given = this.#flattened === undefined ? args : [this.#flattened];
        this.#transformation = undefined;
        this.#flattened = undefined;
        if (transformation === undefined) return method.apply(this, given);
        return withTransformation(this.#commandClass, variant.command.name, transformation, () =>
          method.apply(this, given),
        );
      };
    }

    static #records(value: unknown): value is Light {
      return typeof value === 'object' && value !== null && #state in value && value.#state === 'recording';
    }

    /**
     * Called with the command that a host method made. MULTI and EXEC are recorded; others are sent as they are, except
     * those that the client itself must handle.
     */
    sendCommand(command: PipelinedCommand, ...rest: unknown[]): unknown {
      if (!Light.#records(this)) return host.sendCommand.call(this, command, ...rest);
      const variant = this.#variantOf(command);
      if (variant !== undefined) {
        this.#push(variant, []);
        return this;
      }
      if (!isSentAsItIs(command, this.#commandClass)) this.#becomeHosts('command');
      return host.sendCommand.call(this, command, ...rest);
    }

    override exec(...args: unknown[]): unknown {
      if (!Light.#records(this)) return host.exec.apply(this, args);
      const opens = this._transactions > 0;
      if (this._queue.length === 0 || (opens && !this.#isTransaction)) return host.exec.apply(this, args);
      const connection = this.#connection();
      if (typeof connection === 'string') {
        this.#becomeHosts(connection);
        return this.exec(...args);
      }
      if (opens) {
        this._transactions -= 1;
        this.#push(EXEC, []);
      }
      this.#state = 'sent';
      if (!this.#isTransaction) return this.#send(connection, args);
      const transaction = (this.#send(connection, []) as Promise<unknown>).then(unwrapTransaction);
      callBack(transaction, args[0]);
      return transaction;
    }

    execBuffer(...args: unknown[]): unknown {
      if (!(#state in this) || this.#state === 'host' || !this.#isTransaction) return host.execBuffer.apply(this, args);
      if (this._transactions > 0) host.execBuffer.call(this);
      return this.exec(...args);
    }

    /**
     * Records a command, or says why its method has to make a host command. Argument transformers run now, and their
     * results are kept: arrays and objects may change until `exec()`.
     */
    #record(variant: PipelineVariant, args: readonly unknown[]): FallThroughReason | undefined {
      const { client } = this.#route;
      const { command } = variant;
      if (client.options.showFriendlyErrorStack) return 'options';
      if (this.isCluster && command.keys === 'own') return 'routing';
      const keyPrefix = keyPrefixOf(client);
      const transformer = argumentTransformerOf(this.#commandClass, command.name);
      if (keyPrefix === undefined && transformer === undefined && arePlain(args)) {
        this.#push(variant, args);
        return undefined;
      }
      if (typeof args.at(-1) === 'function') return 'arguments';
      const flat = holdsArray(args) ? flatOf(args) : args;
      const transformation = transformer && runTransformer(transformer, flat.slice());
      const failed = transformation !== undefined && 'error' in transformation;
      // A transformer or getter may have sent the pipeline, or made it a host pipeline.
      const reason =
        failed || this.#state !== 'recording'
          ? 'transformer'
          : this.#recordPlain(variant, keyPrefix, transformation?.args ?? flat);
      if (reason !== undefined) {
        this.#transformation = transformation;
        this.#flattened = flat === args ? undefined : flat;
      }
      return reason;
    }

    #recordPlain(
      variant: PipelineVariant,
      keyPrefix: string | Buffer | undefined,
      args: readonly unknown[],
    ): FallThroughReason | undefined {
      const sent = arePlain(args) ? withAnyKeyPrefix(variant.command, keyPrefix, args) : undefined;
      if (sent === undefined) return 'arguments';
      this.#push(variant, sent);
      return undefined;
    }

    #push(variant: PipelineVariant, sent: readonly unknown[]): PipelineEntry {
      const entry = this.#entry(variant, sent);
      this._queue.push(entry);
      return entry;
    }

    #entry(variant: PipelineVariant, sent: readonly unknown[]): PipelineEntry {
      const kept = sent.length === 1 ? sent[0] : sent;
      const position = this._queue.length;
      if (variant === MULTI) this.#transaction = 'open';
      if (variant !== EXEC) return new PipelineEntry(variant, kept, this, position, this._transactions > 0);
      this.#transaction = 'closed';
      return new ExecEntry(variant, kept, this, position, this._transactions > 0);
    }

    /** MULTI in a pipeline, and the EXEC that follows. */
    #variantOf(command: PipelinedCommand): PipelineVariant | undefined {
      const { name, args, callback, replyEncoding } = command;
      if (name !== 'multi' && name !== 'exec') return undefined;
      if (args.length > 0 || callback !== undefined) return undefined;
      if (name === 'multi') return replyEncoding === 'utf8' && !this.#isTransaction ? MULTI : undefined;
      const begun = this._queue.some((queued) => queued instanceof PipelineEntry && queued.variant === MULTI);
      return replyEncoding === null && begun ? EXEC : undefined;
    }

    /** The connection that can send the pipeline now, or why the host must send it. */
    #connection(): Connection | FallThroughReason {
      const route = this.#route;
      const reason = route.fallThroughReason();
      if (reason !== undefined) return reason;
      if (!methods.areGenuine) return 'patched';
      if (this.#isTransaction && tracesBatches()) return 'traced';
      return route.connectionForPipeline(this.isCluster ? firstKeyOf(this._queue) : undefined);
    }

    #send(connection: Connection, args: readonly unknown[]): unknown {
      if (this.isCluster) {
        const { promise, sends } = execUnsent(this, host.exec, args);
        if (sends) connection.sendPipeline(this, this.#transaction);
        return promise;
      }
      this.nodeifiedPromise = true;
      callBack(this.promise, args[0]);
      this.replyPending = this._queue.length;
      connection.sendPipeline(this, this.#transaction);
      return this.promise;
    }

    #becomeHosts(reason: FallThroughReason): void {
      countFallThrough(this.#route, this.#isTransaction ? 'multi' : 'pipeline', reason);
      this.#state = 'host';
      if (this.#isTransaction) becomeHostTransaction(this, multi);
      const transactions = this._transactions;
      for (const command of this._queue.splice(0)) {
        if (command instanceof PipelineEntry) {
          this._transactions = command.inTransaction ? 1 : 0;
          const own = hostCommandOf(this.#commandClass, command.recorded);
          host.sendCommand.call(this, own);
        } else {
          this._queue.push(command);
        }
      }
      this._transactions = transactions;
    }
  }
  return Light;
}

/** Whether the encoder takes all of these. */
function arePlain(args: readonly unknown[]): boolean {
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index];
    if (typeof argument === 'string' || argument instanceof Buffer) continue;
    if (typeof argument !== 'number' || !isPlainNumber(argument)) return false;
  }
  return true;
}

function withAnyKeyPrefix(
  command: HotCommand,
  keyPrefix: string | Buffer | undefined,
  args: readonly unknown[],
): readonly unknown[] | undefined {
  return keyPrefix === undefined ? args : withKeyPrefix(command, keyPrefix, args);
}

function firstKeyOf(commands: readonly PipelinedCommand[]): unknown {
  for (const command of commands) {
    const [key] = command.getKeys();
    if (key !== undefined) return key;
  }
  return undefined;
}
