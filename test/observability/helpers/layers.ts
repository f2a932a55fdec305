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

/** A layer as a function of the call of the next one, the command, and the client. */
export const around =
  <T = unknown>(through: (send: () => unknown, command: Command, client: T) => unknown): Layer =>
  (original) =>
    function (...all) {
      return through(() => original.apply(this, all), all[0], this as T);
    };

/** As OpenTelemetry's: it replaces `resolve` and `reject` when the command has been sent. */
export const replacing = (log: unknown[], tag = ''): Layer =>
  around((send, command) => {
    log.push([`${tag}sent`, command.name, [...command.args]]);
    const returned = send();
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
  });

/** As a wrapper that only counts: it touches nothing. */
export const passing = (log: unknown[]): Layer =>
  around((send, { name }) => {
    log.push(['passed', name]);
    return send();
  });

/** As Datadog's and Elastic's: it follows the promise. */
export const following = (log: unknown[], tag = ''): Layer =>
  around((send, command) => {
    command.promise.then(
      () => log.push([`${tag}fulfilled`, command.name, ...command.args]),
      (error: Error) => log.push([`${tag}failed`, command.name, error.message]),
    );
    return send();
  });
