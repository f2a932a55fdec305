import type { Coalescer } from '../handle.js';
import type { AnyFunction } from '../host/types.js';
import { BLOCKING_COMMANDS, type BlockedQueue, watchBlocking } from './blocking-watch.js';
import { hotCalls } from './hot-calls.js';
import { hotMethods } from './hot-path.js';
import type { PipelineRoute } from './light-pipeline.js';
import { DEFINERS, replaceDefined, replaceOwnMethods, restoreOwnMethods } from './own-methods.js';
import { pipelineMethods } from './pipelines.js';

/** On a coalesced client or Cluster, whichever copy of this package did it. */
const MARK = Symbol.for('ioredis-coalesce.coalescer');

/** What stands behind the mark. */
export interface Attachment extends Coalescer, PipelineRoute, BlockedQueue {
  /** Coalesces what the host's `duplicate(...args)` made. */
  attachCopy(copy: object, args: readonly unknown[]): void;
}

interface Marked {
  [MARK]?: Attachment;
}

/** The prototype layers, one for each class of clients. */
const layers = new WeakMap<object, object>();

/** Whether `client` is coalesced already, by this copy of the package or another one. */
export function isAttached(client: object): boolean {
  return (client as Marked)[MARK] !== undefined;
}

/**
 * Puts the layer between a client and its class, `client → layer → Redis.prototype`. The layer holds the hot methods,
 * `duplicate` and `coalescer`, so that a client has one own property more, and its class none.
 */
export function addOverlay(client: object, attached: Attachment): void {
  Object.defineProperty(client, MARK, { value: attached, configurable: true });
  Object.setPrototypeOf(client, overlayFor(Object.getPrototypeOf(client)));
  replaceOwnMethods(client, findRoute);
}

/** @returns whether `attached` was what the client is marked with, and is not any more. */
export function removeOverlay(client: object, attached: Attachment): boolean {
  if ((client as Marked)[MARK] !== attached) return false;
  Reflect.deleteProperty(client, MARK);
  restoreOwnMethods(client);
  const layer = Object.getPrototypeOf(client) as object;
  const parent = Object.getPrototypeOf(layer) as object;
  // Someone may have put another prototype in front; the layer finds no mark then and passes everything on.
  if (layers.get(parent) === layer) Object.setPrototypeOf(client, parent);
  return true;
}

function overlayFor(parent: object): object {
  let layer = layers.get(parent);
  if (layer === undefined) {
    layer = createOverlay(parent);
    layers.set(parent, layer);
  }
  return layer;
}

function createOverlay(parent: object): object {
  const layer = Object.create(parent) as object;
  Object.defineProperties(layer, {
    coalescer: {
      get(this: Marked) {
        return this[MARK];
      },
      configurable: true,
    },
    duplicate: {
      value(this: Marked, ...args: unknown[]) {
        const copy = (parent as { duplicate(...args: unknown[]): object }).duplicate.apply(this, args);
        this[MARK]?.attachCopy(copy, args);
        return copy;
      },
      writable: true,
      configurable: true,
    },
  });
  return Object.assign(
    layer,
    hotMethods(parent, findRoute),
    hotCalls(parent, findRoute),
    pipelineMethods(parent as Record<string, AnyFunction>, findRoute),
    blockingMethods(parent as Record<string, unknown>),
    definingMethods(parent as Record<string, unknown>),
  );
}

function findRoute(receiver: unknown): PipelineRoute | undefined {
  const attached = (receiver as Marked | undefined)?.[MARK];
  return attached !== undefined && attached.client === receiver ? attached : undefined;
}

/** What the host defines on the client itself hides the layer, so it is replaced there. */
function definingMethods(parent: Record<string, unknown>): Record<string, AnyFunction> {
  const methods: Record<string, AnyFunction> = {};
  for (const methodName of DEFINERS) {
    if (typeof parent[methodName] !== 'function') continue;
    methods[methodName] = function define(name, ...args) {
      const result = (parent[methodName] as AnyFunction).call(this, name, ...args);
      if (findRoute(this) !== undefined) replaceDefined(this as object, String(name), findRoute);
      return result;
    };
  }
  return methods;
}

/** Blocking commands go to the host as they are; what waits behind them is looked at later. */
function blockingMethods(parent: Record<string, unknown>): Record<string, AnyFunction> {
  const methods: Record<string, AnyFunction> = {};
  for (const name of BLOCKING_COMMANDS) {
    for (const methodName of [name, `${name}Buffer`]) {
      if (typeof parent[methodName] !== 'function') continue;
      methods[methodName] = function blocking(...args) {
        const attached = (this as Marked | undefined)?.[MARK];
        if (attached !== undefined) watchBlocking(attached, name, args);
        return (parent[methodName] as AnyFunction).apply(this, args);
      };
    }
  }
  return methods;
}
