import type { Client } from './hosts.js';

type Call = (name: string, ...args: unknown[]) => Promise<unknown>;

/**
 * Sends a command that could take the fast path through the host, as `call()` of a plain client does: the host's own
 * method is the last one on the client's chain of prototypes.
 */
export function cold(client: object, name: string, ...args: unknown[]): ReturnType<Client['call']> {
  let own: Call | undefined;
  for (let holder: object | null = client; holder !== null; holder = Object.getPrototypeOf(holder)) {
    if (Object.hasOwn(holder, 'call')) own = (holder as { call: Call }).call;
  }
  if (own === undefined) throw new TypeError(`cold() expects a client with the method call(), got one without`);
  return own.call(client, name, ...args);
}
