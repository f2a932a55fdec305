import type { CommandVariant, FastCommand } from '../commands/fast-commands.js';
import { variantOf } from '../connection/entries/entry.js';
import { type ArgumentTransformer, argumentTransformerOf } from '../host/command-class.js';
import { isUnpatchedMethod } from '../host/probe.js';
import type { AnyFunction, HostCommandClass } from '../host/types.js';
import type { CallOptions } from '../options.js';
import { asCallback } from '../util/promises.js';
import { areEncodable, type Prepared, prepareArguments } from './arguments.js';
import type { CallTarget } from './call-target.js';
import { type ArgumentsSoFar, Fallback } from './fallback.js';

/** A layer around all that senders send: `send` sends the call, with these arguments. */
type AroundSends = (
  sender: Sender,
  target: CallTarget,
  given: unknown[],
  send: (given: unknown[]) => unknown,
) => unknown;
let around: AroundSends | undefined;

export function aroundSends(layer: AroundSends): void {
  around = layer;
}

/**
 * May this call be encoded here? If so, sends it. The question is the same for single commands, `call` and scripts;
 * how their keys are found and how they are encoded is not.
 */
export abstract class Sender {
  /** The command that is sent. */
  abstract readonly variant: CommandVariant;
  /** The host's own method, as last seen. */
  protected unpatched: AnyFunction | undefined;

  /** Whether the keys among the arguments have to be found before a call is sent. */
  protected abstract needsKeys(target: CallTarget): boolean;
  /** Flat arguments, transformed and with `keyPrefix`, and their first key. */
  protected abstract prepare(
    target: CallTarget,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
  ): Prepared | Fallback;
  /** What the caller gets in place of the promise that the reply settles. */
  protected chained?(
    client: CallTarget['client'],
    args: readonly unknown[],
    call: CallOptions | undefined,
  ): (promise: Promise<unknown>) => Promise<unknown>;

  /** These arguments in the form in which they can be encoded here; undefined if the host has to do it. */
  protected encodableOf(args: readonly unknown[]): readonly unknown[] | undefined {
    return areEncodable(args) ? args : undefined;
  }

  /**
   * @param method - the one below ours, which may have been patched.
   * @param call - the options of this call, if it has any.
   */
  send(target: CallTarget, method: AnyFunction, given: unknown[], call?: CallOptions): Promise<unknown> | Fallback {
    if (around !== undefined) return this.#sendThrough(around, target, method, given, call);
    const { commandClass } = target;
    if (commandClass === undefined) return new Fallback('connection');
    if (method !== this.unpatched) {
      if (!isUnpatchedMethod(method, this.variant, commandClass)) return new Fallback('patched');
      this.unpatched = method;
    }
    const last = given.length > 0 ? given[given.length - 1] : undefined;
    const args = typeof last === 'function' ? given.slice(0, -1) : given;
    const { command } = this.variant;
    const transformer = argumentTransformerOf(commandClass, command.name);
    // A tracer would see another promise than the one that has the callback.
    const watchable = call === undefined && typeof last !== 'function';
    const encodable = transformer === undefined && !this.needsKeys(target) ? this.encodableOf(args) : undefined;
    const sent =
      encodable === undefined
        ? this.#prepareAndSend(target, args, transformer, call, watchable)
        : this.#sendEncodable(target, encodable, args[0], undefined, args, call, watchable);
    if (typeof last === 'function' && !(sent instanceof Fallback)) asCallback(sent, last);
    return sent;
  }

  #sendThrough(layer: AroundSends, target: CallTarget, method: AnyFunction, given: unknown[], call?: CallOptions) {
    // What is sent within is part of the call.
    around = undefined;
    try {
      const send = (args: unknown[]) => this.send(target, method, args, call);
      return layer(this, target, given, send) as ReturnType<typeof send>;
    } finally {
      around = layer;
    }
  }

  #prepareAndSend(
    target: CallTarget,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
    call: CallOptions | undefined,
    watchable: boolean,
  ): Promise<unknown> | Fallback {
    const prepared = this.prepare(target, args, transformer);
    if (prepared instanceof Fallback) return prepared;
    const { sent, key, argumentsSoFar } = prepared;
    return this.#sendEncodable(target, this.encodableOf(sent), key, argumentsSoFar, args, call, watchable);
  }

  /**
   * Ordering: called when user code has run.
   *
   * @param encodable - the arguments as they are encoded; undefined if they cannot be.
   * @param args - those of the call.
   */
  #sendEncodable(
    target: CallTarget,
    encodable: readonly unknown[] | undefined,
    key: unknown,
    argumentsSoFar: ArgumentsSoFar | undefined,
    args: readonly unknown[],
    call: CallOptions | undefined,
    watchable: boolean,
  ): Promise<unknown> | Fallback {
    const { variant } = this;
    const { command } = variant;
    const found = target.connectionFor(command, key);
    const observed = typeof found === 'string' && watchable ? target.observedFor(found, command, key) : undefined;
    const connection = observed?.connection ?? found;
    if (typeof connection === 'string') return new Fallback(connection, argumentsSoFar);
    if (encodable === undefined) return new Fallback('arguments', argumentsSoFar);
    // A call that reads past the cache is sent without asking: its answer is kept all the same.
    const asks = connection.cache !== undefined && command.cacheable && call?.cache !== false;
    const answer = asks ? connection.cache.lookUp(variant, encodable) : undefined;
    const refusal = answer === undefined ? connection.pendingBound?.refusalOf(1) : undefined;
    if (refusal !== undefined) return Promise.reject(refusal);
    const { routing, client } = target;
    // Ordering: asked last, when it is certain that the command is sent: from now on the host assumes that the script
    // is loaded. Behind layers the host asks the entry, when it writes it.
    const form = observed?.isLayered ? variant : (variant.script?.formOn(connection.stream) ?? variant);
    const chained = this.chained?.(client, args, call);
    const { outgoing } = connection;
    const sent =
      observed === undefined
        ? outgoing.send(form, encodable, routing, call, answer, chained)
        : outgoing.sendObserved(observed, form, encodable, routing, answer, chained);
    if (asks) connection.cache.issued(variant, encodable, answer);
    return sent;
  }
}

/** Sends the commands of one name. */
export class CommandSender extends Sender {
  readonly variant: CommandVariant;

  constructor(command: FastCommand, encoding: 'utf8' | null) {
    super();
    this.variant = variantOf(command, encoding);
  }

  protected needsKeys({ client }: CallTarget): boolean {
    return Boolean(client.options.keyPrefix);
  }

  protected prepare(
    { client, commandClass }: CallTarget,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
  ): Prepared | Fallback {
    const { command } = this.variant;
    return prepareArguments(command, commandClass as HostCommandClass, client.options.keyPrefix, transformer, args);
  }
}
