/** A command as a layer over `sendCommand` meets it, the host's or ours. */
export interface Command {
  name: string;
  args: unknown[];
  promise: Promise<unknown>;
  resolve(reply: unknown): unknown;
  reject(error: Error): void;
}

export type Send = (this: unknown, command: Command, ...rest: unknown[]) => unknown;
export type Layer = (original: Send) => Send;

/**
 * Puts layers over the `sendCommand` of one client's or Cluster's class, the last one on top; no other client has them.
 */
export function layer<T extends object>(client: T, ...layers: readonly Layer[]): T {
  const prototype = Object.create(Object.getPrototypeOf(client) as object) as { sendCommand: Send };
  for (const each of layers) {
    const value = each(prototype.sendCommand);
    Object.defineProperty(prototype, 'sendCommand', { value, writable: true, configurable: true });
  }
  Object.setPrototypeOf(client, prototype);
  return client;
}

/** As OpenTelemetry's: it replaces `resolve` and `reject` when the command has been sent. */
export function replacing(log: unknown[], tag = ''): Layer {
  return (original) =>
    function (command, ...rest) {
      log.push([`${tag}sent`, command.name, [...command.args]]);
      const returned = original.call(this, command, ...rest);
      const { resolve, reject } = command;
      command.resolve = (reply) => {
        log.push([`${tag}resolved`, command.name, reply]);
        return resolve(reply);
      };
      command.reject = (error) => {
        log.push([`${tag}rejected`, command.name, error.message]);
        reject(error);
      };
      return returned;
    };
}

/** As a wrapper that only counts: it touches nothing. */
export function passing(log: unknown[]): Layer {
  return (original) =>
    function (...all) {
      log.push(['passed', all[0].name]);
      return original.apply(this, all);
    };
}

/** As Datadog's and Elastic's: it follows the promise. */
export function following(log: unknown[], tag = ''): Layer {
  return (original) =>
    function (command, ...rest) {
      command.promise.then(
        () => log.push([`${tag}fulfilled`, command.name, ...command.args]),
        (error: Error) => log.push([`${tag}failed`, command.name, error.message]),
      );
      return original.call(this, command, ...rest);
    };
}
