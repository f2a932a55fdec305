import { type CommandVariant, type FusedName, UNLISTED } from '../../commands/fast-commands.js';
import { type ErrorMeaning, meaningOfError } from '../../resp/error-meaning.js';
import { SETTLED } from './deadlines.js';
import { type CallEntry, copyOfError, Entry, type EntryContext, variantOf } from './entry.js';

/** Errors that a Cluster follows or tries again for each command. */
const FOLLOWED = new Set<ErrorMeaning>(['moved', 'passing']);

const NOBODY = Promise.resolve();

const VARIANTS: Record<FusedName, { readonly text: CommandVariant; readonly bytes: CommandVariant }> = {
  mget: variantsOf('mget'),
  hmget: variantsOf('hmget'),
};

function variantsOf(name: FusedName) {
  const command = { ...UNLISTED, name, readOnly: true };
  return { text: variantOf(command, 'utf8'), bytes: variantOf(command, null) };
}

/**
 * The entry of reads that left as one command (`fuseReads`): MGET for GETs, HMGET for HGETs of one hash. It is one command
 * to the host, which may decode its reply, flush it or send it again; each member settles with its element of the reply.
 */
export class FusedEntry extends Entry {
  readonly promise = NOBODY;
  readonly context: EntryContext;
  readonly select: number;

  constructor(readonly members: readonly CallEntry[]) {
    const [{ variant, context, select }] = members as [CallEntry];
    const { text, bytes } = VARIANTS[variant.command.fused as FusedName];
    super(variant.encoding === null ? bytes : text, undefined);
    this.context = context;
    this.select = select;
  }

  /** MGET key …, or HMGET key field …: the last argument of each member, which are strings. */
  protected override ownArguments(): readonly unknown[] {
    const { members } = this;
    if (this.name === 'mget') return members.map(({ sent }) => sent);
    const [first] = members as [CallEntry];
    const [hash] = first.sent as readonly unknown[];
    return [hash, ...members.map(({ sent }) => (sent as readonly unknown[])[1])];
  }

  override answer(reply: unknown, form: 'decoded' | 'raw'): void {
    const values = reply as readonly unknown[];
    for (let index = 0; index < this.members.length; index += 1) this.members[index]?.answer(values[index], form);
  }

  /**
   * WRONGTYPE of a hash is the answer of each member. Any other error reply says nothing of a single read: a key may be in
   * another slot, or forbidden. So each is sent by itself, as the host sends a command again. What is no reply, such as a
   * lost connection, each member meets as a command of its own would.
   */
  override get reject(): (error: Error) => void {
    return (error) => {
      const { client, redirect, fusing } = this.context;
      const isAnswer = this.name === 'hmget' && error.message.startsWith('WRONGTYPE');
      const isFollowed = redirect !== undefined && FOLLOWED.has(meaningOfError(error.message));
      const isSentAgain = error.name === 'ReplyError' && !isAnswer && !isFollowed;
      if (isSentAgain) fusing?.refused(error);
      for (const member of this.members) {
        if (!isSentAgain || fusing?.mayResend(this.select) === false) member.reject(this.#errorFor(member, error));
        // One that was aborted or has timed out needs no reply.
        else if (member.observer !== SETTLED || member.followers !== undefined) client.sendCommand(member);
      }
    };
  }

  #errorFor({ name, args }: CallEntry, error: Error): Error {
    const copy = copyOfError(error) as Error;
    return 'command' in error ? Object.assign(copy, { command: { name, args } }) : copy;
  }

  protected settleValue(): void {}
  protected settleError(): void {}
}
