import { type Call, guarded } from '../connection/call.js';
import { dropUnsent } from '../host/offline-queue.js';
import type { AnyFunction, HostCommand } from '../host/types.js';

interface Sending {
  sendCommand: AnyFunction;
}

/**
 * Sends a command by the host's own `sendCommand`.
 *
 * Host: a command that has a timer keeps it when `sendCommand` wants to start that of `commandTimeout`.
 *
 * @param call - the options of the call, if it has any.
 * @param args - the command, and what else the host passes.
 */
export function sendWith(call: Call | undefined, client: Sending, args: readonly [HostCommand, ...unknown[]]): unknown {
  if (call === undefined) return client.sendCommand(...args);
  const { signal, timeout } = call;
  if (signal?.aborted) return Promise.reject(signal.reason);
  const [command] = args as readonly [HostCommand & { setTimeout?(ms: number): void }];
  if (timeout !== undefined) command.setTimeout?.(timeout);
  return guardedIfPromise(client.sendCommand(...args), call, undefined, () => dropUnsent(client, command));
}

/** What a method has returned, with the caller's signal and time, if it is a promise. */
export function guardedIfPromise(result: unknown, call: Call, ms: number | undefined, aborted?: () => void): unknown {
  return result instanceof Promise ? guarded(result, call, ms, aborted) : result;
}
