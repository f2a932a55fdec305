/** What the host's `multi()` adds to a pipeline (`built/transaction.js`). */
import type { HostPipeline, PipelineResult } from './pipeline.js';
import type { AnyFunction } from './types.js';

/** The methods that the host makes for each transaction. */
export interface TransactionMethods {
  readonly exec: AnyFunction;
  readonly execBuffer: AnyFunction;
}

/**
 * The host's `exec` and `execBuffer` for a light transaction.
 *
 * Host: they are closures over the object that `multi()` made. That object becomes an alias of ours: it has no own
 * properties left, and every read or write of a property goes to ours.
 */
export function hostTransaction(pipeline: HostPipeline, multi: AnyFunction): TransactionMethods {
  const made = multi.call(pipeline.redis) as Record<PropertyKey, AnyFunction>;
  const { exec, execBuffer } = made as unknown as TransactionMethods;
  for (const name of Reflect.ownKeys(made)) Reflect.deleteProperty(made, name);
  const alias = new Proxy(pipeline, {
    get: (target, name) => Reflect.get(target, name),
    set: (target, name, value) => Reflect.set(target, name, value),
  });
  Object.setPrototypeOf(made, alias);
  return { exec, execBuffer };
}

const SENT_ALREADY = 'Pipeline cannot be used to send any commands when the `exec()` has been called on it.';

/**
 * The result that the host makes for a transaction: the results of EXEC, or its error with those of the earlier
 * commands. Host: `built/transaction.js`, `wrapMultiResult` in `built/utils/index.js`.
 */
export function unwrapTransaction(results: unknown): unknown {
  const settled = results as PipelineResult[];
  const last = settled[settled.length - 1];
  if (last === undefined) throw new Error(SENT_ALREADY);
  const [error, values] = last;
  if (error) {
    const before = settled.slice(0, -1).flatMap(([previous]) => (previous ? [previous] : []));
    (error as { previousErrors: unknown[] }).previousErrors = before;
    throw error;
  }
  if (!values) return null;
  // The last reply may not be that of EXEC, nor an array: other commands were added after it, or replies were omitted
  // (`CLIENT REPLY`).
  return Array.from(values as ArrayLike<unknown>, (value) => (value instanceof Error ? [value] : [null, value]));
}
