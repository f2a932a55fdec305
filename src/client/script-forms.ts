import { type HotCommand, WORK_OF_SCRIPT } from '../commands/hot-commands.js';
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
        // Host: a Buffer will do, too.
        work: workOf(String(script.lua)),
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

/**
 * A server's work for a script, by its text: about one microsecond, and half a microsecond per command in it. Scripts
 * of a job queue have dozens of commands, a counter's script has two or three. Long ones often have a short name for
 * `redis.call`: BullMQ's is `rcall`.
 */
function workOf(lua: string): number {
  const commands = lua.match(/call\s*\(/gi)?.length ?? 0;
  return Math.min(WORK_OF_SCRIPT, 2 + commands);
}
