/** What the host's `multi()` adds to a pipeline (`built/transaction.js`). */
import { type HostPipeline, type PipelineResult, setOwn } from './pipeline.js';
import type { AnyFunction } from './types.js';

/**
 * Gives a light transaction the `exec` and `execBuffer` that the host makes for each.
 *
 * Host: they are closures over the object that `multi()` made. That object becomes another name of ours: it has
 * nothing of its own any more, and what is read or set on it is read or set on ours.
 */
export function becomeHostTransaction(pipeline: HostPipeline, multi: AnyFunction): void {
  const made = multi.call(pipeline.redis) as Record<PropertyKey, unknown>;
  setOwn(pipeline, 'exec', made.exec);
  setOwn(pipeline, 'execBuffer', made.execBuffer);
  for (const name of Reflect.ownKeys(made)) Reflect.deleteProperty(made, name);
  const alias = new Proxy(pipeline, {
    get: (target, name) => Reflect.get(target, name),
    set: (target, name, value) => Reflect.set(target, name, value),
  });
  Object.setPrototypeOf(made, alias);
}

const SENT_ALREADY = 'Pipeline cannot be used to send any commands when the `exec()` has been called on it.';

/**
 * What the host makes of a transaction's results: those of EXEC, or its error with those of the commands before.
 * Host: `built/transaction.js`, `wrapMultiResult` in `built/utils/index.js`.
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
  // The last reply may not be that of EXEC, nor an array: others were added behind it, or replies were left out
  // (`CLIENT REPLY`).
  return Array.from(values as ArrayLike<unknown>, (value) => (value instanceof Error ? [value] : [null, value]));
}
