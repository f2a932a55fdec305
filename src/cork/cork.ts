/**
 * `ioredis-coalesce/cork`: batches each turn's writes with public APIs only: a client's `stream` and `connect` event, a
 * Cluster's `nodes()` and `+node` event, and Node's `cork()` and `uncork()`. It works with any client that has these.
 */
import type { Duplex } from 'node:stream';
import { CODES, coded, describe } from '../errors.js';
import { type CorkOptions, resolveCorkOptions } from '../options.js';
import { baseMethod, viewedBy } from '../util/values.js';
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

/** The client's cork, even if another copy of this package installed it. */
export const corkOf = (client: object): Corked | undefined => (client as Client)[CORKED];

/**
 * Corks a client, so that the commands it writes in one turn of the event loop leave in one write.
 *
 * @param given - an ioredis or iovalkey client, connected or not, or a Cluster, whose nodes may come and go. A corked
 *   client keeps its cork.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `given` is not a client; `COALESCE_ERR_OPTION` for an unknown option or
 *   a wrong type.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export function cork(given: object, options: CorkOptions = {}, observer?: CorkObserver): Corked {
  const client = viewedBy(Object(given) as object);
  const { on, nodes } = client as Client;
  if (typeof on !== 'function') {
    throw coded(TypeError, CODES.CLIENT, `cork() expects a client or a Cluster, got ${describe(given)}`);
  }
  const resolved = resolveCorkOptions(options);
  const present = corkOf(client);
  if (present !== undefined) return present;
  const source = client as Client;
  const event = nodes === undefined ? 'connect' : '+node';
  // An attachment may be made within the client's constructor. A client given by users may forward its methods.
  const methodOf = <Name extends 'on' | 'removeListener' | 'nodes'>(name: Name) =>
    observer === undefined ? source[name] : baseMethod(source, name);
  let streamCork: Corked | undefined;
  let isInstalled = true;
  const corkCurrent = (node: Client) => {
    const { stream } = source;
    if (!isInstalled) return;
    if (nodes !== undefined) cork(node, resolved, observer);
    // A stream without a `data` listener is not connected yet, and `connect` may bring another one.
    else if (stream && stream.listenerCount('data') > 0) streamCork = corkStream(stream, resolved, observer);
  };
  const corks = () => (nodes === undefined ? [streamCork] : nodes.call(client).map(corkOf));
  const corked: Corked = {
    flush() {
      for (const each of corks()) each?.flush();
    },
    undo() {
      if (!isInstalled) return;
      isInstalled = false;
      methodOf('removeListener').call(source, event, corkCurrent);
      for (const each of corks()) each?.undo();
      Reflect.deleteProperty(client, CORKED);
    },
  };
  methodOf('on').call(source, event, corkCurrent);
  for (const each of methodOf('nodes')?.call(source) ?? [source]) corkCurrent(each);
  // A frozen client cannot hold its cork, but its streams hold theirs.
  Reflect.defineProperty(client, CORKED, { value: corked, configurable: true });
  return corked;
}
