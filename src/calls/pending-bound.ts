import { Entry } from '../core/entry.js';
import type { Admission } from '../core/features.js';
import { CODES, type CodedError, coded } from '../errors.js';
import { isRejected } from '../host/command-class.js';
import { isScriptCommand } from '../host/script.js';
import { unanswered, unansweredOf } from '../host/state.js';
import type { HostCommand } from '../host/types.js';
import type { Stats } from '../stats.js';

/**
 * Commands about the connection itself, which are never refused: the host sends them when it connects, and a client
 * must be able to quit. If MULTI were refused, the commands after it would be executed without a transaction.
 */
export const CONNECTION_COMMANDS: ReadonlySet<string> = new Set(
  (
    'auth hello select client info cluster readonly readwrite asking monitor himport quit reset multi ' +
    'subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe'
  ).split(' '),
);

/** The host accepts any value as a name, and fails later. */
const nameOf = ({ name }: HostCommand) => String(name).toLowerCase();

/**
 * `maxPending`: refuses calls while too many commands of one client, or of one node of a Cluster, await their reply;
 * for a Cluster itself, too many in its offline queue. It only compares the lengths of the host's own queues.
 */
export class PendingBound implements Admission {
  /** The last accepted MULTI, until it is answered, or its EXEC or DISCARD is accepted. */
  #multi: HostCommand | undefined;

  constructor(
    readonly client: object,
    readonly maxPending: number,
    readonly counters: Stats,
    readonly connection: () => { readonly transaction: { readonly begun: boolean } } | undefined,
    /** Accepted host commands, which `sendCommand` may send again. The nodes of a Cluster share this set. */
    readonly accepted = new WeakSet<object>(),
  ) {
    for (const command of unanswered(client)) this.#accept(command);
  }

  /**
   * The error for a call that would exceed the bound; undefined if it may be sent. The commands of an open transaction
   * are not refused, because it would run without them.
   */
  refusalOf(commands: number): CodedError | undefined {
    const pending = unansweredOf(this.client);
    if (pending + commands <= this.maxPending) return undefined;
    if (this.#multi !== undefined || this.connection()?.transaction.begun) return undefined;
    this.counters.refusedCalls += 1;
    const call = `a call of ${commands} ${commands === 1 ? 'command' : 'commands'}`;
    const why = `${call}, with ${pending} awaiting their reply, exceeds maxPending: ${this.maxPending}`;
    return coded(Error, CODES.PENDING, why);
  }

  /**
   * Rejects a command that the host is about to send, and returns true, if it would exceed the bound. Other places
   * check the commands of pipelines (`exec()`), fast entries (when they are made) and scripts (when they are called,
   * because their commands may be sent again after NOSCRIPT).
   */
  refuses(command: HostCommand, stream: unknown): boolean {
    if (command instanceof Entry || this.accepted.has(command)) return false;
    const isAsked = stream !== undefined || isScriptCommand(command) || CONNECTION_COMMANDS.has(nameOf(command));
    const refusal = isAsked ? undefined : this.refusalOf(1);
    if (refusal !== undefined) command.reject(refusal);
    else this.#accept(command);
    return refusal !== undefined;
  }

  refuseBeyond<Call>(calls: Call[]): Call[] {
    const refused = calls.splice(Math.max(0, this.maxPending - unansweredOf(this.client)));
    this.counters.refusedCalls += refused.length - 1;
    return refused;
  }

  #accept(command: HostCommand): void {
    this.accepted.add(command);
    const name = nameOf(command);
    if (name === 'exec' || name === 'discard') this.#multi = undefined;
    if (name !== 'multi' || isRejected(command)) return;
    this.#multi = command;
    // Once MULTI is answered, `connection` has the transaction. Its promise is not used, because a derived one might
    // reject unhandled.
    for (const settler of ['resolve', 'reject'] as const) {
      const settle = command[settler];
      command[settler] = (outcome: never) => {
        if (this.#multi === command) this.#multi = undefined;
        settle(outcome);
      };
    }
  }
}
