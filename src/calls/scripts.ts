import { type CommandVariant, type ScriptForm, UNLISTED } from '../commands/fast-commands.js';
import type { CallTarget } from '../core/call-target.js';
import { Sender } from '../core/sender.js';
import { type ArgumentsSoFar, Fallback, holdsArray, type Prepared, prefixedKey } from '../host/arguments.js';
import type { ArgumentTransformer } from '../host/command-class.js';
import { type HostScript, isNoScript, isUnpatchedScriptMethod, LoadedScript, scriptCommand } from '../host/script.js';
import type { AnyFunction, HostClient } from '../host/types.js';
import type { CallOptions } from '../options.js';
import { CommandHeads, commandHead, encodeExactly, isPlainNumber } from '../resp/encoder.js';
import { rejectedWith } from '../util/promises.js';
import { flatOf } from '../util/values.js';
import { sendWith } from './view.js';

type ScriptVariant = CommandVariant & { readonly script: ScriptForm };

/** Sends the calls of a defined script as EVAL or EVALSHA. The host decides which. */
export class ScriptSender extends Sender {
  /** Made at the first call: each client of BullMQ defines a hundred methods, and few of them are called. */
  #forms: { readonly loaded: LoadedScript; readonly evalsha: ScriptVariant; readonly eval: ScriptVariant } | undefined;

  private constructor(
    readonly script: HostScript,
    readonly encoding: 'utf8' | null,
    original: AnyFunction,
  ) {
    super();
    this.unpatched = original;
  }

  /** The sender of a script; undefined if `original` is not the host's method for it. */
  static of(script: HostScript, encoding: 'utf8' | null, original: AnyFunction): ScriptSender | undefined {
    const { numberOfKeys } = script;
    if (typeof numberOfKeys === 'number' && !isPlainNumber(numberOfKeys)) return undefined;
    return isUnpatchedScriptMethod(original) ? new ScriptSender(script, encoding, original) : undefined;
  }

  get #prepared() {
    const { script } = this;
    this.#forms ??= {
      loaded: new LoadedScript(script),
      evalsha: this.#variantNamed('evalsha', script.sha),
      eval: this.#variantNamed('eval', script.lua),
    };
    return this.#forms;
  }

  /** The variant that is sent as EVALSHA. */
  get variant(): ScriptVariant {
    return this.#prepared.evalsha;
  }

  #variantNamed(name: string, first: string): ScriptVariant {
    const { numberOfKeys, readOnly } = this.script;
    const leading = typeof numberOfKeys === 'number' ? [first, numberOfKeys] : [first];
    const heads = new CommandHeads((count) => {
      const [text] = encodeExactly(commandHead(name, leading.length + count), leading) as [string];
      return text.slice(0, -'\r\n'.length);
    });
    return {
      command: { ...UNLISTED, name, readOnly: Boolean(readOnly) },
      encoding: this.encoding,
      // No heads for EVAL, whose script may be long and is rarely sent.
      heads: name === 'evalsha' ? heads : undefined,
      script: {
        leading,
        formOn: (stream) => this.#variantOn(stream),
        rejected: (stream, error) => {
          if (isNoScript(error)) this.#prepared.loaded.unload(stream, error);
        },
      },
    };
  }

  /** EVALSHA if the script is loaded on this stream. If not, EVAL, after which the host assumes that it is loaded. */
  #variantOn(stream: object): ScriptVariant {
    const { loaded, evalsha, eval: whole } = this.#prepared;
    return loaded.markLoaded(stream) ? evalsha : whole;
  }

  /** Keys are needed for a prefix, or to choose the node. */
  protected needsKeys({ routing }: CallTarget): boolean {
    return Boolean(this.script.keyPrefix) || routing !== undefined;
  }

  /** Leaves a transformer of EVALSHA to the host, because its arguments include the hash and the number of keys. */
  protected prepare(
    target: CallTarget,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
  ): Prepared | Fallback {
    if (transformer !== undefined) return new Fallback('transformer');
    const flattened = holdsArray(args) ? flatOf(args) : undefined;
    const sent = flattened ?? args;
    const read = { flattened };
    return this.needsKeys(target) ? this.#findKeys(sent.slice(), read) : { sent, key: undefined, argumentsSoFar: read };
  }

  /** Also applies `maxPending` to calls that fall back, see `PendingBound#refuses`. */
  override send(target: CallTarget, method: AnyFunction, given: unknown[], call?: CallOptions) {
    const sent = super.send(target, method, given, call);
    if (!(sent instanceof Fallback)) return sent;
    const { keyPrefix, numberOfKeys, readOnly } = this.script;
    const first = given[typeof numberOfKeys === 'number' ? 0 : 1];
    const key = keyPrefix ? prefixedKey(keyPrefix, first) : first;
    const refusal = target.admissionFor(key, Boolean(readOnly))?.refusalOf(1);
    return refusal === undefined ? sent : rejectedWith(refusal, given.at(-1));
  }

  protected override encodableOf(args: readonly unknown[]): readonly unknown[] | undefined {
    return super.encodableOf(args) ?? super.encodableOf(args.map(toPlain));
  }

  /** Ordering: as in the host, callers settle one step after the command. Tracers follow the same promise. */
  protected override chained(client: object, args: readonly unknown[], call: CallOptions | undefined) {
    return (promise: Promise<unknown>) =>
      promise.catch((error: unknown) => {
        if (!isNoScript(error)) throw error;
        return sendWith(call, client as HostClient, [scriptCommand(this.script, args, this.encoding)]);
      });
  }

  /** Puts `keyPrefix` before each key. Leaves unusual arguments to the host. */
  #findKeys(args: unknown[], read: ArgumentsSoFar): Prepared | Fallback {
    const { keyPrefix, numberOfKeys } = this.script;
    const first = typeof numberOfKeys === 'number' ? 0 : 1;
    const given = first === 0 ? numberOfKeys : args[0];
    // Converting any other value might run user code, which ioredis does not.
    const count = typeof given === 'string' || typeof given === 'number' ? Number(given) : Number.NaN;
    if (!Number.isInteger(count) || count < 0 || first + count > args.length) {
      return new Fallback('arguments', read);
    }
    for (let index = first; keyPrefix && index < first + count; index += 1) {
      const key = prefixedKey(keyPrefix, args[index]);
      if (key === undefined) return new Fallback('arguments', read);
      args[index] = key;
    }
    return { sent: args, key: count > 0 ? args[first] : undefined, argumentsSoFar: read };
  }
}

/** Host: `toArg`, except for objects, whose `toString` may be a user's. */
function toPlain(argument: unknown): unknown {
  if (argument === null || argument === undefined) return '';
  return typeof argument === 'boolean' ? String(argument) : argument;
}
