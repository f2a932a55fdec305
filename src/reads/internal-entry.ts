import { type CommandVariant, UNLISTED } from '../commands/fast-commands.js';
import { Entry, variantOf } from '../core/entry.js';
import type { Encoded, Outgoing } from '../core/outgoing.js';
import type { EntryContext } from '../host/command-facade.js';
import { commandTimeoutOf, selectedDatabase } from '../host/state.js';

/** No caller awaits this package's own commands. */
const UNAWAITED = Promise.resolve();

export function internalVariant(name: string): CommandVariant {
  return variantOf({ ...UNLISTED, name, keys: 'none', readOnly: true }, 'utf8');
}

/** One of this package's own commands, sent among the user's. */
export class InternalEntry extends Entry {
  readonly promise = UNAWAITED;
  readonly select: number;

  constructor(
    variant: CommandVariant,
    sent: unknown,
    readonly context: EntryContext,
    /** Receives the outcome, even after a timeout. `error` is undefined only on success. */
    readonly done: (error: unknown, value?: unknown) => void,
  ) {
    super(variant, sent);
    this.select = selectedDatabase(context.client);
  }

  override handlesError(message: string): boolean {
    this.fail(Object.assign(new Error(message), { name: 'ReplyError' }));
    return true;
  }

  protected settleValue(value: unknown): void {
    this.done(undefined, value);
  }

  protected settleError(error: unknown): void {
    this.done(error);
  }
}

/** Sends one of our own commands after everything sent before. */
export function sendInternal(outgoing: Outgoing, entry: InternalEntry, encoded?: Encoded): void {
  const timeout = entry.deadline === undefined ? commandTimeoutOf(outgoing.client) : undefined;
  outgoing.enqueue(entry, encoded ?? entry.encodeAssumingAscii(), outgoing.deadlines.for(timeout));
}
