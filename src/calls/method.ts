import { type CallTarget, callTargetOf } from '../core/call-target.js';
import type { Sender } from '../core/sender.js';
import { Fallback } from '../host/arguments.js';
import type { AnyFunction } from '../host/types.js';
import { callHost, countFallback } from './call-host.js';

/** The parts of a method of ours that sends one command. A view makes the same call with other options (`view.ts`). */
export interface MethodForm {
  readonly methodName: string;
  /** The object that has the host's method under this name. */
  readonly parent: Readonly<Record<string, unknown>>;
  /** How many arguments are in front of the command's, such as the name in `call(name, …)`. */
  readonly leading?: number;
  /** Sends the calls that can be fast; or a function that finds who sends one, by the name before its arguments. */
  readonly sender?: Sender;
  senderFor?(target: CallTarget, name: unknown): Sender | undefined;
  /** Makes a call of several calls of the parent's method. */
  readonly compose?: ((args: unknown[], send: (args: unknown[]) => unknown) => unknown) | undefined;
  /** Called with all arguments of each call that has no sender, before the host's method sends it. */
  onFallback?(target: CallTarget, args: readonly unknown[]): void;
}

/** The field of a method's form, which holds its client: a `WeakMap` keeps values too long (docs/performance.md). */
const FORM = Symbol('form');
type Marked = AnyFunction & { readonly [FORM]?: { readonly of: AnyFunction; readonly form: MethodForm } };

/** The parts of a method, if `commandMethod` has made it. Wrappers may copy what is on a function. */
export function formOf(method: AnyFunction): MethodForm | undefined {
  const mark = (method as Marked)[FORM];
  return mark?.of === method ? mark.form : undefined;
}

/** A method that encodes its command here if nothing is unusual, and otherwise calls the client's own below it. */
export function commandMethod(form: MethodForm): AnyFunction {
  const { methodName, parent, leading = 0, sender, compose } = form;
  const made: AnyFunction = compose
    ? function composed(this: unknown, ...args) {
        return compose(args, (given) => (parent[methodName] as AnyFunction).apply(this, given));
      }
    : leading === 0
      ? function fast(this: unknown, ...args) {
          const target = callTargetOf(this);
          if (target === undefined || sender === undefined) return fallBack(form, this, target, args);
          const sent = sender.send(target, parent[methodName] as AnyFunction, args);
          return sent instanceof Fallback ? fallBack(form, this, target, args, sent) : sent;
        }
      : function named(this: unknown, name, ...args) {
          const target = callTargetOf(this);
          const found = target && form.senderFor?.(target, name);
          if (target === undefined || found === undefined) return fallBack(form, this, target, [name, ...args]);
          const sent = found.send(target, parent[methodName] as AnyFunction, args);
          return sent instanceof Fallback ? fallBack(form, this, target, [name, ...args], sent) : sent;
        };
  return Object.defineProperty(made, FORM, { value: { of: made, form } });
}

function fallBack(
  form: MethodForm,
  receiver: unknown,
  target: CallTarget | undefined,
  args: readonly unknown[],
  sent?: Fallback,
): unknown {
  const { methodName, parent, leading = 0 } = form;
  if (target !== undefined) {
    if (sent === undefined) form.onFallback?.(target, args);
    else countFallback(target, methodName, sent.reason);
  }
  return callHost(parent[methodName] as AnyFunction, receiver, args, leading, sent?.argumentsSoFar);
}
