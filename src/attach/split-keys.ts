import calculateSlot from 'cluster-key-slot';
import { type CallTarget, callTargetOf, type KeySplitter, SPLITS } from '../calls/call-target.js';
import { countFallback, Fallback } from '../calls/fallback.js';
import type { Sender } from '../calls/sender.js';
import { sendWith } from '../calls/view.js';
import { KEY_POSITIONS } from '../commands/fast-commands.js';
import { guarded } from '../connection/entries/signals.js';
import type { PendingBound } from '../connection/sending/pending-bound.js';
import type { HostCluster } from '../host/cluster.js';
import { argumentTransformerOf, isRejected, transformsReply, withTransformation } from '../host/command-class.js';
import { commandClassOf } from '../host/probe.js';
import type { HostCommand, HostCommandClass, MadeCommand } from '../host/types.js';
import type { CallOptions } from '../options.js';
import type { FallbackReason } from '../stats.js';
import { asCallback } from '../util/promises.js';
import { addOverlay, removeOverlay } from './overlay.js';

/** The part of a call whose keys are in one slot. */
interface SlotPart {
  /** Keys, or keys and their values in turn. */
  readonly args: (string | Buffer)[];
  /** The position of each key among those of the call. */
  readonly positions: number[];
}

/** Makes the reply of the call from those of its parts. */
type Join = (replies: readonly unknown[], parts: readonly SlotPart[]) => unknown;

const JOINS: ReadonlyMap<string, Join> = new Map<string, Join>([
  ['mget', inOrderOfCall],
  ['mset', (replies) => replies[0]],
  ...['del', 'unlink', 'exists', 'touch'].map((name) => [name, sum] as const),
]);

/**
 * The option `splitKeys` of a Cluster: a command with keys of several slots is sent as several commands, one per slot,
 * each to its node in the batch of this turn. Each is redirected by itself.
 *
 * A command of the host's that is never sent stands for the whole call. The host reads the arguments for it, applies
 * `keyPrefix`, and makes the caller's value of the joined reply.
 */
export class SplitKeys implements KeySplitter {
  constructor(
    readonly target: CallTarget & { readonly client: HostCluster },
    readonly commandClass: HostCommandClass,
  ) {}

  send(sender: Sender, given: readonly unknown[], call: CallOptions | undefined): Promise<unknown> | undefined {
    const { command, encoding: replyEncoding } = sender.variant;
    const { name, keys } = command;
    const join = JOINS.get(name.toLowerCase());
    const rule = KEY_POSITIONS[keys];
    if (join === undefined || rule === undefined || rule.count === 0) return undefined;
    const { client } = this.target;
    const { commandClass } = this;
    const last = given[given.length - 1];
    const args = typeof last === 'function' ? given.slice(0, -1) : given;
    const { keyPrefix } = client.options;
    const transforms = argumentTransformerOf(commandClass, name) !== undefined;
    if (!transforms && rule.step === 1 && areInOneSlot(args, keyPrefix)) return undefined;
    const errorStack = client.options.showFriendlyErrorStack ? new Error() : undefined;
    const whole = new commandClass(name, args, { keyPrefix, replyEncoding, errorStack });
    const joined = this.#sendWhole(sender, join, rule.step, whole, call);
    // The parts keep the time of the call. Its signal rejects the caller, and drops parts that wait for a connection.
    const sent = call === undefined ? joined : guarded(joined, call, undefined);
    asCallback(sent, last);
    return sent;
  }

  async #sendWhole(
    sender: Sender,
    join: Join,
    step: number,
    whole: MadeCommand,
    call: CallOptions | undefined,
  ): Promise<unknown> {
    // Host: it sends the command nevertheless, and cannot settle it.
    if (isRejected(whole)) return whole.promise;
    const { name } = sender.variant.command;
    const parts = whole.name === name ? partsOf(whole.args as (string | Buffer)[], step) : [];
    if (parts.length === 0) return sendWith(call, this.target.client, [whole as HostCommand]);
    try {
      this.#refuseWhole(parts);
      const replies = await Promise.all(parts.map(({ args }) => this.#sendPart(sender, args, call)));
      whole.resolve?.(join(replies, parts));
    } catch (error) {
      // Host: an error of the server says which command it answers, with the arguments.
      if (Object.hasOwn(error as Error, 'command'))
        Object.assign(error as Error, { command: { name, args: whole.args } });
      whole.reject(error as Error);
    }
    return whole.promise;
  }

  /** Throws if `maxPending` refuses a part: all parts are sent, or none. */
  #refuseWhole(parts: readonly SlotPart[]): void {
    const commands = new Map<PendingBound | undefined, number>();
    for (const { args } of parts) {
      const bound = this.target.pendingBoundFor?.(args[0]);
      commands.set(bound, (commands.get(bound) ?? 0) + 1);
    }
    for (const [bound, count] of commands) {
      const refusal = bound?.refusalOf(count);
      if (refusal !== undefined) throw refusal;
    }
  }

  #sendPart(sender: Sender, args: unknown[], call: CallOptions | undefined): unknown {
    const { target, commandClass } = this;
    const { name } = sender.variant.command;
    if (target.commandClass !== undefined && !transformsReply(commandClass, name)) {
      const sent = sender.sendPrepared(target, { sent: args, key: args[0] }, args, call);
      if (!(sent instanceof Fallback)) return sent;
      countFallback(target, name, sent.reason);
    }
    const make = () => new commandClass(name, args, { replyEncoding: null });
    const transforms = argumentTransformerOf(commandClass, name) !== undefined;
    const part = transforms ? withTransformation(commandClass, name, { args }, make) : make();
    // The reply of the whole call is transformed, once.
    part.transformReply = (reply) => reply;
    return sendWith(call, target.client, [part as HostCommand]);
  }
}

/**
 * What is left of the option `splitKeys` on a Cluster that is not coalesced, after `detach()` or with
 * `IOREDIS_COALESCE=off`: a switch for speed does not change what a call means.
 */
export class PlainSplitting implements CallTarget {
  readonly enabled = false;
  readonly splitter: SplitKeys;

  /** @param client - without an overlay. */
  constructor(
    readonly client: HostCluster,
    commandClass: HostCommandClass,
  ) {
    this.splitter = new SplitKeys(this, commandClass);
    Object.defineProperty(client, SPLITS, { value: this, configurable: true });
    addOverlay(client, { splitKeys: true, maxPending: undefined });
  }

  /** Starts it, unless the Cluster's `Command` class is not found: then the host answers all calls. */
  static start(client: HostCluster): void {
    const commandClass = commandClassOf(client);
    if (commandClass) new PlainSplitting(client, commandClass);
  }

  /** Ends it, if it has been started: the Cluster is about to be coalesced. */
  static end(client: HostCluster): void {
    if (Reflect.has(client, SPLITS) && Reflect.deleteProperty(client, SPLITS)) removeOverlay(client);
  }

  fallbackReason(): FallbackReason {
    return 'connection';
  }

  connectionFor(): FallbackReason {
    return 'connection';
  }

  attachCopy(copy: object, [, override]: readonly unknown[]): void {
    const isAsked = (override as { coalesce?: unknown } | undefined)?.coalesce !== undefined;
    if (!isAsked && callTargetOf(copy) === undefined) PlainSplitting.start(copy as HostCluster);
  }
}

/** Whether these are plain keys, and all in one slot. */
function areInOneSlot(keys: readonly unknown[], prefix: string | Buffer = ''): boolean {
  if (keys.length === 1) return !Array.isArray(keys[0]);
  if (typeof prefix !== 'string') return false;
  let first: number | undefined;
  for (const key of keys) {
    if (typeof key !== 'string') return false;
    const slot = calculateSlot(prefix + key);
    first ??= slot;
    if (slot !== first) return false;
  }
  return true;
}

/**
 * The parts, in the order of their first keys. Arguments of which a value is missing stay one part: then the server gives
 * the error that it would give for them, and none about slots.
 *
 * @param step - from one key to the next.
 */
function partsOf(args: readonly (string | Buffer)[], step: number): SlotPart[] {
  const bySlot = new Map<number, SlotPart>();
  const [key, value] = args as [string | Buffer, string | Buffer];
  if (args.length % step !== 0) return [{ args: args.length < step ? [key] : [key, value, key], positions: [] }];
  for (let index = 0; index < args.length; index += step) {
    const slot = calculateSlot(args[index] as string | Buffer);
    let part = bySlot.get(slot);
    if (part === undefined) {
      part = { args: [], positions: [] };
      bySlot.set(slot, part);
    }
    part.args.push(...args.slice(index, index + step));
    part.positions.push(index / step);
  }
  return [...bySlot.values()];
}

function inOrderOfCall(replies: readonly unknown[], parts: readonly SlotPart[]): unknown[] {
  const values: unknown[] = [];
  for (const [index, { positions }] of parts.entries()) {
    const found = replies[index] as unknown[];
    for (const [place, position] of positions.entries()) values[position] = found[place];
  }
  return values;
}

/** Host: with `stringNumbers` replies are text. */
function sum(replies: readonly unknown[]): unknown {
  const total = replies.reduce<number>((before, reply) => before + Number(reply), 0);
  return typeof replies[0] === 'number' ? total : String(total);
}
