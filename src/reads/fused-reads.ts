import { CallArguments } from '../commands/call-arguments.js';
import { type Effect, effectOf } from '../commands/effects.js';
import type { CommandVariant, FusedName } from '../commands/fast-commands.js';
import type { Tail } from '../core/batch.js';
import { type CallEntry, Entry } from '../core/entry.js';
import type { Group, Outgoing } from '../core/outgoing.js';
import { CODES, coded, warnOnce } from '../errors.js';
import { slotGroupOf } from '../host/cluster.js';
import { isLayered } from '../host/state.js';
import type { HostCommand } from '../host/types.js';
import { type ErrorMeaning, meaningOfError } from '../resp/error-meaning.js';
import { SETTLED } from '../util/deadlines.js';
import { errorFor } from '../util/values.js';
import { InternalEntry, internalVariant, sendInternal } from './internal-entry.js';

const MAX_MEMBERS = 64;
/** Commands in the first part of a turn: waking Redis costs it as much as thirty of these reads. */
const FIRST_PART = 128;

/** The owner by stream, for a fused command that is sent again after its connection was lost. */
const ownerByStream = new WeakMap<object, FusedReads>();

/**
 * `fuseReads`: GETs that would be adjacent on the wire leave as one MGET, HGETs of one hash as one HMGET.
 *
 * A group is open from its first read until anything else is added to its batch, or the batch is sent. Only then is it
 * encoded, but it takes its place in the host's queue at once (invariant 1): the first read's entry, sent unchanged if
 * no other follows, is replaced by a `FusedEntry` at the second.
 *
 * The server may not support MGET or HMGET, or may forbid it. Reads sent again after a refusal come after commands
 * issued later. So a probe, MGET or HMGET of one read, accompanies a connection's first read, and fusing begins once it
 * is answered.
 */
export class FusedReads implements Group, Tail {
  /** The state of the probes. */
  readonly #probes: Record<FusedName, 'awaited' | 'given' | undefined> = { mget: undefined, hmget: undefined };
  #members: CallEntry[] = [];
  /** The entry in the queue that represents all members. */
  #entry: Entry | undefined;
  #slot: number | string | undefined;
  #stopped = false;
  /** Whether the server has refused keys of several slots, although no Cluster sends them. */
  #comparesSlots = false;
  /** Whether the next read must not be fused, because the command before it applies to that read alone. */
  #skipsNext = false;
  /** Counts commands that change the meaning of later reads, such as the selection of a database or user. */
  epoch = 0;

  constructor(readonly outgoing: Outgoing) {
    outgoing.batch.firstPart = FIRST_PART;
    ownerByStream.set(outgoing.stream, this);
  }

  /** Stops fusing for the rest of the connection. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Called before any command that is not fused here. RESP: CLIENT CACHING applies to the next command other than
   * CLIENT, whatever its subcommand.
   */
  sends(name: string, effect?: Effect): void {
    if (effect === 'next' || !/^client$/i.test(name)) this.#skipsNext = effect === 'next';
    if (EPOCH_EFFECTS.has(effect)) this.epoch += 1;
  }

  sendsTogether(commands: readonly HostCommand[]): void {
    for (const command of commands) {
      const isHosts = !(command instanceof Entry);
      this.sends(command.name, isHosts ? effectOf(new CallArguments().of(command.name, command.args)) : undefined);
    }
  }

  /**
   * Whether a read can be fused: its key, or its key and field, must be text. May send a probe before the read. A read
   * right after CLIENT CACHING consumes that mark.
   */
  accepts({ variant, wireArgs }: Entry): boolean {
    const { fused } = variant.command;
    const { transaction } = this.outgoing;
    if (fused === undefined || this.#stopped || transaction.open || transaction.watching) return false;
    if (this.#skipsNext) {
      this.#skipsNext = false;
      return false;
    }
    const isText = fused === 'mget' ? typeof wireArgs === 'string' : isTwoTexts(wireArgs);
    if (isText && this.#probes[fused] === undefined) {
      this.#probes[fused] = 'awaited';
      const { context } = this.outgoing;
      const done = (error: unknown, reply: unknown) => this.#probed(fused, error, reply);
      sendInternal(this.outgoing, new InternalEntry(VARIANTS[fused].bytes, wireArgs, context, done));
    }
    return isText && this.#probes[fused] === 'given';
  }

  /** A probe was answered, or has failed. After a failure the next read sends another one, unless fusing has ended. */
  #probed(name: FusedName, error: unknown, reply: unknown): void {
    const isReply = error instanceof Error && error.name === 'ReplyError';
    // WRONGTYPE is about the key: the command is supported and permitted.
    const isGiven = Array.isArray(reply) || (isReply && error.message.startsWith('WRONGTYPE'));
    this.#probes[name] = isGiven ? 'given' : undefined;
    if (isGiven) return;
    if (isReply) this.refused(error.message);
    else if (error === undefined) this.refused(unreadable(name).message);
  }

  /** Queues a read that is about to be sent, or adds it to the open group. */
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
    if (first === undefined || members.length === MAX_MEMBERS || !this.#canBeFused(first, entry)) return false;
    if (members.length === 1) {
      const { commandQueue } = this.outgoing.client;
      // Host: a pipeline queues its commands before it writes them, and user code that runs meanwhile may get here.
      if (commandQueue.peekAt(commandQueue.length - 1) !== first) return false;
      this.#members = [first, entry];
      this.#entry = new FusedEntry(this.#members, this);
      commandQueue.pop();
      commandQueue.push(this.#entry);
    } else members.push(entry);
    return true;
  }

  /** Ends the open group. There must be one. */
  end(): Entry {
    const { length } = this.#members;
    if (length > 1) this.outgoing.stats.fusedReads += length;
    this.#members = [];
    return this.#entry as Entry;
  }

  #canBeFused(first: CallEntry, entry: CallEntry): boolean {
    const { variant } = first;
    const { command, encoding } = entry.variant;
    if (variant.command.fused !== command.fused || variant.encoding !== encoding) return false;
    if (first.context !== entry.context) return false;
    if (command.fused === 'hmget') return keyOf(first) === keyOf(entry);
    // RESP: a Cluster's server refuses keys of several slots in one command (CROSSSLOT).
    if (first.context.redirect === undefined && !this.#comparesSlots) return true;
    this.#slot ??= slotGroupOf(keyOf(first));
    return slotGroupOf(keyOf(entry)) === this.#slot;
  }

  /**
   * Whether reads of this epoch can be sent again now. In a transaction the server would only queue them. A connection
   * that is no longer read here sees no transactions.
   */
  mayResend(epoch: number): boolean {
    const { connection, transaction } = this.outgoing;
    return connection.open && !transaction.open && this.epoch === epoch;
  }

  /** A fused command got an error that a single read would not get. Ends fusing, unless the error is temporary. */
  refused(message: string, members: readonly CallEntry[] = []): void {
    if (message.startsWith('CROSSSLOT') && new Set(members.map((each) => slotGroupOf(keyOf(each)))).size > 1) {
      this.#comparesSlots = true;
      return;
    }
    if (this.#stopped || RETRIED.has(meaningOfError(message))) return;
    this.stop();
    warnOnce(
      CODES.FUSE,
      `ioredis-coalesce: options.fuseReads is set, but the server refuses MGET or HMGET ("${message}"), so reads are sent ` +
        'one by one on this connection: allow both commands for these keys, or leave the option out',
    );
  }
}

/** The number of characters in a read's arguments. */
function lengthOf(sent: unknown): number {
  return Array.isArray(sent)
    ? (sent as string[]).reduce((sum, { length }) => sum + length, 0)
    : (sent as string).length;
}

function keyOf({ wireArgs }: CallEntry): string {
  return (Array.isArray(wireArgs) ? wireArgs[0] : wireArgs) as string;
}

/** RESP: SELECT, AUTH, HELLO, RESET, SWAPDB and others, also by `call('SELECT', 1)`, which the host ignores. */
const EPOCH_EFFECTS = new Set<Effect | undefined>(['clear', 'end', 'reset', 'no replies']);

/** Errors after which a Cluster redirects or repeats each command. */
const RETRIED = new Set<ErrorMeaning>(['moved', 'passing']);

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

/** The members of a fused entry settle themselves. */
function noop(): void {}

/**
 * The entry of reads that leave as one command (`fuseReads`): MGET for GETs, HMGET for HGETs of one hash. The host sees
 * one command: it may decode the reply, flush the command or send it again. Each member settles with its element of the
 * reply.
 */
export class FusedEntry extends InternalEntry {
  #owner: FusedReads | undefined;
  #epoch: number;

  constructor(
    public members: readonly CallEntry[],
    owner: FusedReads,
  ) {
    const [{ variant, context }] = members as [CallEntry];
    const { text, bytes } = VARIANTS[variant.command.fused as FusedName];
    super(variant.encoding === null ? bytes : text, undefined, context, noop);
    this.#owner = owner;
    this.#epoch = owner.epoch;
  }

  /**
   * Host: called when the command is sent again, on another connection. The size of its reply may have ended the last
   * one (`client-output-buffer-limit`), so all but the last member are sent by themselves, before it. Not through
   * layers, which may have delayed it already. A Cluster's goes to another client.
   */
  override toWritable(stream: object): string | Buffer {
    const { members } = this;
    const { client } = this.context;
    if (stream === client.stream && !isLayered(client)) {
      this.members = members.slice(-1);
      this.#sendEach(members.slice(0, -1));
    }
    this.#owner = ownerByStream.get(stream);
    this.#epoch = this.#owner?.epoch ?? 0;
    return super.toWritable(stream);
  }

  /** The arguments of MGET key … or HMGET key field …, which are strings: the last one of each member. */
  protected override ownArguments(): readonly unknown[] {
    const { members } = this;
    if (this.name === 'mget') return members.map(({ wireArgs }) => wireArgs);
    const [first] = members as [CallEntry];
    const [hash] = first.wireArgs as readonly unknown[];
    return [hash, ...members.map(({ wireArgs }) => (wireArgs as readonly unknown[])[1])];
  }

  /** Gives each member its element, which may be an error from a proxy in front of several servers. */
  override answer(reply: unknown, form: 'decoded' | 'raw'): void {
    const isOfAll = Array.isArray(reply) && reply.length === this.members.length;
    for (let index = 0; index < this.members.length; index += 1) {
      const member = this.members[index] as CallEntry;
      const value: unknown = isOfAll ? reply[index] : unreadable(this.name);
      if (!(value instanceof Error)) member.answer(value, form);
      else member.reject(Object.assign(value, { command: { name: member.name, args: member.args } }));
    }
  }

  /** Host: starts `commandTimeout` of a command that is sent again, unless it is running, as a member's may be. */
  override setTimeout(ms: number): void {
    for (const member of this.members) member.setTimeout(ms);
  }

  /**
   * Each member gets WRONGTYPE for a hash, a temporary error, or one after which a Cluster redirects, except TRYAGAIN,
   * which only commands with several keys get. Any other error may be due to another member's key, which may be
   * forbidden or in another slot. So each member is sent by itself, as the host resends commands.
   */
  override handlesError(message: string): boolean {
    const isOfHash = this.name === 'hmget' && message.startsWith('WRONGTYPE');
    if (isOfHash || (RETRIED.has(meaningOfError(message)) && !message.startsWith('TRYAGAIN'))) return false;
    this.#owner?.refused(message, this.members);
    if (!this.#owner?.mayResend(this.#epoch)) return false;
    this.#sendEach(this.members);
    return true;
  }

  #sendEach(members: readonly CallEntry[]): void {
    for (const member of members) {
      // Aborted and timed out members need no reply.
      if (member.deadline === SETTLED) continue;
      try {
        this.context.client.sendCommand(member);
      } catch (error) {
        // A layer added since then has thrown. The remaining members still have to be sent.
        member.fail(error);
      }
    }
  }

  /** Rejects each member with an error that is not a reply (a lost connection), as if sent by itself. */
  protected override rejected(error: Error): void {
    if (error.name === 'ReplyError' && this.handlesError(error.message)) return;
    for (const member of this.members) member.reject(errorFor(member, error) as Error);
  }
}
