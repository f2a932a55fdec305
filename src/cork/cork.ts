/**
 * `ioredis-coalesce/cork`: one write a turn by public API alone: a client's `stream` and its event `connect`, a
 * Cluster's `nodes()` and its event `+node`, Node's `cork()` and `uncork()`. It serves any release of any client that
 * has these.
 */
import type { Duplex } from 'node:stream';
import { CODES, coded, describe } from '../errors.js';
import { type CorkOptions, resolveCorkOptions } from '../options.js';
import { type Corked, type CorkObserver, corkStream } from './stream-cork.js';

export type { CorkOptions } from '../options.js';
export { type Corked, type CorkFlushReason, type CorkObserver, corkStream } from './stream-cork.js';

interface Client {
  readonly stream?: Duplex;
  nodes?(): Client[];
  on(event: string, listener: (node: Client) => void): unknown;
  removeListener(event: string, listener: (node: Client) => void): unknown;
  [CORKED]?: Corked;
}

const CORKED = Symbol.for('ioredis-coalesce.corked-client');

/** The cork of a client, whichever copy of this package put it on. */
export const corkOf = (client: object): Corked | undefined => (client as Client)[CORKED];

/**
 * Corks a client: the commands that it writes in one turn of the event loop leave in one write.
 *
 * @param client - a client of ioredis or iovalkey, connected or not, or a Cluster, whose nodes come and go. One that is
 *   corked keeps its cork.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` for a value that is no client; `COALESCE_ERR_OPTION` for an unknown option
 *   or a wrong type.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export function cork(client: object, options: CorkOptions = {}, observer?: CorkObserver): Corked {
  const { on, nodes } = Object(client) as Client;
  if (typeof on !== 'function') {
    throw coded(TypeError, CODES.CLIENT, `cork() expects a client or a Cluster, got ${describe(client)}`);
  }
  const resolved = resolveCorkOptions(options);
  const present = corkOf(client);
  if (present !== undefined) return present;
  const source = client as Client;
  const event = nodes === undefined ? 'connect' : '+node';
  let ofStream: Corked | undefined;
  let isOn = true;
  const corkPart = (node: Client) => {
    const { stream } = source;
    if (!isOn) return;
    if (nodes !== undefined) cork(node, resolved, observer);
    // Before it is connected nobody reads it; the next connection has another one.
    else if (stream && stream.listenerCount('data') > 0) ofStream = corkStream(stream, resolved, observer);
  };
  const parts = () => (nodes === undefined ? [ofStream] : nodes.call(client).map(corkOf));
  const corked: Corked = {
    flush() {
      for (const part of parts()) part?.flush();
    },
    undo() {
      if (!isOn) return;
      isOn = false;
      source.removeListener(event, corkPart);
      for (const part of parts()) part?.undo();
      Reflect.deleteProperty(client, CORKED);
    },
  };
  source.on(event, corkPart);
  for (const part of nodes?.call(client) ?? [source]) corkPart(part);
  // Not on a client that is frozen: its streams know that they are corked.
  Reflect.defineProperty(client, CORKED, { value: corked, configurable: true });
  return corked;
}
