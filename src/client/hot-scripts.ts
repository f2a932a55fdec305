import { type HostScript, isGenuineScriptMethod, isNoScript, LoadedScript, scriptCommand } from '../host/script.js';
import { transformsArguments } from '../host/transformers.js';
import type { AnyFunction, HostClient } from '../host/types.js';
import {
  CommandHeads,
  commandHead,
  encodeAssumingAscii,
  encodeExactly,
  isPlainNumber,
  type Part,
} from '../resp/encoder.js';
import type { FallThroughReason } from '../stats.js';
import { asCallback, type NodeCallback } from '../util/as-callback.js';
import { flatOf } from '../util/flat.js';
import { countFallThrough, type FindRoute, type HotRoute, holdsArray, prefixedKey, withFlattened } from './hot-path.js';
import { ScriptForms } from './script-forms.js';

const LINE_END = '\r\n';

/**
 * A hot method that replaces the one that the host has made for a script; undefined if the user has replaced that
 * method, or its source is not known.
 */
export function hotScriptMethod(
  script: HostScript,
  methodName: string,
  encoding: 'utf8' | null,
  original: AnyFunction,
  find: FindRoute,
): AnyFunction | undefined {
  const { numberOfKeys } = script;
  if (typeof numberOfKeys === 'number' && !isPlainNumber(numberOfKeys)) return undefined;
  if (!isGenuineScriptMethod(original) || !LoadedScript.isKnown(script)) return undefined;
  const hot = new HotScript(script, encoding);
  return function (this: unknown, ...args: unknown[]) {
    const route = find(this);
    if (route === undefined) return original.apply(this, args);
    const promise = hot.send(route, args);
    if (typeof promise !== 'string') return promise;
    countFallThrough(route, methodName, promise);
    return original.apply(this, hot.takeArguments(args));
  };
}

/** A defined script as a hot command. */
class HotScript {
  readonly #forms: ScriptForms;
  /** Everything up to the call's own arguments. */
  readonly #heads = new CommandHeads((count) => this.#headFor(count));
  /** The flattened arguments of the current call, if there were arrays among them; see `hotSender`. */
  #flattened: readonly unknown[] | undefined;

  constructor(
    readonly script: HostScript,
    readonly encoding: 'utf8' | null,
  ) {
    this.#forms = new ScriptForms(script, encoding);
  }

  /** Sends a call, or says why the host must. */
  send(route: HotRoute, args: readonly unknown[]): Promise<unknown> | FallThroughReason {
    const callback = args.length > 0 ? args[args.length - 1] : undefined;
    if (typeof callback !== 'function') return this.#send(route, args);
    const promise = this.#send(route, args.slice(0, -1));
    if (typeof promise !== 'string') asCallback(promise, callback as NodeCallback);
    return promise;
  }

  /** The arguments for the host when `send` has just left a call to it, so that getters are not read twice. */
  takeArguments(args: unknown[]): unknown[] {
    const flattened = this.#flattened;
    this.#flattened = undefined;
    return flattened === undefined ? args : withFlattened(args, 0, flattened.slice());
  }

  #send(route: HotRoute, args: readonly unknown[]): Promise<unknown> | FallThroughReason {
    this.#flattened = undefined;
    const { client, commandClass, routing } = route;
    if (commandClass === undefined) return 'cork-only';
    const reason = route.fallThroughReason();
    if (reason !== undefined) return reason;
    if (transformsArguments(commandClass, 'evalsha')) return 'transformer';
    let sent = args;
    let key: unknown;
    if (this.script.keyPrefix || routing !== undefined) {
      const flat = this.#flatten(route, args);
      if (typeof flat === 'string') return flat;
      const prepared = this.#findKeys(flat.slice());
      if (prepared === undefined) return 'arguments';
      ({ sent, key } = prepared);
    }
    let connection = route.connectionFor(this.#forms.evalsha.command, key);
    if (typeof connection === 'string') return connection;
    let encoded = this.#encode(sent, connection.batch.encodesExactly);
    if (encoded === undefined) {
      if (sent === args) {
        const flat = this.#flatten(route, args);
        if (typeof flat === 'string') return flat;
        sent = flat;
        connection = route.connectionFor(this.#forms.evalsha.command, key);
        if (typeof connection === 'string') return connection;
      }
      sent = sent.map(toPlain);
      encoded = this.#encode(sent, connection.batch.encodesExactly);
      if (encoded === undefined) return 'arguments';
    }
    // Ordering: asked last, when it is certain that the command is sent: from now on the host assumes that the script
    // is loaded.
    const form = this.#forms.formOn(connection.stream);
    if (form !== this.#forms.evalsha) encoded = encodeEval(form.script.leading, sent);
    const promise = connection.sendHot(form, encoded, sent, routing);
    // Ordering: this makes callers settle one step later than the command, as in the host.
    return promise.catch((error: unknown) => {
      if (!isNoScript(error)) throw error;
      return (client as HostClient).sendCommand(scriptCommand(this.script, args, this.encoding));
    });
  }

  /** The arguments, flattened; or why the host must send the call: getters may have ended the connection. */
  #flatten(route: HotRoute, args: readonly unknown[]): readonly unknown[] | FallThroughReason {
    if (!holdsArray(args)) return args;
    const flat = flatOf(args);
    this.#flattened = flat;
    return route.fallThroughReason() ?? flat;
  }

  /** Flat arguments with `keyPrefix` before each key, and the first key; undefined if only the host can find the keys. */
  #findKeys(args: unknown[]): { sent: unknown[]; key: unknown } | undefined {
    const { keyPrefix, numberOfKeys } = this.script;
    const first = typeof numberOfKeys === 'number' ? 0 : 1;
    const count = Number(first === 0 ? numberOfKeys : args[0]);
    if (!Number.isInteger(count) || count < 0 || first + count > args.length) return undefined;
    for (let index = first; keyPrefix && index < first + count; index += 1) {
      const key = prefixedKey(keyPrefix, args[index]);
      if (key === undefined) return undefined;
      args[index] = key;
    }
    return { sent: args, key: count > 0 ? args[first] : undefined };
  }

  #encode(args: readonly unknown[], exact: boolean): string | Part[] | undefined {
    const head = this.#heads.for(args.length);
    return exact ? encodeExactly(head, args) : encodeAssumingAscii(head, args);
  }

  #headFor(count: number): string {
    const { leading } = this.#forms.evalsha.script;
    const [text] = encodeExactly(commandHead('evalsha', leading.length + count), leading) as [string];
    return text.slice(0, -LINE_END.length);
  }
}

function encodeEval(leading: readonly unknown[], args: readonly unknown[]): Part[] {
  const all = [...leading, ...args];
  return encodeExactly(commandHead('eval', all.length), all) as Part[];
}

/** Host: `toArg`. Objects with a user-defined `toString` are left to the host. */
function toPlain(argument: unknown): unknown {
  if (argument === null || argument === undefined) return '';
  return typeof argument === 'boolean' ? String(argument) : argument;
}
