import { type CommandVariant, UNLISTED } from '../commands/fast-commands.js';
import { CallEntry, variantOf } from '../core/entry.js';
import { announceWrite } from '../core/host-writes.js';
import { transformsReply } from '../host/command-class.js';
import type { EntryContext } from '../host/command-facade.js';
import { isAscii } from '../resp/encoder.js';

/**
 * The entry of a call through layers that other code, such as tracers, has put over the client's `sendCommand`. Layers
 * may read it, change it, derive from it or wrap it in a Proxy (so it has no private fields); an element of the host's
 * queue contains it. `LayeredDispatcher` sends it, and `HostWriteHook` what the host writes for it.
 */
export class LayeredEntry extends CallEntry {
  // @ts-expect-error TS2610: an own property like a host command's; other entries have an accessor.
  override name: string;
  /** Host: whether its reply was transformed. */
  isResolved = false;
  inTransaction = false;
  override isTraced = false;
  override readHere = false;
  // @ts-expect-error TS2610: the same.
  override replyEncoding: 'utf8' | null;
  /** Whether a layer has renamed it; only the host can treat that command correctly. */
  protected isRenamed = false;
  /** The arguments as layers see them, once they were read or replaced. */
  protected seenArgs: unknown[] | undefined;

  constructor(variant: CommandVariant, context: EntryContext, sent: readonly unknown[], select: number) {
    super(variant, context, sent, select);
    this.replacedResolve = undefined;
    this.replacedReject = undefined;
    this.name = variant.command.name;
    this.replyEncoding = variant.encoding;
  }

  override get args(): unknown[] {
    this.seenArgs ??= super.args;
    return this.seenArgs;
  }

  override set args(args: unknown[]) {
    this.seenArgs = args;
  }

  /** Host: it returns the promise. */
  override get resolve(): (reply: unknown) => unknown {
    if (this.replacedResolve !== undefined) return this.replacedResolve;
    return (reply) => {
      this.answer(reply, 'raw');
      return this.promise;
    };
  }

  override set resolve(replacement: (reply: unknown) => void) {
    super.resolve = replacement;
  }

  /** Whether a layer has changed how it takes its reply, and so expects the value of the host's decoder. */
  override get takesRaw(): boolean {
    const replacesReject = this.replacedReject !== undefined || Object.hasOwn(this, 'reject');
    return (
      this.replacedResolve !== undefined ||
      this.replyEncoding !== this.variant.encoding ||
      Object.hasOwn(this, 'resolve') ||
      Object.hasOwn(this, 'transformReply') ||
      // It may throw, and so may `reject`.
      (replacesReject && transformsReply(this.context.commandClass, this.name))
    );
  }

  /** Like the host: by its own `transformReply`, or `reject` if that throws. It has no followers and no cached read. */
  override answer(reply: unknown, form: 'decoded' | 'raw'): void {
    try {
      if (form === 'decoded') super.answer(reply, form);
      else this.fulfil(this.transformReply(reply));
    } catch (error) {
      this.reject(error as Error);
    }
  }

  override fulfil(value: unknown): void {
    this.isResolved = true;
    super.fulfil(value);
  }

  override toWritable(stream: object): string | Buffer {
    this.readHere = false;
    const { name } = this;
    if (name !== this.variant.command.name) {
      this.variant = variantOf({ ...UNLISTED, name }, this.variant.encoding);
      this.isRenamed = true;
    }
    if (this.seenArgs !== undefined) this.wireArgs = this.seenArgs.slice(this.variant.script?.leading.length ?? 0);
    const text = this.variant.script === undefined ? this.encodeAssumingAscii() : undefined;
    const writable = typeof text === 'string' && isAscii(text) ? text : super.toWritable(stream);
    const { script } = this.variant;
    // Host: for EVAL, the script's text replaces its hash.
    if (script !== undefined && this.seenArgs !== undefined) this.seenArgs[0] = script.leading[0];
    this.name = this.variant.command.name;
    announceWrite(this.isRenamed ? undefined : this, writable);
    return writable;
  }
}
