/** How the host's `Command` class treats its commands, and the transformers that users register with it. */
import { sourceOf } from './digest.js';
import type { AnyFunction, ArgumentTransformers, HostCommand, HostCommandClass } from './types.js';

/**
 * Whether the host's promises settle some microtasks after they are resolved. Host: iovalkey since 0.3.3 ends
 * `Command#initPromise` in `.finally()`.
 */
export function settlesInFinally(commandClass: HostCommandClass): boolean {
  return sourceOf((commandClass.prototype as unknown as { initPromise: AnyFunction }).initPromise).includes(
    '.finally(',
  );
}

/**
 * Whether the host finds the keys of `GET` as it finds those of `get`, for `keyPrefix` and a Cluster's slots. Host:
 * ioredis does since 5.9, iovalkey does not (`Command#_iterateKeys`).
 */
export function findsKeysInAnyCase(commandClass: HostCommandClass): boolean {
  return keysOf(commandClass, 'GET', ['key']).length === 1;
}

/** The keys among arguments, as the host finds them. */
export function keysOf(commandClass: HostCommandClass, name: string, args: unknown[]): readonly unknown[] {
  // Not constructed: that would make a promise, and run the argument transformers of users.
  const command = Object.create(commandClass.prototype) as HostCommandClass['prototype'];
  return Object.assign(command, { name, args }).getKeys();
}

/**
 * Whether a command is rejected already: its arguments cannot become text, or their transformer has thrown. Host: the
 * constructor then rejects its promise before it sets `resolve` and `reject`.
 */
export function isRejected(command: Partial<HostCommand>): boolean {
  return command.promise !== undefined && command.resolve === undefined;
}

/** Converts the arguments of a command; users can set one for any command at any time. */
export type ArgumentTransformer = (args: unknown[]) => unknown[];

/** A transformer's result for one call, even if it is not an array, or the error that it threw. */
export type Transformation = { readonly args: unknown } | { readonly error: unknown };

/** Marks a transformer that may also change the command's name: only the host can run it. */
export const HOST_ONLY: ArgumentTransformer = (args) => args;

/** Users can set a transformer at any time, so it is looked up per command, as the host does. */
export function transformsReply(commandClass: HostCommandClass, name: string): boolean {
  return commandClass._transformer.reply[name] !== undefined;
}

/** What `withTransformation` has put in place of a command's transformer: an async hook may send the same command. */
let standIn: { readonly by: unknown; readonly of: ArgumentTransformers[string] } | undefined;

function registeredFor(commandClass: HostCommandClass, name: string): ArgumentTransformers[string] {
  const registered = commandClass._transformer.argument[name];
  return registered !== undefined && registered === standIn?.by ? standIn.of : registered;
}

/**
 * The command's transformer, if it has one now: looked up per command, as the host does. Host: a function, or null; in
 * iovalkey since 0.4 `{ transformerFunction, includeCommand }`; if the latter is set, it may change the name, too
 * (`built/Command.js`, `setArgumentTransformer`).
 */
export function argumentTransformerOf(commandClass: HostCommandClass, name: string): ArgumentTransformer | undefined {
  const registered = registeredFor(commandClass, name);
  if (registered === undefined || typeof registered === 'function') return registered;
  return registered?.includeCommand ? HOST_ONLY : registered?.transformerFunction;
}

export function runTransformer(transformer: ArgumentTransformer, args: unknown[]): Transformation {
  try {
    return { args: transformer(args) };
  } catch (error) {
    return { error };
  }
}

/**
 * Calls a host's method with arguments that are already transformed, so that its transformer does not run again. Host:
 * an unpatched method first constructs its command, which runs the transformer (`Command#initPromise`); it is replaced
 * until then.
 */
export function withTransformation<T>(
  commandClass: HostCommandClass,
  name: string,
  transformation: Transformation,
  call: () => T,
): T {
  const registered = commandClass._transformer.argument;
  const original = registered[name];
  const restore = () => {
    if (registered[name] === replacement) registered[name] = original;
  };
  const answer: ArgumentTransformer = () => {
    restore();
    if ('error' in transformation) throw transformation.error;
    const { args } = transformation;
    return Array.isArray(args) ? args.slice() : (args as unknown[]);
  };
  const replacement =
    typeof original === 'function' ? answer : { transformerFunction: answer, includeCommand: undefined };
  const outer = standIn;
  standIn = { by: replacement, of: registeredFor(commandClass, name) };
  registered[name] = replacement;
  try {
    return call();
  } finally {
    restore();
    standIn = outer;
  }
}

/** Makes a call without the user's transformer: if there is one, the command is made without arguments. */
export function withoutTransformer<T>(commandClass: HostCommandClass, name: string, call: () => T): T {
  const isSet = argumentTransformerOf(commandClass, name) !== undefined;
  return isSet ? withTransformation(commandClass, name, { args: [] }, call) : call();
}
