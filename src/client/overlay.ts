import type { Coalescer } from '../handle.js';
import type { AnyFunction } from '../host/types.js';
import { BLOCKING_COMMANDS, type BlockedQueue, watchBlocking } from './blocking-watch.js';
import { hotCalls } from './hot-calls.js';
import { hotMethods } from './hot-path.js';
import { removeIdleHandle } from './idle.js';
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

/** The two forms of the layer. `bare` has no methods of commands, so nothing of ours is on the stack of their callers. */
export type OverlayForm = 'hot' | 'bare';

/** The prototype layers by form, one of each for a class of clients. */
const layers = { hot: new WeakMap<object, object>(), bare: new WeakMap<object, object>() };

/** What coalesces `client`, if it is coalesced, by this copy of the package or another one. */
export function attachedTo(client: object): Coalescer | undefined {
  return (client as Marked)[MARK];
}

/**
 * Puts the layer between a client and its class, `client → layer → Redis.prototype`. The layer holds the hot methods
 * unless it is bare, `duplicate` and `coalescer`, so that a client has one own property more, and its class none.
 */
export function addOverlay(client: object, attached: Attachment, form: OverlayForm): void {
  removeIdleHandle(client);
  Object.defineProperty(client, MARK, { value: attached, configurable: true });
  Object.setPrototypeOf(client, overlayFor(Object.getPrototypeOf(client), form));
  if (form === 'hot') replaceOwnMethods(client, findRoute);
}

/** @returns whether `attached` was what the client is marked with, and is not any more. */
export function removeOverlay(client: object, attached: Attachment): boolean {
  if ((client as Marked)[MARK] !== attached) return false;
  Reflect.deleteProperty(client, MARK);
  restoreOwnMethods(client);
  const layer = Object.getPrototypeOf(client) as object;
  const parent = Object.getPrototypeOf(layer) as object;
  // Someone may have put another prototype in front; the layer finds no mark then and passes everything on.
  if (layers.hot.get(parent) === layer || layers.bare.get(parent) === layer) Object.setPrototypeOf(client, parent);
  return true;
}

function overlayFor(parent: object, form: OverlayForm): object {
  let layer = layers[form].get(parent);
  if (layer === undefined) {
    layer = createBareOverlay(parent);
    if (form === 'hot') addCommandMethods(layer, parent);
    layers[form].set(parent, layer);
  }
  return layer;
}

function createBareOverlay(parent: object): object {
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
        // One of the drop-in class has its own setting.
        if (!('coalescer' in copy)) this[MARK]?.attachCopy(copy, args);
        return copy;
      },
      writable: true,
      configurable: true,
    },
  });
  return layer;
}

function addCommandMethods(layer: object, parent: object): void {
  Object.assign(
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
