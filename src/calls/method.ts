import { type CallTarget, callTargetOf } from '../core/call-target.js';
import type { Sender } from '../core/sender.js';
import { Fallback } from '../host/arguments.js';
import type { AnyFunction } from '../host/types.js';
import { callHost, countFallback } from './call-host.js';

/** The definition of a method of ours. A view uses it for the same calls with other options (`view.ts`). */
export interface MethodSpec {
  readonly methodName: string;
  /** The object with the host's method of this name. */
  readonly parent: Readonly<Record<string, unknown>>;
  /** The number of arguments before the command's own, such as the name in `call(name, …)`. */
  readonly leading?: number;
  /** Sends the calls that can be fast. If the command is named in the call, `senderFor` finds the sender. */
  readonly sender?: Sender;
  senderFor?(target: CallTarget, name: unknown): Sender | undefined;
  /** Composes a call from several calls of the parent's method. */
  readonly compose?: ((args: unknown[], send: (args: unknown[]) => unknown) => unknown) | undefined;
  /** Called with all arguments of a call without a sender, before the host's method sends it. */
  onFallback?(target: CallTarget, args: readonly unknown[]): void;
}

/** Holds a method's definition, which refers to its client: a `WeakMap` keeps values too long (docs/performance.md). */
const SPEC = Symbol('spec');
type Marked = AnyFunction & { readonly [SPEC]?: { readonly of: AnyFunction; readonly spec: MethodSpec } };

/** The definition of a method made by `commandMethod`. Checks `of`, as wrappers may copy a function's properties. */
export function specOf(method: AnyFunction): MethodSpec | undefined {
  const mark = (method as Marked)[SPEC];
  return mark?.of === method ? mark.spec : undefined;
}

/** Makes a method that encodes its command here if possible, and calls the client's own method below it if not. */
export function commandMethod(spec: MethodSpec): AnyFunction {
  const { methodName, parent, leading = 0, sender, compose } = spec;
  const made: AnyFunction = compose
    ? function composed(this: unknown, ...args) {
        return compose(args, (given) => (parent[methodName] as AnyFunction).apply(this, given));
      }
    : leading === 0
      ? function fast(this: unknown, ...args) {
          const target = callTargetOf(this);
          if (target === undefined || sender === undefined) return fallBack(spec, this, target, args);
          const sent = sender.send(target, parent[methodName] as AnyFunction, args);
          return sent instanceof Fallback ? fallBack(spec, this, target, args, sent) : sent;
        }
      : function named(this: unknown, name, ...args) {
          const target = callTargetOf(this);
          const found = target && spec.senderFor?.(target, name);
          if (target === undefined || found === undefined) return fallBack(spec, this, target, [name, ...args]);
          const sent = found.send(target, parent[methodName] as AnyFunction, args);
          return sent instanceof Fallback ? fallBack(spec, this, target, [name, ...args], sent) : sent;
        };
  return Object.defineProperty(made, SPEC, { value: { of: made, spec } });
}

function fallBack(
  spec: MethodSpec,
  receiver: unknown,
  target: CallTarget | undefined,
  args: readonly unknown[],
  sent?: Fallback,
): unknown {
  const { methodName, parent, leading = 0 } = spec;
  if (target !== undefined) {
    if (sent === undefined) spec.onFallback?.(target, args);
    else countFallback(target, methodName, sent.reason);
  }
  return callHost(parent[methodName] as AnyFunction, receiver, args, leading, sent?.argumentsSoFar);
}
