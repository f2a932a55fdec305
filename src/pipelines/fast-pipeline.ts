import { callHost, countFallback } from '../calls/call-host.js';
import {
  type CommandVariant,
  FAST_COMMANDS,
  type FastCommand,
  methodsNamed,
  UNLISTED,
} from '../commands/fast-commands.js';
import { type CallTarget, callTargetOf } from '../core/call-target.js';
import { variantOf } from '../core/entry.js';
import type { Outgoing } from '../core/outgoing.js';
import { Fallback, prepareArguments } from '../host/arguments.js';
import { argumentTransformerOf, settlesInFinally } from '../host/command-class.js';
import type { EntryContext } from '../host/command-facade.js';
import {
  areUnpatched,
  areUnpatchedMakers,
  aroundExec,
  countOfCopied,
  execUnsent,
  type HostPipeline,
  hostTransactionExec,
  inheritConstructor,
  isAutoPipeline,
  isSentAsItIs,
  keepCopied,
  type PipelinedCommand,
  type PipelineMethods,
  pipelineClass,
  unwrapTransaction,
  withCopied,
} from '../host/pipeline.js';
import { isUnpatchedMethod, methodOf } from '../host/probe.js';
import { publishesTransactions } from '../host/state.js';
import type { AnyFunction, HostClient } from '../host/types.js';
import { areEncodable } from '../resp/encoder.js';
import type { FallbackReason } from '../stats.js';
import { asCallback, rejectedWith } from '../util/promises.js';
import { EXEC, ExecEntry, MULTI, PipelineEntry, PipelineRecording } from './pipeline-entry.js';
import { sendPipeline } from './send-pipeline.js';

interface FastPipeline extends HostPipeline {
  readonly [RECORDING]: Recording;
  execBuffer?: AnyFunction;
  addBatch(commands: readonly unknown[]): unknown;
}

type FastPipelineClass = new (client: object, target: CallTarget, unsent: EntryContext) => FastPipeline;

/** The field of a fast pipeline's recording. Hiding it from `util.inspect` would double the cost of a pipeline. */
const RECORDING = Symbol('recording');

type Recording = PipelineRecording<CallTarget>;

/** The recording of a fast pipeline; undefined for a Proxy of it, or an object derived from it. */
function recordingOf(receiver: unknown): Recording | undefined {
  const recording = (receiver as Partial<FastPipeline> | undefined)?.[RECORDING];
  return recording?.pipeline === receiver ? recording : undefined;
}

/** Selects a pipeline's node: a Cluster sends a pipeline to the master for the slot of its first key. */
const ANY_WRITE: FastCommand = { ...UNLISTED, name: '' };

/**
 * A subclass of the host's pipelines that is cheaper to create and to fill.
 *
 * A pipeline records its commands as fast entries; in between are commands that only the host can create. `exec()`
 * encodes all of them, then adds them to the client's queue and their bytes to its batch in one step. If that is not
 * possible, the host's `exec` sends entries and commands alike.
 */
function fastPipelineClass(host: PipelineMethods): FastPipelineClass {
  class Fast extends pipelineClass(host) implements FastPipeline {
    declare addBatch: FastPipeline['addBatch'];
    readonly [RECORDING]: Recording;

    constructor(client: object, target: CallTarget, unsent: EntryContext) {
      super(client, target.routing !== undefined);
      this[RECORDING] = new PipelineRecording(this, target, unsent);
    }

    static {
      inheritConstructor(Fast);
      for (const command of FAST_COMMANDS) {
        for (const [name, encoding] of methodsNamed(command.name)) {
          if (typeof host[name] === 'function') {
            const value = recordingMethod(host, name, variantOf(command, encoding));
            Object.assign(Fast.prototype, { [name]: value });
          }
        }
      }
      // Enumerable like the host's, for `for … in`.
      Object.defineProperty(Fast.prototype, 'exec', { enumerable: true });
    }

    override exec(...args: unknown[]): unknown {
      return trySend(host, recordingOf(this), args[0]) ?? host.exec.apply(this, args);
    }
  }
  return Fast;
}

/** Makes a pipeline a transaction like the host, by adding `exec()` and `execBuffer()`. */
function makeTransaction(pipeline: FastPipeline, host: PipelineMethods, multi: AnyFunction): void {
  pipeline[RECORDING].isTransaction = true;
  pipeline.exec = function exec(this: unknown, ...args) {
    const sent = trySend(host, recordingOf(this), args[0]);
    return sent ?? hostTransactionExec(pipeline, multi).apply(this, args);
  };
  pipeline.execBuffer = function execBuffer(this: unknown, ...args) {
    if ((this as HostPipeline)._transactions > 0) host.execBuffer.call(pipeline);
    return pipeline.exec(...args);
  };
}

/** Sends the recorded commands; returns undefined if the host has to send them. */
function trySend(
  host: PipelineMethods,
  recording: Recording | undefined,
  callback: unknown,
): Promise<unknown> | undefined {
  if (recording === undefined) return undefined;
  const { isTransaction, pipeline } = recording;
  // Host: after `multi()` in a pipeline, `exec()` records EXEC.
  const sends = pipeline._queue.length > 0 && pipeline._transactions <= (isTransaction ? 1 : 0);
  if (!recording.open || !sends || pipeline.nodeifiedPromise) return undefined;
  const outgoing = outgoingFor(host, recording);
  if (typeof outgoing === 'string') {
    countFallback(recording.target, isTransaction ? 'multi' : 'pipeline', outgoing);
    recording.open = false;
    return undefined;
  }
  if (!isTransaction) return send(host, recording, outgoing, callback);
  if (pipeline._transactions > 0) {
    pipeline._transactions -= 1;
    pipeline._queue.push(new ExecEntry(EXEC, [], recording));
  }
  const transaction = send(host, recording, outgoing).then(unwrapTransaction);
  asCallback(transaction, callback);
  return transaction;
}

/** The connection that can send the pipeline now, or why the host must send it. */
function outgoingFor(
  host: PipelineMethods,
  { target, isTransaction, pipeline, context }: Recording,
): Outgoing | FallbackReason {
  if (!areUnpatched(host)) return 'patched';
  for (const command of pipeline._queue) {
    if (!(command instanceof PipelineEntry) && !isSentAsItIs(command, context.commandClass)) return 'command';
  }
  if (isTransaction && publishesTransactions()) return 'traced';
  if (target.routing?.readsFromMasters === false) return 'routing';
  return target.outgoingFor(ANY_WRITE, pipeline.isCluster ? firstKeyOf(pipeline._queue) : undefined);
}

function send(host: PipelineMethods, recording: Recording, outgoing: Outgoing, callback?: unknown): Promise<unknown> {
  const { pipeline } = recording;
  if (pipeline.isCluster) {
    const { promise, sends } = execUnsent(pipeline, host.exec, callback);
    if (sends) sendPipeline(outgoing, recording);
    return promise;
  }
  pipeline.nodeifiedPromise = true;
  asCallback(pipeline.promise, callback);
  pipeline.replyPending = pipeline._queue.length;
  sendPipeline(outgoing, recording);
  return pipeline.promise;
}

function recordingMethod(host: Record<string, AnyFunction>, name: string, variant: CommandVariant): AnyFunction {
  let unpatched: AnyFunction | undefined;
  return function record(this: unknown, ...args) {
    const method = host[name] as AnyFunction;
    const recording = recordingOf(this);
    if (!recording?.open) return callHost(method, this, args);
    const isUnpatched = method === unpatched || isUnpatchedMethod(method, variant, recording.context.commandClass);
    if (isUnpatched) unpatched = method;
    const left = isUnpatched ? tryRecord(recording, variant, args) : new Fallback('patched');
    if (left === undefined) return this;
    countFallback(recording.target, name, left.reason);
    return callHost(method, this, args, 0, left.argumentsSoFar);
  };
}

/**
 * Records a command, or returns why the host has to. Argument transformers run now, and their results are kept, because
 * arrays and objects may change before `exec()`.
 */
function tryRecord(recording: Recording, variant: CommandVariant, args: readonly unknown[]): Fallback | undefined {
  const { client } = recording.target;
  const { command } = variant;
  if (client.options.showFriendlyErrorStack) return new Fallback('options');
  if (command.keys === 'own' && recording.pipeline.isCluster) return new Fallback('routing');
  const { keyPrefix } = client.options;
  const transformer = argumentTransformerOf(recording.context.commandClass, command.name);
  let sent = args;
  if (keyPrefix || transformer !== undefined || !areEncodable(args)) {
    const prepared = prepareArguments(command, recording.context.commandClass, keyPrefix, transformer, args);
    if (prepared instanceof Fallback) return prepared;
    sent = prepared.sent;
    if (!areEncodable(sent)) return new Fallback('arguments', prepared.argumentsSoFar);
  }
  recording.pipeline._queue.push(new PipelineEntry(variant, sent.length === 1 ? sent[0] : sent, recording));
  return undefined;
}

function firstKeyOf(commands: readonly PipelinedCommand[]): unknown {
  for (const command of commands) {
    const [key] = command.getKeys();
    if (key !== undefined) return key;
  }
  return undefined;
}

const READS = new Set(FAST_COMMANDS.flatMap(({ name, readOnly }) => (readOnly ? [name] : [])));
const reads = (command?: PipelinedCommand) =>
  command !== undefined && (READS.has(command.name) || command.isReadOnly === true);

/**
 * Makes `exec()` reject and send nothing if it would exceed `maxPending`. The commands of an auto-pipeline are separate
 * calls, so those within the limit are sent.
 */
export function refuseWhole(made: unknown, target: CallTarget): void {
  // Host: a Cluster calls `exec()` again to redirect a pipeline.
  let accepted = false;
  aroundExec(made, (pipeline, send, args) => {
    const { _queue: queue, _transactions: transactions } = pipeline;
    // Host: the first command determines the node of a Cluster.
    const readOnly = transactions === 0 && reads(queue[0]);
    const bound = accepted || !target.enabled ? undefined : target.admissionFor(firstKeyOf(queue), readOnly);
    const refusal = bound?.refusalOf(queue.length + transactions);
    accepted = refusal === undefined || isAutoPipeline(pipeline);
    if (bound === undefined || refusal === undefined) return send(args);
    if (!accepted) return rejectedWith(refusal, args[0]);
    const refused = bound.refuseBeyond(queue).map(() => [refusal]);
    const done = args[0] as AnyFunction;
    return send([(error: unknown, results?: unknown[]) => done(error, results && [...results, ...refused])]);
  });
}

/** Shared by the pipelines of one client. */
interface ClientPipelines {
  readonly pipelineClass: FastPipelineClass;
  readonly copied: number;
  /** The context of their entries until they are sent, or if the host sends them. */
  readonly unsent: EntryContext;
}

const clients = new WeakMap<object, ClientPipelines>();

/** A script of the client is about to be defined. Host: it copies the methods when it makes a pipeline. */
export function keepScripts(client: unknown): void {
  const made = clients.get(client as object);
  if (made === undefined || made.copied === 0) return;
  keepCopied(made.pipelineClass, client as object);
  clients.delete(client as object);
}

/**
 * `pipeline` and `multi` for the overlay of a client class. They create fast pipelines, or call the host's method if
 * the fast path is not available. This file records commands, `send-pipeline.ts` sends them, `pipeline-entry.ts`
 * settles them.
 */
export function pipelineMethods(parent: Record<string, AnyFunction>): Record<string, AnyFunction> {
  if (methodOf(parent, 'pipeline') === undefined || methodOf(parent, 'multi') === undefined) return {};
  /** The prototype of the host's pipelines, and our subclass; set by the first pipeline. */
  let host: PipelineMethods | undefined;
  let baseClass: FastPipelineClass | undefined;

  return {
    pipeline(commands, ...rest) {
      const made = make(this, 'pipeline');
      if (made === undefined) return (parent.pipeline as AnyFunction).call(this, commands, ...rest);
      if (Array.isArray(commands)) made.addBatch(commands);
      return made;
    },
    // Host: `multi(commands, options)` and `multi(options)`.
    multi(...args) {
      const [commands, options] = args[1] === undefined && !Array.isArray(args[0]) ? [undefined, args[0]] : args;
      const isPipelined = !options || (options as { pipeline?: unknown }).pipeline !== false;
      const made = isPipelined ? make(this, 'multi') : undefined;
      if (made === undefined) return (parent.multi as AnyFunction).apply(this, args);
      made._transactions = 1;
      made._queue.push(new PipelineEntry(MULTI, [], made[RECORDING]));
      if (Array.isArray(commands)) made.addBatch(commands);
      // Host: the `exec()` that sends is added last, so an `exec` among `commands` has recorded EXEC.
      makeTransaction(made, host as PipelineMethods, parent.multi as AnyFunction);
      return made;
    },
  };

  function make(client: unknown, kind: 'pipeline' | 'multi'): FastPipeline | undefined {
    const target = callTargetOf(client);
    if (target === undefined) return undefined;
    const made = tryMake(client as object, target);
    if (typeof made !== 'string') return made;
    countFallback(target, kind, made);
    return undefined;
  }

  function tryMake(client: object, target: CallTarget): FastPipeline | FallbackReason {
    const { commandClass } = target;
    if (commandClass === undefined) return 'connection';
    const reason = target.fallbackReason();
    if (reason !== undefined) return reason;
    if (!areUnpatchedMakers(parent)) return 'patched';
    host ??= Object.getPrototypeOf((parent.pipeline as AnyFunction).call(client)) as PipelineMethods;
    baseClass ??= fastPipelineClass(host);
    const copied = countOfCopied(client);
    let ofClient = clients.get(client);
    if (ofClient?.copied !== copied) {
      const pipelineClass = copied === 0 ? baseClass : withCopied(baseClass, client);
      const unsent = { client: client as HostClient, commandClass, settlesInFinally: settlesInFinally(commandClass) };
      ofClient = { pipelineClass, copied, unsent };
      clients.set(client, ofClient);
    }
    return new ofClient.pipelineClass(client, target, ofClient.unsent);
  }
}
