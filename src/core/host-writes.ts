import { effectOf } from '../commands/effects.js';
import { HostWrites } from '../host/pipeline.js';
import type { HostClient, HostWrite } from '../host/types.js';
import type { Entry } from './entry.js';
import type { Outgoing } from './outgoing.js';

/** What `#parse` says of a write for an entry: fast commands have no effects to report. */
const ONE = { commands: 1, repliesOff: false, script: false };
/** The entry that was announced last, and its bytes. */
let announced: Entry | undefined;
let announcedData: HostWrite['data'] | undefined;

/**
 * The host has asked an entry for its bytes: it writes them next, and then queues it. Undefined withdraws what was
 * announced before.
 */
export function announceWrite(entry: Entry | undefined, data?: HostWrite['data']): void {
  announced = entry;
  announcedData = data;
}

/** The announced entry, if `data` is what was announced. Withdraws the announcement. */
function entryWrittenAs(data: HostWrite['data']): Entry | undefined {
  const entry = announcedData === data ? announced : undefined;
  announceWrite(undefined);
  return entry;
}

/**
 * Stands in front of the stream's `write`, and gets all that the host writes: single commands, explicit pipelines,
 * handshakes, and commands of ours that come back through layers over `sendCommand`.
 */
export class HostWriteHook {
  readonly client: HostClient;
  readonly #requests = new HostWrites();

  constructor(readonly outgoing: Outgoing) {
    this.client = outgoing.client;
  }

  readonly write = (data: HostWrite['data'], encoding?: BufferEncoding, callback?: HostWrite['callback']): boolean => {
    // First: a hook of others, which runs as immediates are made, may send commands. Before a pipeline's write all but
    // its last command are queued already: see Limits in docs/guarantees.md.
    if (this.outgoing.connection.open && !this.#handshaking) this.outgoing.batch.scheduleFlush();
    const result = this.#write(data, encoding, callback);
    // The length of the queue after this write can be predicted, except while replies are read: each removes a command,
    // and user code may send in between.
    const { connection, replies } = this.outgoing;
    if (connection.open && data.length > 0 && !connection.reader.isBusy && !connection.isLeftToHost)
      replies.expectedQueueLength = this.client.commandQueue.length + 1;
    return result;
  };

  #write(
    data: HostWrite['data'],
    encoding: BufferEncoding | HostWrite['callback'],
    callback: HostWrite['callback'],
  ): boolean {
    const { outgoing } = this;
    const { connection, gate, batch, reads, stats, stream } = outgoing;
    const { begun } = outgoing.transaction;
    const entry = entryWrittenAs(data);
    const isReadHere = entry !== undefined && !reads?.incoming;
    const { commands, repliesOff, script } = isReadHere ? ONE : this.#parse(data);
    if (connection.mayWrite(commands - 1)) connection.checkQueue('write', commands - 1);
    outgoing.replies.lastQueued = undefined;
    if (isReadHere && connection.open && !connection.isLeftToHost && !this.#handshaking) {
      this.#writeEntry(entry, data as string | Buffer);
      return true;
    }
    if (!connection.open || stream.destroyed || data.length === 0 || this.#handshaking) {
      return batch.writer.write(data, encoding as BufferEncoding, callback);
    }
    const write: HostWrite =
      typeof encoding === 'function' ? { data, encoding: undefined, callback: encoding } : { data, encoding, callback };
    stats.commands += commands;
    // The host's command may change keys (invariant 6).
    reads?.endRun();
    if (repliesOff) {
      reads?.repliesOff();
      gate.lift(batch);
    }
    // All but the last of a pipeline's entries are in the queue by now.
    if (gate.mustWait(commands, begun, commands - 1)) {
      gate.hold(write, commands, 0, begun);
      return false;
    }
    const result = batch.addHost(write, commands);
    if (script) batch.scriptAdded();
    return result;
  }

  /** Ordering: the host queues the entry when this has returned. */
  #writeEntry(entry: Entry, data: string | Buffer): void {
    const { gate, batch, stats, replies, transaction } = this.outgoing;
    const { begun } = transaction;
    entry.readHere = true;
    stats.commands += 1;
    stats.fastCommands += 1;
    stats.observedCommands += 1;
    replies.expected += 1;
    // It may change keys (invariant 6).
    this.outgoing.reads?.endRun();
    if (gate.mustWait(1, begun)) gate.holdFast([data], begun);
    else batch.addExact([data], 1, 1, true);
    if (entry.variant.script !== undefined) batch.scriptAdded();
  }

  /** Reads the commands in a host write, and reports their effects. Malformed bytes count as one command. */
  #parse(data: HostWrite['data']) {
    const requests = this.#requests.read(this.client, data);
    const { reads, transaction } = this.outgoing;
    reads?.hostWrites(data, requests.single);
    let commands = 0;
    let repliesOff = false;
    let script = false;
    while (requests.next()) {
      commands += 1;
      const effect = effectOf(requests);
      reads?.hostSends(effect, requests);
      transaction.issued(effect);
      repliesOff ||= effect === 'no replies';
      script = effect === 'script' && requests.single;
    }
    if (requests.malformed) reads?.hostSendsUnknown();
    return { commands: Math.max(commands, 1), repliesOff, script };
  }

  /**
   * Host: the commands of a handshake go out at once and one by one, as a plain client's do. A user-supplied schedule
   * applies to user commands only.
   */
  get #handshaking(): boolean {
    const { batch, gate } = this.outgoing;
    return this.client.status === 'connect' && batch.commands === 0 && gate.waiting === 0;
  }
}
