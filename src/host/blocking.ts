/** What the connections for blocking commands have to know of a client's queues and timeouts. */
import { commandTimeoutOf, inSubscriberMode, opensTransaction, placeIn } from './state.js';
import type { HostClient, HostCommand, HostCommandClass, HostQueue } from './types.js';

interface Queues {
  readonly commandQueue: HostQueue;
  readonly offlineQueue: HostQueue;
  /** Commands of the lost connection, until they are sent again. */
  readonly prevCommandQueue?: HostQueue | null;
}

/** Host: the message of `CONNECTION_CLOSED_ERROR_MSG`, `built/utils/index.js`. */
export const CONNECTION_CLOSED = 'Connection is closed.';

function queuesOf(client: HostClient): HostQueue[] {
  const { commandQueue, offlineQueue, prevCommandQueue } = client as unknown as Queues;
  return prevCommandQueue ? [commandQueue, offlineQueue, prevCommandQueue] : [commandQueue, offlineQueue];
}

/** Whether commands that were issued await their reply, sent or not. */
export function hasUnanswered(client: HostClient): boolean {
  return queuesOf(client).some(({ length }) => length > 0);
}

/** Whether a command awaits its reply, sent or not. It may be settled already, by a timeout. */
export function isUnanswered(client: HostClient, command: HostCommand): boolean {
  return queuesOf(client).some((queue) => placeIn(queue, command) >= 0);
}

/**
 * Whether a blocking command may go to another connection now. If not, the client's own `sendCommand` does what it would
 * do: refuse it, queue it in a transaction, or hand it to a test's stub.
 */
export function maySendElsewhere(client: HostClient): boolean {
  const { status, options } = client;
  if (status === 'end' || (status !== 'ready' && options.enableOfflineQueue === false)) return false;
  // The host's own property in monitor mode, or a test's stub.
  if (Object.hasOwn(client, 'sendCommand') || inSubscriberMode(client)) return false;
  // Host: what is issued before the connection is ready waits in its queues, MULTI too.
  return !opensTransaction(client);
}

/** Host: `sendCommand` starts these when a command is issued, sent or not. Starting them again changes nothing. */
export function startTimeouts(client: HostClient, command: HostCommand): void {
  const commandTimeout = commandTimeoutOf(client);
  const timed = command as HostCommand & { setTimeout(ms: number): void; setBlockingTimeout?(ms: number): void };
  if (commandTimeout !== undefined) timed.setTimeout(commandTimeout);
  // Later versions: the option `blockingTimeout`.
  const { getBlockingTimeoutInMs } = client as { getBlockingTimeoutInMs?(command: HostCommand): number | undefined };
  const ms = getBlockingTimeoutInMs?.call(client, command);
  if (ms !== undefined) timed.setBlockingTimeout?.(ms);
}

/** Calls `left` once, when the command is settled, or handed back to its Cluster with an error. */
export function whenLeft(command: HostCommand, left: () => void): void {
  const { resolve, reject } = command;
  const leave = () => {
    command.resolve = resolve;
    command.reject = reject;
    left();
  };
  command.resolve = (reply) => {
    leave();
    return resolve.call(command, reply);
  };
  command.reject = (error) => {
    leave();
    reject.call(command, error);
  };
}

/** The command is settled, but still in the queue of a connection that ends: that must not settle it again. */
export function neverSettle(command: HostCommand): void {
  command.resolve = () => {};
  command.reject = () => {};
}

/** A command in the class of another one. */
export function makeLike(command: HostCommand, name: string, ...args: unknown[]): HostCommand {
  return new (command.constructor as unknown as HostCommandClass)(name, args, { replyEncoding: null }) as HostCommand;
}
