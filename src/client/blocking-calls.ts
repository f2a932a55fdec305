import type { MadeCommand } from '../host/command-class.js';
import { isGenuineMethod } from '../host/probe.js';
import type { AnyFunction, HasOptions, HostCommand } from '../host/types.js';
import { BLOCKING_COMMANDS, type BlockedQueue, mayWaitElsewhere, waits, watchBlocking } from './blocking-watch.js';
import { asCommandMethod, callHost } from './hot-path.js';

interface BlockingSender {
  /** Sends a command that waits on a connection of its own. */
  send(command: HostCommand): unknown;
  /** The client was disconnected. A Cluster's nodes notice that themselves. */
  disconnected?(): void;
}

/** What the methods of blocking commands need of an attachment. */
export interface BlockingRoute extends BlockedQueue {
  readonly client: HasOptions & { sendCommand: AnyFunction };
  /** Set with the option `blocking`. */
  readonly blocking: BlockingSender | undefined;
}

/**
 * The methods of blocking commands, for the overlay, and `disconnect`. Later it is checked whether other commands wait
 * behind them.
 */
export function blockingMethods(
  parent: Record<string, unknown>,
  find: (receiver: unknown) => BlockingRoute | undefined,
): Record<string, AnyFunction> {
  const methods: Record<string, AnyFunction> = {};
  for (const name of BLOCKING_COMMANDS) {
    for (const methodName of [name, `${name}Buffer`]) {
      if (typeof parent[methodName] !== 'function') continue;
      methods[methodName] = asCommandMethod(function blocking(...args) {
        const method = parent[methodName] as AnyFunction;
        const route = find(this);
        if (route === undefined) return callHost(method, this, args);
        const sent = sendElsewhere(route, name, method, args);
        if (sent !== undefined) return sent;
        watchBlocking(route, name, args);
        return callHost(method, this, args);
      });
    }
  }
  if (typeof parent.disconnect !== 'function') return methods;
  methods.disconnect = function disconnect(...args) {
    const result = (parent.disconnect as AnyFunction).apply(this, args);
    const [reconnect] = args;
    if (!reconnect) find(this)?.blocking?.disconnected?.();
    return result;
  };
  return methods;
}

/**
 * Sends a blocking command on a connection of its own; undefined if it has to stay on the client's.
 *
 * @param args - all arguments of the method.
 * @param leading - how many of them are in front of the command's.
 */
export function sendElsewhere(
  { blocking, client }: BlockingRoute,
  name: string,
  method: AnyFunction,
  args: readonly unknown[],
  leading = 0,
): unknown {
  if (blocking === undefined || !mayWaitElsewhere(name, args) || !isGenuineMethod(method)) return undefined;
  const command = commandOfCall(client, method, args, leading);
  // Its transformer has thrown. Host: it sends the command nevertheless, and cannot settle it.
  if (command.resolve === undefined) return command.promise;
  return waits(command) ? blocking.send(command as HostCommand) : client.sendCommand(command);
}

/** The command that a method of the host's makes: it is run on an object that only keeps it, and nothing is sent. */
function commandOfCall(
  client: HasOptions,
  method: AnyFunction,
  args: readonly unknown[],
  leading: number,
): MadeCommand {
  let made: MadeCommand | undefined;
  const receiver = {
    options: Object.create(client.options, { enableAutoPipelining: { value: false } }) as object,
    sendCommand(command: MadeCommand) {
      made = command;
    },
  };
  callHost(method, receiver, args, leading);
  return made as MadeCommand;
}
