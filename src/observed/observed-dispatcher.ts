import type { CommandVariant } from '../commands/fast-commands.js';
import type { Connection } from '../core/connection.js';
import type { CallEntry } from '../core/entry.js';
import { announceWrite } from '../core/host-writes.js';
import type { Chained, Dispatcher, Outgoing } from '../core/outgoing.js';
import type { ClusterRouting } from '../host/cluster.js';
import { isLayeredInClass, publishCommand, selectedDatabase } from '../host/state.js';
import type { AnyFunction } from '../host/types.js';
import type { FallbackReason } from '../stats.js';
import { LayeredEntry } from './layered-entry.js';

/** The client, node or Cluster whose `sendCommand` has layers. */
export interface Through {
  sendCommand: AnyFunction;
}

/** Whether commands that fall back for this reason can still be fast. With a cache, answers would bypass the layers. */
export function canBeObserved({ client, incoming }: Connection, reason: FallbackReason): boolean {
  return reason === 'traced' || (reason === 'patched' && incoming === undefined && isLayeredInClass(client));
}

/**
 * Sends *published* commands: subscribers of the host's channel `ioredis:command` see them (fallback reason `traced`).
 */
export class PublishedDispatcher implements Dispatcher {
  constructor(
    readonly outgoing: Outgoing,
    readonly through: Through,
  ) {}

  dispatch(
    variant: CommandVariant,
    args: readonly unknown[],
    routing: ClusterRouting | undefined,
    _call: undefined,
    chained: Chained | undefined,
  ): Promise<unknown> {
    const { outgoing, through } = this;
    let published: Promise<unknown> | undefined;
    const sent = (entry: CallEntry) => {
      outgoing.stats.observedCommands += 1;
      published = publishCommand(outgoing.client, entry);
    };
    // Host: a Cluster's own `sendCommand` returns the command's promise, whatever its node returns.
    const isNodes = routing !== undefined && through === outgoing.client;
    const promise = outgoing.dispatch(variant, args, isNodes ? routing : undefined, { unfused: true, sent }, chained);
    return isNodes ? promise : (published ?? promise);
  }
}

/**
 * Sends *layered* commands: other code has put layers over `sendCommand` (fallback reason `patched`). Commands pass
 * through the layers, which may change them and what is returned. Below, the host's own `sendCommand` gets the entry's
 * bytes (`HostWriteHook`) and queues it.
 */
export class LayeredDispatcher implements Dispatcher {
  constructor(
    readonly outgoing: Outgoing,
    readonly through: Through,
  ) {}

  dispatch(
    variant: CommandVariant,
    args: readonly unknown[],
    routing: ClusterRouting | undefined,
    _call: undefined,
    chained: Chained | undefined,
  ): Promise<unknown> {
    const { outgoing, through } = this;
    const { client } = outgoing;
    const refusal = outgoing.admission?.refusalOf(1);
    if (refusal !== undefined) return Promise.reject(refusal);
    const isNodes = routing !== undefined && through === client;
    const context = isNodes ? outgoing.contextIn(routing) : outgoing.context;
    const entry = new LayeredEntry(variant, context, args, selectedDatabase(client));
    if (chained !== undefined) entry.promise = chained(entry.promise);
    try {
      const returned = through.sendCommand(entry) as Promise<unknown>;
      // Host: a Cluster returns the command's promise, whatever its node returns.
      return isNodes ? entry.promise : returned;
    } finally {
      // If a layer sends it later, its arguments may have changed by then.
      announceWrite(undefined);
    }
  }
}
