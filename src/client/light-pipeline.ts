import { HOT_COMMANDS } from '../commands/hot-commands.js';
import type { Connection } from '../connection/connection.js';
import {
  EXEC,
  ExecEntry,
  encodePipeline,
  MULTI,
  PipelineEntry,
  PipelineVariant,
} from '../connection/pipeline-entry.js';
import {
  addHostCommand,
  becomeHostTransaction,
  callBack,
  execUnsent,
  type HostPipeline,
  hostCommandOf,
  type PipelineMethods,
  pipelineClass,
  unwrapTransaction,
} from '../host/pipeline.js';
import { isGenuineMethod } from '../host/probe.js';
import { keyPrefixOf, tracesBatches } from '../host/state.js';
import type { AnyFunction, HostCommand, HostCommandClass } from '../host/types.js';
import { isPlainNumber, type Part } from '../resp/encoder.js';
import type { FallThroughReason } from '../stats.js';
import { debugFallThrough } from '../util/debug.js';
import { type HotRoute, withKeyPrefix } from './hot-path.js';

/** A pipeline of more bytes is left to the host, which writes it as one Buffer. */
const MAX_BYTES = 64 * 1024 * 1024;

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
 * - `recording`: holds light entries only.
 * - `sent`: they were sent as one piece; what is called now is the host's.
 * - `host`: it was made the host's ordinary pipeline by replaying what was recorded.
 */
type State = 'recording' | 'sent' | 'host';

/** A pipeline that can take the hot path. */
interface Ready {
  readonly connection: Connection;
  readonly encoded: Part[];
}

/**
 * The host's pipelines, made and filled lightly.
 *
 * A pipeline records its commands as light entries. `exec()` encodes all, then puts their entries into the client's
 * queue and their bytes into its batch in one step. The moment anything is not plain, the host's own commands are made
 * of what was recorded, and from then on it is the host's pipeline as ever.
 *
 * @param methods - of the host's pipelines.
 * @param multi - the host's method that makes transactions.
 */
export function lightPipelineClass(methods: PipelineMethods, multi: AnyFunction): LightPipelineClass {
  const host = methods.prototype;

  class Light extends pipelineClass(host) implements LightPipeline {
    declare addBatch: LightPipeline['addBatch'];
    #state: State = 'recording';
    #holdsExec = false;
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
        if (method !== genuine) {
          if (!isGenuineMethod(method)) return this.#leave('patched', method, args);
          genuine = method;
        }
        return this.#record(variant, method, args);
      };
    }

    static #records(value: unknown): value is Light {
      return typeof value === 'object' && value !== null && #state in value && value.#state === 'recording';
    }

    /** Called with the command that another method of the pipeline made. MULTI and EXEC are recorded. */
    sendCommand(command: HostCommand, ...rest: unknown[]): unknown {
      if (!Light.#records(this)) return host.sendCommand.call(this, command, ...rest);
      const variant = this.#variantOf(command);
      if (variant === undefined) return this.#leave('command', host.sendCommand, [command, ...rest]);
      this.#push(variant, []);
      return this;
    }

    override exec(...args: unknown[]): unknown {
      if (!Light.#records(this)) return host.exec.apply(this, args);
      const opens = this._transactions > 0;
      if (this._queue.length === 0 || (opens && !this.#isTransaction)) return host.exec.apply(this, args);
      const ready = this.#prepare();
      if (typeof ready === 'string') {
        this.#becomeHosts(ready);
        return this.exec(...args);
      }
      if (opens) {
        this._transactions -= 1;
        ready.encoded.push(...encodePipeline([this.#push(EXEC, [])]));
      }
      this.#state = 'sent';
      if (!this.#isTransaction) return this.#send(ready, args);
      const transaction = (this.#send(ready, []) as Promise<unknown>).then(unwrapTransaction);
      callBack(transaction, args[0]);
      return transaction;
    }

    execBuffer(...args: unknown[]): unknown {
      if (!(#state in this) || this.#state === 'host' || !this.#isTransaction) return host.execBuffer.apply(this, args);
      if (this._transactions > 0) host.execBuffer.call(this);
      return this.exec(...args);
    }

    /** Argument transformers run now, and what they give is kept: arrays and objects may change until `exec()`. */
    #record(variant: PipelineVariant, method: AnyFunction, args: unknown[]): unknown {
      const { client } = this.#route;
      const { command, encoding } = variant;
      if (client.options.showFriendlyErrorStack) return this.#leave('options', method, args);
      if (this.isCluster && command.keys === 'own') return this.#leave('routing', method, args);
      const keyPrefix = keyPrefixOf(client);
      const transformer = this.#commandClass._transformer.argument[command.name];
      if (keyPrefix === undefined && transformer === undefined && arePlain(args)) {
        this.#push(variant, args);
        return this;
      }
      if (transformer !== undefined && typeof transformer !== 'function') {
        return this.#leave('transformer', method, args);
      }
      const callback = typeof args.at(-1) === 'function' ? (args.pop() as AnyFunction) : undefined;
      const flat = args.flat();
      const transformed = transformer === undefined ? () => flat : outcomeOf(transformer, flat);
      const sent = this.#sendable(variant, keyPrefix, transformed);
      if (typeof sent === 'string') {
        this.#becomeHosts(sent);
        const recorded = { name: command.name, args: flat, encoding, keyPrefix, callback };
        addHostCommand(this, host, hostCommandOf(this.#commandClass, recorded, transformed));
      } else if (callback === undefined) {
        this.#push(variant, sent);
      } else {
        const entry = this.#entry(variant, sent);
        entry.callBackWith(callback);
        addHostCommand(this, host, entry);
      }
      return this;
    }

    /** What goes out of transformed arguments. */
    #sendable(
      { command }: PipelineVariant,
      keyPrefix: string | Buffer | undefined,
      transformed: () => unknown[],
    ): readonly unknown[] | FallThroughReason {
      let args: unknown[];
      try {
        args = transformed();
      } catch {
        return 'transformer';
      }
      if (!arePlain(args)) return 'arguments';
      return keyPrefix === undefined ? args : (withKeyPrefix(command, keyPrefix, args) ?? 'arguments');
    }

    #push(variant: PipelineVariant, sent: readonly unknown[]): PipelineEntry {
      const entry = this.#entry(variant, sent);
      this._queue.push(entry);
      return entry;
    }

    #entry(variant: PipelineVariant, sent: readonly unknown[]): PipelineEntry {
      const kept = sent.length === 1 ? sent[0] : sent;
      const position = this._queue.length;
      if (variant !== EXEC) return new PipelineEntry(variant, kept, this, position, this._transactions > 0);
      this.#holdsExec = true;
      return new ExecEntry(variant, kept, this, position, this._transactions > 0);
    }

    /** MULTI in a pipeline, and the EXEC that follows. */
    #variantOf(command: HostCommand): PipelineVariant | undefined {
      const { name, args, callback, replyEncoding } = command as HostCommand & Record<string, unknown>;
      if (args.length > 0 || callback !== undefined) return undefined;
      if (name === 'multi' && replyEncoding === 'utf8' && !this.#isTransaction) return MULTI;
      const begun = (this._queue as PipelineEntry[]).some(({ variant }) => variant === MULTI);
      return name === 'exec' && replyEncoding === null && begun ? EXEC : undefined;
    }

    /** Encodes all that was recorded, or says why the pipeline is the host's. */
    #prepare(): Ready | FallThroughReason {
      const route = this.#route;
      const reason = route.fallThroughReason();
      if (reason !== undefined) return reason;
      if (!methods.areGenuine) return 'patched';
      if (this.#isTransaction && tracesBatches()) return 'traced';
      const entries = this._queue as PipelineEntry[];
      const connection = route.connectionForPipeline(this.isCluster ? firstKeyOf(entries) : undefined);
      if (typeof connection === 'string') return connection;
      const encoded = encodePipeline(entries);
      return encoded.reduce((bytes, part) => bytes + part.length, 0) > MAX_BYTES ? 'size' : { connection, encoded };
    }

    #send({ connection, encoded }: Ready, args: readonly unknown[]): unknown {
      const entries = this._queue as PipelineEntry[];
      if (this.isCluster) {
        const { promise, sends } = execUnsent(this, host.exec, args);
        if (sends) connection.sendPipeline(entries, encoded, this.#holdsExec);
        return promise;
      }
      this.nodeifiedPromise = true;
      callBack(this.promise, args[0]);
      this.replyPending = entries.length;
      connection.sendPipeline(entries, encoded, this.#holdsExec);
      return this.promise;
    }

    #leave(reason: FallThroughReason, method: AnyFunction, args: readonly unknown[]): unknown {
      this.#becomeHosts(reason);
      return method.apply(this, args as unknown[]);
    }

    #becomeHosts(reason: FallThroughReason): void {
      this.#route.counters.fellThrough(reason);
      if (debugFallThrough.enabled) debugFallThrough('%s: %s', this.#isTransaction ? 'multi' : 'pipeline', reason);
      this.#state = 'host';
      if (this.#isTransaction) becomeHostTransaction(this, multi);
      const transactions = this._transactions;
      for (const entry of this._queue.splice(0) as PipelineEntry[]) {
        this._transactions = entry.inTransaction ? 1 : 0;
        addHostCommand(
          this,
          host,
          hostCommandOf(this.#commandClass, entry.recorded, (args) => args),
        );
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

/** Calls a transformer, once; the function that is returned gives what it gave, or throws what it threw. */
function outcomeOf(transformer: (args: unknown[]) => unknown[], args: unknown[]): () => unknown[] {
  try {
    const outcome = transformer(args);
    return () => outcome;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function firstKeyOf(entries: readonly PipelineEntry[]): unknown {
  for (const entry of entries) {
    const [key] = entry.getKeys();
    if (key !== undefined) return key;
  }
  return undefined;
}
