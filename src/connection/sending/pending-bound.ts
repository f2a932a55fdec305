import { CODES, type CodedError, coded } from '../../errors.js';
import { isScriptCommand } from '../../host/script.js';
import { hasUnsentTransaction, unanswered, unansweredOf } from '../../host/state.js';
import type { HostCommand } from '../../host/types.js';
import type { Stats } from '../../stats.js';
import { Entry } from '../entries/entry.js';

/** About the connection itself: the host sends them when it connects, and a client has to be able to end. */
const NEVER_REFUSED = new Set(
  (
    'auth hello select client info cluster readonly readwrite asking monitor himport quit reset ' +
    'subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe'
  ).split(' '),
);

/**
 * `maxPending`: refuses calls while too many commands of one client, or of one node of a Cluster, await their reply; for a
 * Cluster itself, those in its offline queue. All queues are the host's, so it only has to look at their lengths.
 */
export class PendingBound {
  #offlineTransaction: boolean | undefined;

  constructor(
    readonly client: { readonly status: string },
    readonly maxPending: number,
    readonly counters: Stats,
    readonly connection: () => { readonly transaction: { readonly begun: boolean } } | undefined,
    /** The host's commands that were accepted: the host sends them again by the same method. The nodes of a Cluster share it. */
    readonly accepted = new WeakSet<object>(),
  ) {
    for (const command of unanswered(client)) accepted.add(command);
  }

  /**
   * The error of a call that would exceed the bound; undefined if it may be sent. A transaction that has begun continues:
   * without some of its commands it would be another one.
   */
  refusalOf(commands: number): CodedError | undefined {
    const pending = unansweredOf(this.client);
    if (pending + commands <= this.maxPending || this.#continuesTransaction()) {
      this.#offlineTransaction = undefined;
      return undefined;
    }
    this.counters.refusedCalls += 1;
    return coded(Error, CODES.PENDING, `${pending} commands of this client await their reply (maxPending)`);
  }

  /**
   * Rejects a command that the host is about to send, and returns true, if it would exceed the bound. Commands of pipelines
   * are asked for by `exec()`, fast entries when they are made, and scripts when they are called: a script's command may be
   * one that is sent again, after NOSCRIPT.
   */
  refuses(command: HostCommand, stream: unknown): boolean {
    const { accepted } = this;
    if (command instanceof Entry || accepted.has(command)) return false;
    const isAsked = stream !== undefined || isScriptCommand(command) || NEVER_REFUSED.has(command.name.toLowerCase());
    const refusal = isAsked ? undefined : this.refusalOf(1);
    if (refusal === undefined) accepted.add(command);
    else command.reject(refusal);
    return refusal !== undefined;
  }

  /** Takes the calls that do not fit from the end, and returns them; `refusalOf` has counted them as one. */
  refuseBeyond<Call>(calls: Call[]): Call[] {
    const refused = calls.splice(Math.max(0, this.maxPending - unansweredOf(this.client)));
    this.counters.refusedCalls += refused.length - 1;
    return refused;
  }

  #continuesTransaction(): boolean {
    if (this.client.status === 'ready') return this.connection()?.transaction.begun === true;
    // The queue is searched once for all calls that are refused until it changes.
    this.#offlineTransaction ??= hasUnsentTransaction(this.client);
    return this.#offlineTransaction;
  }
}
