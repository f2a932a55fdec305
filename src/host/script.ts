/**
 * The host's scripts, as `defineCommand` and the option `scripts` store them on a client.
 *
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.3–0.4, `built/Script.js`, `built/utils/Commander.js`.
 */
import { isKnown } from './functions.js';
import type { HostCommand } from './types.js';

/** The members of a script's command that show what it would write. */
interface ScriptCommand extends HostCommand {
  name: string;
  args: unknown[];
  reject: (error: Error) => void;
  toWritable(socket: object): unknown;
}

/** The host's `Script`: one for each definition. */
export interface HostScript {
  readonly lua: string;
  readonly sha: string;
  /** The number of keys; if it is not a number, callers pass it as the first argument. */
  readonly numberOfKeys: unknown;
  /** The client's `keyPrefix` when the script was defined. */
  readonly keyPrefix: unknown;
  readonly readOnly: unknown;
  readonly Command: {
    new (name: string, args: unknown[], options: object): ScriptCommand;
    readonly prototype: ScriptCommand;
  };
}

interface Defining {
  readonly scriptsSet?: Readonly<Record<string, HostScript>>;
  readonly addedBuiltinSet?: Iterable<string>;
}

/** The names of a client's or Cluster's scripts, and of commands that `addBuiltinCommand` has added to it. */
export function definedNames(client: object): string[] {
  const { scriptsSet = {}, addedBuiltinSet = [] } = client as Defining;
  return [...Object.keys(scriptsSet), ...addedBuiltinSet];
}

export function scriptNamed(client: object, name: string): HostScript | undefined {
  const { scriptsSet = {} } = client as Defining;
  return Object.hasOwn(scriptsSet, name) ? scriptsSet[name] : undefined;
}

/** Whether a method has the text of those that the host generates for scripts. */
export const isUnpatchedScriptMethod = (method: unknown) => isKnown('listeners', 'script', method);

/** Whether a command is of a defined script. Host: only these have a class derived from `Command`. */
export function isScriptCommand(command: object): boolean {
  return !Object.hasOwn(Object.getPrototypeOf(command) as object, 'initPromise');
}

/** Host: the test of `Script#execute` and of its commands. */
export function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.includes('NOSCRIPT');
}

/** The command that the host would make for a call. Host: `Script#execute`. */
export function scriptCommand(script: HostScript, args: readonly unknown[], replyEncoding: 'utf8' | null): HostCommand {
  const keyCount = typeof script.numberOfKeys === 'number' ? [script.numberOfKeys] : [];
  return new script.Command('evalsha', [script.sha, ...keyCount, ...args], {
    replyEncoding,
    ...(script.keyPrefix ? { keyPrefix: script.keyPrefix } : {}),
    ...(script.readOnly ? { readOnly: true } : {}),
  });
}

/**
 * The connections on which the host assumes that a script is loaded. Host: the commands of a script share a private set
 * of sockets. `toWritable(socket)` writes EVALSHA if the socket is in the set, else EVAL, and adds it; `reject` with
 * NOSCRIPT removes it. So a command that is never sent can read and change the set.
 */
export class LoadedScript {
  readonly #command: ScriptCommand;

  constructor(script: HostScript) {
    // Not constructed: that would make a promise, and run the argument transformers of users.
    this.#command = Object.create(script.Command.prototype) as ScriptCommand;
    this.#command.args = [];
  }

  /**
   * Makes the host assume that the script is loaded on this socket. Returns whether it did so before: EVALSHA is
   * enough.
   */
  markLoaded(socket: object): boolean {
    const command = this.#command;
    command.name = 'evalsha';
    // Reset, since each `toWritable` puts a wrapper around it.
    command.reject = ignore;
    command.toWritable(socket);
    if (command.name === 'evalsha') return true;
    // Removes the script's text, which would be encoded again each time.
    command.args.length = 0;
    return false;
  }

  /** The server has answered NOSCRIPT on this socket. */
  unload(socket: object, error: Error): void {
    this.markLoaded(socket);
    this.#command.reject(error);
  }
}

function ignore(): void {}
