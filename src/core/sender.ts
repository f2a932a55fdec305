import type { CommandVariant, FastCommand } from '../commands/fast-commands.js';
import { type ArgumentsSoFar, Fallback, type Prepared, prepareArguments } from '../host/arguments.js';
import { type ArgumentTransformer, argumentTransformerOf } from '../host/command-class.js';
import { isUnpatchedMethod } from '../host/probe.js';
import type { AnyFunction, HostCommandClass } from '../host/types.js';
import { areEncodable } from '../resp/encoder.js';
import { asCallback } from '../util/promises.js';
import type { CallTarget } from './call-target.js';
import { variantOf } from './entry.js';
import type { Call } from './features.js';
import type { Chained } from './outgoing.js';

/** A function around every call, the advisor's; `send` sends the call with the given arguments. */
export type AroundSends = (
  sender: Sender,
  target: CallTarget,
  given: unknown[],
  send: (given: unknown[]) => unknown,
) => unknown;
let around: AroundSends | undefined;
/** It is running: commands that are sent now belong to its call, and do not pass it again. */
let isWithin = false;

export function aroundSends(layer: AroundSends | undefined): void {
  around = layer;
}

/**
 * Sends a call on the fast path if it can be encoded here. The check is the same for single commands, `call` and
 * scripts; subclasses find the keys and encode.
 */
export abstract class Sender {
  /** The command that is sent. */
  abstract readonly variant: CommandVariant;
  /** The host's own method, as last seen. */
  protected unpatched: AnyFunction | undefined;

  /** Whether a call's keys must be found before it is sent. */
  protected abstract needsKeys(target: CallTarget): boolean;
  /** Flat arguments, transformed and with `keyPrefix`, and their first key. */
  protected abstract prepare(
    target: CallTarget,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
  ): Prepared | Fallback;
  /** The promise that the caller gets instead of the one that the reply settles. */
  protected chained?(client: CallTarget['client'], args: readonly unknown[], call: Call | undefined): Chained;

  /** The arguments in a form that can be encoded here; undefined if the host has to encode them. */
  protected encodableOf(args: readonly unknown[]): readonly unknown[] | undefined {
    return areEncodable(args) ? args : undefined;
  }

  /**
   * @param method - the one below ours, which may have been patched.
   * @param call - the options of this call, if it has any.
   */
  send(target: CallTarget, method: AnyFunction, given: unknown[], call?: Call): Promise<unknown> | Fallback {
    if (around !== undefined && !isWithin) return this.#sendThrough(around, target, method, given, call);
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
    // An observed call with options or a callback falls back: a tracer must see the promise that has the callback.
    const mayBeSeen = call === undefined && typeof last !== 'function';
    const encodable = transformer === undefined && !this.needsKeys(target) ? this.encodableOf(args) : undefined;
    const sent =
      encodable === undefined
        ? this.#prepareAndSend(target, args, transformer, call, mayBeSeen)
        : this.#sendEncodable(target, encodable, args[0], undefined, args, call, mayBeSeen);
    if (typeof last === 'function' && !(sent instanceof Fallback)) asCallback(sent, last);
    return sent;
  }

  #sendThrough(layer: AroundSends, target: CallTarget, method: AnyFunction, given: unknown[], call?: Call) {
    isWithin = true;
    try {
      const send = (args: unknown[]) => this.send(target, method, args, call);
      return layer(this, target, given, send) as ReturnType<typeof send>;
    } finally {
      isWithin = false;
    }
  }

  #prepareAndSend(
    target: CallTarget,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
    call: Call | undefined,
    mayBeSeen: boolean,
  ): Promise<unknown> | Fallback {
    const prepared = this.prepare(target, args, transformer);
    if (prepared instanceof Fallback) return prepared;
    const { sent, key, argumentsSoFar } = prepared;
    return this.#sendEncodable(target, this.encodableOf(sent), key, argumentsSoFar, args, call, mayBeSeen);
  }

  /**
   * Ordering: no user code runs from here on, except async hooks and layers over `sendCommand`.
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
    call: Call | undefined,
    mayBeSeen: boolean,
  ): Promise<unknown> | Fallback {
    const { variant } = this;
    const found = target.dispatcherFor(variant.command, key, mayBeSeen);
    if (typeof found === 'string') return new Fallback(found, argumentsSoFar);
    if (encodable === undefined) return new Fallback('arguments', argumentsSoFar);
    return found.dispatch(variant, encodable, target.routing, call, this.chained?.(target.client, args, call));
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
