import type { HostCommandClass } from './types.js';

/** Converts the arguments of a command; users can set one for any command at any time. */
export type ArgumentTransformer = (args: unknown[]) => unknown[];

/** The result of a transformer for one call, should it be no array too, or the error that it threw. */
export type Transformation = { readonly args: unknown } | { readonly error: unknown };

/** In the place of a transformer that may change the command's name too: only the host can run it. */
export const HOST_ONLY: ArgumentTransformer = (args) => args;

/** Users can set a transformer at any time, so it is looked up per command, as the host does. */
export function transformsReply(commandClass: HostCommandClass, name: string): boolean {
  return commandClass._transformer.reply[name] !== undefined;
}

/**
 * The command's transformer, if it has one now: looked up per command, as the host does.
 * Host: a function in ioredis; in iovalkey `{ transformerFunction, includeCommand }`, of which the second form changes
 * the command's name too (`built/Command.js`, `setArgumentTransformer`).
 */
export function argumentTransformerOf(commandClass: HostCommandClass, name: string): ArgumentTransformer | undefined {
  const registered = commandClass._transformer.argument[name];
  if (registered === undefined || typeof registered === 'function') return registered;
  return registered.includeCommand ? HOST_ONLY : registered.transformerFunction;
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
 * a command runs its transformer in its constructor, the first thing that an unpatched method does
 * (`Command#initPromise`); it is replaced until then.
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
  registered[name] = replacement;
  try {
    return call();
  } finally {
    restore();
  }
}
