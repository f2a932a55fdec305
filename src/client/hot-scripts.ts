import type { CommandVariant, HotCommand, ScriptForm } from '../commands/hot-commands.js';
import type { Connection } from '../connection/connection.js';
import type { CallSettings } from '../connection/entries/call-settings.js';

import { type HostScript, isGenuineScriptMethod, isNoScript, LoadedScript, scriptCommand } from '../host/script.js';
import type { ArgumentTransformer } from '../host/transformers.js';
import type { AnyFunction, HostClient } from '../host/types.js';
import {
  CommandHeads,
  commandHead,
  encodeAssumingAscii,
  encodeExactly,
  isPlainNumber,
  type Part,
} from '../resp/encoder.js';
import {
  callHost,
  countFallThrough,
  FallThrough,
  type FindRoute,
  flatOf,
  type HotRoute,
  holdsArray,
  type Prepared,
  prefixedKey,
  type ReadArguments,
  Sender,
  withForm,
} from './hot-path.js';
import { sendWith } from './view.js';

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
  const sender = new ScriptSender(script, encoding, original);
  return withForm(
    function (this: unknown, ...args: unknown[]) {
      const route = find(this);
      if (route === undefined) return callHost(original, this, args);
      const sent = sender.send(route, original, args);
      if (!(sent instanceof FallThrough)) return sent;
      countFallThrough(route, methodName, sent.reason);
      return sent.callHost(original, this, args);
    },
    { methodName, leading: 0, find, method: () => original, senderFor: () => sender },
  );
}

/** Sends the calls of a defined script. */
class ScriptSender extends Sender {
  readonly command: HotCommand;
  readonly #forms: ScriptForms;
  /** Everything up to the call's own arguments. */
  readonly #heads = new CommandHeads((count) => this.#headFor(count));

  constructor(
    readonly script: HostScript,
    readonly encoding: 'utf8' | null,
    original: AnyFunction,
  ) {
    super();
    this.genuine = original;
    this.#forms = new ScriptForms(script, encoding);
    this.command = this.#forms.evalsha.command;
  }

  protected isPrepared(route: HotRoute, args: readonly unknown[]): boolean {
    return !this.script.keyPrefix && route.routing === undefined && !Array.isArray(args[0]);
  }

  /** The transformer of EVALSHA would get the script's hash and the number of keys, too: that is left to the host. */
  protected prepare(
    route: HotRoute,
    args: readonly unknown[],
    transformer: ArgumentTransformer | undefined,
  ): Prepared | FallThrough {
    if (transformer !== undefined) return new FallThrough('transformer');
    const flattened = holdsArray(args) ? flatOf(args) : undefined;
    const sent = flattened ?? args;
    const read = { flattened };
    // Keys get a prefix, or the first one decides which node the call goes to.
    const needsKeys = this.script.keyPrefix || route.routing !== undefined;
    return needsKeys ? this.#findKeys(sent.slice(), read) : { sent, key: undefined, read };
  }

  protected sendOn(
    connection: Connection,
    { client, routing }: HotRoute,
    prepared: readonly unknown[],
    args: readonly unknown[],
    call: CallSettings | undefined,
  ): Promise<unknown> | undefined {
    const exact = connection.batch.exactBatches > 0;
    let sent = prepared;
    const head = this.#heads.for(sent.length);
    let encoded = exact ? encodeExactly(head, sent) : encodeAssumingAscii(head, sent);
    if (encoded === undefined && !holdsArray(sent)) {
      sent = sent.map(toPlain);
      encoded = encodeExactly(head, sent);
    }
    if (encoded === undefined) return undefined;
    // Ordering: asked last, when it is certain that the command is sent: from now on the host assumes that the script
    // is loaded.
    const form = this.#forms.formOn(connection.stream);
    if (form !== this.#forms.evalsha) encoded = encodeEval(form.script.leading, sent);
    const promise = connection.sendHot(form, encoded, sent, routing, call);
    // Ordering: this makes callers settle one step later than the command, as in the host.
    return promise.catch((error: unknown) => {
      if (!isNoScript(error)) throw error;
      return sendWith(call, client as HostClient, [scriptCommand(this.script, args, this.encoding)]);
    });
  }

  /** Puts `keyPrefix` before each key. Only the host can find the keys of arguments that are not as expected. */
  #findKeys(args: unknown[], read: ReadArguments): Prepared | FallThrough {
    const { keyPrefix, numberOfKeys } = this.script;
    const first = typeof numberOfKeys === 'number' ? 0 : 1;
    const count = Number(first === 0 ? numberOfKeys : args[0]);
    if (!Number.isInteger(count) || count < 0 || first + count > args.length) {
      return new FallThrough('arguments', read);
    }
    for (let index = first; keyPrefix && index < first + count; index += 1) {
      const key = prefixedKey(keyPrefix, args[index]);
      if (key === undefined) return new FallThrough('arguments', read);
      args[index] = key;
    }
    return { sent: args, key: count > 0 ? args[first] : undefined, read };
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

/** A script's two forms on the wire, for replies in one encoding. The host decides which form is sent. */
export class ScriptForms {
  readonly evalsha: CommandVariant & { readonly script: ScriptForm };
  readonly eval: CommandVariant & { readonly script: ScriptForm };
  readonly #loaded: LoadedScript;

  constructor(script: HostScript, encoding: CommandVariant['encoding']) {
    this.#loaded = new LoadedScript(script);
    const keyCount = typeof script.numberOfKeys === 'number' ? [script.numberOfKeys] : [];
    const form = (name: string, first: string) => ({
      command: {
        name,
        keys: 'first',
        readOnly: Boolean(script.readOnly),
        shareable: false,
        cacheable: false,
        paired: false,
      } satisfies HotCommand,
      encoding,
      script: {
        leading: [first, ...keyCount],
        formOn: (stream: object) => this.formOn(stream),
        rejected: (stream: object, error: Error) => {
          if (isNoScript(error)) this.#loaded.unload(stream, error);
        },
      },
    });
    this.evalsha = form('evalsha', script.sha);
    this.eval = form('eval', script.lua);
  }

  /** EVALSHA if the script is loaded on this stream; otherwise EVAL, after which the host assumes that it is loaded. */
  formOn(stream: object): ScriptForms['evalsha'] {
    return this.#loaded.load(stream) ? this.evalsha : this.eval;
  }
}
