import calculateSlot from 'cluster-key-slot';
import { CallArguments } from '../commands/call-arguments.js';
import { type Effect, effectOf } from '../commands/effects.js';
import type { CommandVariant, FusedName } from '../commands/fast-commands.js';
import type { Tail } from '../core/batch.js';
import { type CallEntry, Entry, errorFor } from '../core/entry.js';
import type { Group, Outgoing } from '../core/outgoing.js';
import { CODES, coded, warnOnce } from '../errors.js';
import type { HostCommand } from '../host/types.js';
import { type ErrorMeaning, meaningOfError } from '../resp/error-meaning.js';
import { SETTLED } from '../util/deadlines.js';
import { InternalEntry, internalVariant, sendInternal } from './internal-entry.js';

const MOST_MEMBERS = 64;
/** Commands in the first part of a turn: each part that wakes Redis up takes it as much as thirty of these reads. */
const FIRST_PART = 128;

/** By stream: a connection is lost, and the next one says which reads can be sent by themselves. */
const ownerOn = new WeakMap<object, FusedReads>();

/**
 * `fuseReads`: GETs that would stand next to each other on the wire leave as one MGET, HGETs of one hash as one HMGET.
 *
 * A group is open from its first read until anything else is added to its batch, or the batch is sent: its bytes are
 * made then. Its place in the host's queue is taken at once (invariant 1): by the entry of the first read, which is
 * sent as it is if no other one comes, and from the second read on by a `FusedEntry` in its stead.
 *
 * The server may not know MGET or HMGET, or the user may not use it; reads that were refused and are sent again come
 * too late for what was issued behind them. So a connection's first read is asked for twice, by itself and by a
 * `Probe`, and reads are fused once that was answered.
 */
export class FusedReads implements Group, Tail {
  /** What the server has said to MGET, or HMGET, of one read. */
  readonly #answers: Record<FusedName, 'awaited' | 'given' | undefined> = { mget: undefined, hmget: undefined };
  #members: CallEntry[] = [];
  /** The entry that stands in the queue for all members. */
  #entry: Entry | undefined;
  #slot: number | undefined;
  #stopped = false;
  /** Whether the next read is left alone: the command before it is about one command. */
  #leavesAlone = false;
  /** Counts commands after which a read is another one: of another database, by another user. */
  epoch = 0;

  constructor(readonly outgoing: Outgoing) {
    outgoing.batch.firstPart = FIRST_PART;
    ownerOn.set(outgoing.stream, this);
  }

  /** For the rest of the connection. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Another command than a read of its own is about to be sent. RESP: CLIENT CACHING is about the next command that is
   * not CLIENT, whatever its subcommand.
   */
  sends(name: string, effect?: Effect): void {
    if (effect === 'next' || !/^client$/i.test(name)) this.#leavesAlone = effect === 'next';
    if (BEGINS_EPOCH.has(effect)) this.epoch += 1;
  }

  sendsTogether(commands: readonly HostCommand[]): void {
    for (const command of commands) {
      const isHosts = !(command instanceof Entry);
      this.sends(command.name, isHosts ? effectOf(new CallArguments().of(command.name, command.args)) : undefined);
    }
  }

  /**
   * Whether a read is sent with others: its key, or its key and field, are text. It may send a probe before the read; a
   * read right after CLIENT CACHING uses that mark up.
   */
  takes({ variant, wireArgs }: Entry): boolean {
    const { fused } = variant.command;
    const { transaction } = this.outgoing;
    if (fused === undefined || this.#stopped || transaction.open || transaction.watching) return false;
    if (this.#leavesAlone) {
      this.#leavesAlone = false;
      return false;
    }
    const isText = fused === 'mget' ? typeof wireArgs === 'string' : isTwoTexts(wireArgs);
    if (isText && this.#answers[fused] === undefined) {
      this.#answers[fused] = 'awaited';
      sendInternal(this.outgoing, new Probe(fused, wireArgs, this));
    }
    return isText && this.#answers[fused] === 'given';
  }

  /** A command of one read was answered, or failed: then the next read asks again, if any is still to be fused. */
  probed(name: FusedName, error: unknown, reply: unknown): void {
    const isReply = error instanceof Error && error.name === 'ReplyError';
    // The server has the command, and the user may use it: the key is of another type.
    const isGiven = Array.isArray(reply) || (isReply && error.message.startsWith('WRONGTYPE'));
    this.#answers[name] = isGiven ? 'given' : undefined;
    if (isGiven) return;
    if (isReply) this.refused(error.message);
    else if (error === undefined) this.refused(unreadable(name).message);
  }

  /** Queues a read that is about to be sent: in the place of those before it, if it goes with them. */
  add(entry: CallEntry): boolean {
    const { batch, client } = this.outgoing;
    const joins = batch.endsWith(this) && this.#joins(entry);
    if (!joins) {
      batch.endTail();
      this.#members = [entry];
      this.#entry = entry;
      this.#slot = undefined;
      client.commandQueue.push(entry);
    }
    batch.addToTail(this, lengthOf(entry.wireArgs));
    return !joins;
  }

  #joins(entry: CallEntry): boolean {
    const members = this.#members;
    const [first] = members;
    if (first === undefined || members.length === MOST_MEMBERS || !this.#goTogether(first, entry)) return false;
    if (members.length === 1) {
      const { commandQueue } = this.outgoing.client;
      // Host: a pipeline queues its commands before it writes them. User code that runs amid that may have got here.
      if (commandQueue.peekAt(commandQueue.length - 1) !== first) return false;
      this.#members = [first, entry];
      this.#entry = new FusedEntry(this.#members, this);
      commandQueue.pop();
      commandQueue.push(this.#entry);
    } else members.push(entry);
    return true;
  }

  /** Ends the open group, which there has to be. */
  end(): Entry {
    const { length } = this.#members;
    if (length > 1) this.outgoing.stats.fusedReads += length;
    this.#members = [];
    return this.#entry as Entry;
  }

  #goTogether(first: CallEntry, entry: CallEntry): boolean {
    const { variant } = first;
    const { command, encoding } = entry.variant;
    if (variant.command.fused !== command.fused || variant.encoding !== encoding) return false;
    if (first.context !== entry.context) return false;
    if (command.fused === 'hmget') return keyOf(first) === keyOf(entry);
    if (first.context.redirect === undefined) return true;
    // RESP: a Cluster's server refuses a command with keys of several slots (CROSSSLOT).
    this.#slot ??= calculateSlot(keyOf(first));
    return calculateSlot(keyOf(entry)) === this.#slot;
  }

  /**
   * Whether reads of an epoch can be sent again now: in a transaction they would be queued by the server. A connection
   * that is not ours any more tells of none.
   */
  mayResend(epoch: number): boolean {
    const { open, transaction } = this.outgoing;
    return open && !transaction.open && this.epoch === epoch;
  }

  /** A fused command got an error that a read alone would not have got. What passes does not end fusing. */
  refused(message: string): void {
    if (this.#stopped || FOLLOWED.has(meaningOfError(message))) return;
    this.stop();
    warnOnce(
      CODES.FUSE,
      `ioredis-coalesce: options.fuseReads is set, but the server refuses MGET or HMGET ("${message}"), so reads are sent ` +
        'one by one on this connection: allow both commands for these keys, or leave the option out',
    );
  }
}

/** Characters of a read's arguments. */
function lengthOf(sent: unknown): number {
  return Array.isArray(sent)
    ? (sent as string[]).reduce((sum, { length }) => sum + length, 0)
    : (sent as string).length;
}

function keyOf({ wireArgs }: CallEntry): string {
  return (Array.isArray(wireArgs) ? wireArgs[0] : wireArgs) as string;
}

/** RESP: SELECT, AUTH, HELLO, RESET, SWAPDB and others. Not asked of the host: it knows no `call('SELECT', 1)`. */
const BEGINS_EPOCH = new Set<Effect | undefined>(['clear', 'end', 'reset', 'no replies']);

/** Errors that a Cluster follows or tries again for each command. */
const FOLLOWED = new Set<ErrorMeaning>(['moved', 'passing']);

function unreadable(name: string): Error {
  return coded(
    Error,
    CODES.REPLY,
    `the server answered ${name.toUpperCase()} with another reply than a value for each read`,
  );
}

const VARIANTS: Record<FusedName, { readonly text: CommandVariant; readonly bytes: CommandVariant }> = {
  mget: variantsOf('mget'),
  hmget: variantsOf('hmget'),
};

function variantsOf(name: FusedName) {
  const text = internalVariant(name);
  return { text, bytes: { ...text, encoding: null } };
}

function isTwoTexts(wireArgs: unknown): boolean {
  return (
    Array.isArray(wireArgs) &&
    wireArgs.length === 2 &&
    typeof wireArgs[0] === 'string' &&
    typeof wireArgs[1] === 'string'
  );
}

/** MGET or HMGET of one read, for which no caller waits. */
class Probe extends InternalEntry {
  constructor(name: FusedName, wireArgs: unknown, owner: FusedReads) {
    super(VARIANTS[name].bytes, wireArgs, owner.outgoing.context, (error, reply) => owner.probed(name, error, reply));
  }
}

/** Its members settle themselves. */
function noop(): void {}

/**
 * The entry of reads that left as one command (`fuseReads`): MGET for GETs, HMGET for HGETs of one hash. It is one
 * command to the host, which may decode its reply, flush it or send it again; each member settles with its element of
 * the reply.
 */
export class FusedEntry extends InternalEntry {
  #owner: FusedReads | undefined;
  #epoch: number;

  constructor(
    readonly members: readonly CallEntry[],
    owner: FusedReads,
  ) {
    const [{ variant, context }] = members as [CallEntry];
    const { text, bytes } = VARIANTS[variant.command.fused as FusedName];
    super(variant.encoding === null ? bytes : text, undefined, context, noop);
    this.#owner = owner;
    this.#epoch = owner.epoch;
  }

  /** Host: it is sent again, on another connection. */
  override toWritable(stream: object): string | Buffer {
    this.#owner = ownerOn.get(stream);
    this.#epoch = this.#owner?.epoch ?? 0;
    return super.toWritable(stream);
  }

  /** MGET key …, or HMGET key field …: the last argument of each member, which are strings. */
  protected override ownArguments(): readonly unknown[] {
    const { members } = this;
    if (this.name === 'mget') return members.map(({ wireArgs }) => wireArgs);
    const [first] = members as [CallEntry];
    const [hash] = first.wireArgs as readonly unknown[];
    return [hash, ...members.map(({ wireArgs }) => (wireArgs as readonly unknown[])[1])];
  }

  /** Each member gets its element. A proxy in front of several servers may answer one with an error. */
  override answer(reply: unknown, form: 'decoded' | 'raw'): void {
    const isOfAll = Array.isArray(reply) && reply.length === this.members.length;
    for (let index = 0; index < this.members.length; index += 1) {
      const member = this.members[index] as CallEntry;
      const value: unknown = isOfAll ? reply[index] : unreadable(this.name);
      if (!(value instanceof Error)) member.answer(value, form);
      else member.reject(Object.assign(value, { command: { name: member.name, args: member.args } }));
    }
  }

  /** Host: it starts `commandTimeout` of what it sends again, unless it runs already, as a member's may. */
  override setTimeout(ms: number): void {
    for (const member of this.members) member.setTimeout(ms);
  }

  /**
   * WRONGTYPE of a hash is the answer of each member, and so is what passes, or a Cluster follows; but TRYAGAIN only
   * commands of several keys get. Any other error reply says nothing of a single read: a key may be in another slot, or
   * forbidden. So each is sent by itself, as the host sends a command again.
   */
  override handlesError(message: string): boolean {
    const isOfHash = this.name === 'hmget' && message.startsWith('WRONGTYPE');
    if (isOfHash || (FOLLOWED.has(meaningOfError(message)) && !message.startsWith('TRYAGAIN'))) return false;
    this.#owner?.refused(message);
    if (!this.#owner?.mayResend(this.#epoch)) return false;
    for (const member of this.members) {
      // One that was aborted or has timed out needs no reply.
      if (member.deadline === SETTLED) continue;
      try {
        this.context.client.sendCommand(member);
      } catch (error) {
        // Of a layer that was put on since. The members behind this one must not wait for ever.
        member.fail(error);
      }
    }
    return true;
  }

  /** What is no reply, such as a lost connection, each member meets as a command of its own would. */
  protected override rejected(error: Error): void {
    if (error.name === 'ReplyError' && this.handlesError(error.message)) return;
    for (const member of this.members) member.reject(errorFor(member, error) as Error);
  }
}
