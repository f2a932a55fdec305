import { type CommandVariant, UNLISTED } from '../commands/fast-commands.js';
import { CallEntry, variantOf } from '../core/entry.js';
import { announceWrite } from '../core/host-writes.js';
import type { EntryContext } from '../host/command-facade.js';
import { isAscii } from '../resp/encoder.js';

/**
 * The entry of a call that passes through what others, such as tracers, have put over the client's `sendCommand`. It is
 * a command that they may read, change, derive another from or wrap in a Proxy (so it has no private fields); an
 * element of the host's queue holds it. `LayeredDispatcher` sends it, `HostWriteHook` what the host writes of it.
 */
export class LayeredEntry extends CallEntry {
  // @ts-expect-error TS2610: own, as a host's command has it; other entries have an accessor.
  override name: string;
  /** Host: whether its reply was transformed. */
  isResolved = false;
  override isTraced = false;
  override readHere = false;
  // @ts-expect-error TS2610: the same.
  override replyEncoding: 'utf8' | null;
  /** Whether it is another command now: only the host knows what that means. */
  protected isAnother = false;
  /** The arguments as others see them, once they were read, or replaced. */
  protected readArgs: unknown[] | undefined;

  constructor(variant: CommandVariant, context: EntryContext, sent: readonly unknown[], select: number) {
    super(variant, context, sent, select);
    this.replacedResolve = undefined;
    this.replacedReject = undefined;
    this.name = variant.command.name;
    this.replyEncoding = variant.encoding;
  }

  override get args(): unknown[] {
    this.readArgs ??= super.args;
    return this.readArgs;
  }

  override set args(args: unknown[]) {
    this.readArgs = args;
  }

  /** Whether others have put in what gets its reply: that gets what the host's decoder would give. */
  override get takesRaw(): boolean {
    return (
      this.replacedResolve !== undefined ||
      this.replyEncoding !== this.variant.encoding ||
      Object.hasOwn(this, 'resolve') ||
      Object.hasOwn(this, 'transformReply')
    );
  }

  /** A raw one by its own `transformReply`, as the host does. It has no followers, and no cache. */
  override answer(reply: unknown, form: 'decoded' | 'raw'): void {
    try {
      if (form === 'decoded') super.answer(reply, form);
      else this.fulfil(this.transformReply(reply));
    } catch (error) {
      this.failAlone(error);
    }
  }

  override fulfil(value: unknown): void {
    this.isResolved = true;
    super.fulfil(value);
  }

  override timedOut(error: Error): void {
    this.reject(error);
  }

  override toWritable(stream: object): string | Buffer {
    this.readHere = false;
    const { name } = this;
    if (name !== this.variant.command.name) {
      this.variant = variantOf({ ...UNLISTED, name }, this.variant.encoding);
      this.isAnother = true;
    }
    if (this.readArgs !== undefined) this.wireArgs = this.readArgs.slice(this.variant.script?.leading.length ?? 0);
    const text = this.variant.script === undefined ? this.encodeAssumingAscii() : undefined;
    const writable = typeof text === 'string' && isAscii(text) ? text : super.toWritable(stream);
    const { script } = this.variant;
    // Host: the script's hash gives way to its text, and EVALSHA to EVAL.
    if (script !== undefined && this.readArgs !== undefined) this.readArgs[0] = script.leading[0];
    this.name = this.variant.command.name;
    announceWrite(this.isAnother ? undefined : this, writable);
    return writable;
  }
}
