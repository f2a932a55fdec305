import type { HotCommand } from '../commands/hot-commands.js';
import type { CommandVariant, ScriptForm } from '../connection/entry.js';
import { type HostScript, isNoScript, LoadedScript } from '../host/script.js';

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
