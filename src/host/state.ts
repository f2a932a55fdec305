/**
 * The state of a client that decides how a command is sent. Read for each command, since it may change.
 *
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.3–0.4, `built/Redis.js`, `built/cluster/index.js`.
 */
import { tracingChannel } from 'node:diagnostics_channel';
import type { Duplex } from 'node:stream';
import debug from 'debug';
import type { ReplyMode } from '../resp/decoder.js';
import type { FallbackReason } from '../stats.js';
import { nextTick } from '../util/clock.js';
import { isRejected } from './command-class.js';
import { isUnpatchedSendCommand, unwrapped } from './probe.js';
import type {
  AnyFunction,
  HasOptions,
  HostClient,
  HostCommand,
  HostOptions,
  HostQueue,
  QueueItem,
  ReplyContext,
} from './types.js';

/** The modes of the host's decoder; read once per connection, when it has been made (`connectHandler`). */
export function replyModeOf(client: HostClient): ReplyMode {
  const { condition, options } = client;
  return {
    resp3Types: condition?.protocol !== undefined,
    replyMapping: condition?.replyMapping ?? 'legacy',
    stringNumbers: Boolean(options.stringNumbers),
  };
}

/**
 * The protocol of the connection, for reply transformers. Host: if the server refuses RESP3, the condition changes
 * during the handshake, after the decoder was made.
 */
export function replyProtocol({
  condition,
}: Pick<HostClient, 'condition'>): Pick<ReplyContext, 'protocol' | 'replyMapping'> {
  return { protocol: condition?.protocol ?? 2, replyMapping: condition?.replyMapping ?? 'legacy' };
}

/** Host: with `DEBUG=ioredis:*`, `sendCommand` prints a line per command; so no command may bypass it then. */
export function isDebugging(): boolean {
  return debug.enabled('ioredis:redis') || debug.enabled('iovalkey:redis');
}

/** Host: `isResp2SubscriberMode`. Only RESP2 mixes messages with replies, and refuses other commands. */
export function inSubscriberMode(client: HostClient): boolean {
  const { condition } = client;
  return condition !== undefined && Boolean(condition.subscriber) && condition.protocol !== 3;
}

/** Whether incoming data may answer no command. Host: messages in RESP2, a monitor's lines, SUBSCRIBE with channels. */
export function mayAnswerNothing(client: HostClient, head: QueueItem): boolean {
  return inSubscriberMode(client) || client.status === 'monitoring' || /subscribe$/i.test(head.command.name);
}

const commands = tracingChannel('ioredis:command');
const batches = tracingChannel('ioredis:batch');

/** Whether a channel has subscribers. Not its own `hasSubscribers`: Node has it only since 20.13. */
function hasSubscribers({ start, end, asyncStart, asyncEnd, error }: typeof commands): boolean {
  return (
    start.hasSubscribers ||
    end.hasSubscribers ||
    asyncStart.hasSubscribers ||
    asyncEnd.hasSubscribers ||
    error.hasSubscribers
  );
}

/** Whether transactions are published: the host's channel has a subscriber. */
export function publishesTransactions(): boolean {
  return hasSubscribers(batches);
}

let lastUnpatchedSendCommand: AnyFunction | undefined;

/**
 * Why a command of this client cannot take the fast path on `stream` now; undefined if it can. Everything is checked
 * per command: status, options and prototypes may change between two of them.
 */
export function clientFallbackReason(client: HostClient, stream: Duplex): FallbackReason | undefined {
  if (client.status !== 'ready' || client.stream !== stream || !stream.writable) return 'connection';
  if (inSubscriberMode(client)) return 'subscriber';
  const { options } = client;
  if (options.showFriendlyErrorStack || options.enableAutoPipelining) return 'options';
  if (isLayered(client)) return 'patched';
  if (hasSubscribers(commands) && client._buildCommandContext !== undefined) return 'traced';
  return undefined;
}

/** Whether there are layers over `sendCommand`: they may delay commands, even some of a pipeline. */
export function isLayered(client: HostClient): boolean {
  if (client.sendCommand === lastUnpatchedSendCommand) return false;
  const sendCommand = unwrapped(client.sendCommand);
  if (sendCommand !== lastUnpatchedSendCommand && !isUnpatchedSendCommand(sendCommand)) return true;
  lastUnpatchedSendCommand = sendCommand;
  return false;
}

/**
 * Whether a replaced `sendCommand` is that of all clients of a class, like those of tracers. A client's own may be a
 * test's stub, or the host's: a monitor has one.
 */
export function isLayeredInClass(client: object): boolean {
  return !Object.hasOwn(client, 'sendCommand');
}

/**
 * Publishes a command on the host's channel, when it has been written and queued, and returns the promise of its
 * caller. Host: `Redis#sendCommand`, `traceCommand` in `built/tracing.js`.
 */
export function publishCommand(client: HostClient, command: HostCommand): Promise<unknown> {
  const context = client._buildCommandContext?.(command) ?? {};
  const published = commands.tracePromise(() => command.promise, context);
  published.catch(() => {});
  return published;
}

/**
 * Host: `parseOptions` fills `options` key by key, so V8 keeps it as a dictionary. Five lookups in it are an eighth of
 * the cost of a fast command. V8 keeps an object that serves as a prototype in fast form; nothing else about it
 * changes. See "Options in fast form" in docs/performance.md.
 */
export function makeOptionsFast(client: HasOptions): void {
  const inheriting = Object.create(client.options) as HostOptions;
  // V8 makes a prototype fast when a lookup through it is cached, which takes a few lookups.
  for (let round = 0; round < 100; round += 1) void inheriting.keyPrefix;
}

/** Object shapes that V8 distinguishes at one place in the code. */
const FORMS_PER_PLACE = 4;
let firstClients = 0;

/**
 * Makes the options of a process's first clients fast before a command reads them: code that has ever seen the slow
 * form, too, stays slower for every client.
 */
export function makeFirstOptionsFast(client: HasOptions): void {
  if (firstClients === FORMS_PER_PLACE) return;
  firstClients += 1;
  makeOptionsFast(client);
}

/** `host:port` of the server at the other end of a stream, or the path of its socket. */
export function addressOf({ options }: HostClient, stream: Duplex): string {
  const { remoteAddress, remotePort } = stream as { remoteAddress?: string; remotePort?: number };
  if (remoteAddress !== undefined) return `${remoteAddress}:${remotePort}`;
  return options.path ?? `${options.host}:${options.port}`;
}

/** The number of the database that a command sent now runs in. */
export function selectedDatabase(client: HostClient): number {
  return client.condition?.select ?? 0;
}

/** `commandTimeout` in milliseconds as it is now; undefined for none. Host: `sendCommand` takes any number. */
export function commandTimeoutOf(client: HostClient): number | undefined {
  const { commandTimeout } = client.options;
  return typeof commandTimeout === 'number' ? commandTimeout : undefined;
}

interface Queueing extends HasOptions {
  /** A Cluster has none. */
  readonly commandQueue?: HostQueue;
  readonly offlineQueue?: HostQueue;
  /** Commands of the lost connection. */
  readonly prevCommandQueue?: HostQueue | null;
  readonly isCluster?: unknown;
  nodes?(): Queueing[];
}

/** How many commands await their reply: sent, waiting for the next connection, or to be sent again. */
export function unansweredOf(client: object): number {
  const { commandQueue, offlineQueue, prevCommandQueue } = client as Queueing;
  // Host: until the next connection they are the same.
  const lost = prevCommandQueue === commandQueue ? 0 : (prevCommandQueue?.length ?? 0);
  return (commandQueue?.length ?? 0) + (offlineQueue?.length ?? 0) + lost;
}

/** The commands that await their reply, wherever they wait. */
export function unanswered(client: object): HostCommand[] {
  const { commandQueue, offlineQueue, prevCommandQueue } = client as Queueing;
  return [commandQueue, offlineQueue, prevCommandQueue].flatMap((queue) =>
    Array.from({ length: queue?.length ?? 0 }, (_, index) => queue?.peekAt(index)?.command as HostCommand),
  );
}

/** Whether a MULTI is open after the next connection's first commands. Host: it resends those of the lost one. */
function isOpenAfterResent({ options, prevCommandQueue }: Queueing): boolean {
  const resent = options.autoResendUnfulfilledCommands ? unanswered({ prevCommandQueue }) : [];
  return resent.reduce((isOpen, { name }) => opensTransaction(name, isOpen), false);
}

/** Whether a command of this name leaves a transaction open; `before` if it is unrelated to transactions. */
function opensTransaction(name: string, before: boolean): boolean {
  const lower = name.toLowerCase();
  return lower === 'multi' || (before && lower !== 'exec' && lower !== 'discard');
}

/** Commands that are removed from an offline queue at the end of this step, by client or Cluster. */
const dropped = new WeakMap<object, Set<HostCommand>>();

/**
 * Removes a command from the offline queue of a client, or of a Cluster and its nodes, if it is there. In a transaction
 * it stays: EXEC's reply has a place for each of its commands. All commands of a step are removed together, in one
 * pass: a signal may abort thousands behind a hundred thousand.
 */
export function dropUnsent(client: object, command: HostCommand): void {
  const commands = dropped.get(client);
  if (commands !== undefined) {
    commands.add(command);
    return;
  }
  const first = new Set([command]);
  dropped.set(client, first);
  nextTick(() => {
    dropped.delete(client);
    // Clears their timers. Their callers have been rejected already.
    for (const each of dropAll(client, first)) if (!isRejected(each)) each.reject(new Error('aborted'));
  });
}

/** Takes these commands out of the offline queues; returns those that were there. */
function dropAll(client: object, commands: ReadonlySet<HostCommand>): HostCommand[] {
  const { offlineQueue, isCluster, nodes } = client as Queueing;
  const taken = isCluster === true ? (nodes?.call(client) ?? []).flatMap((node) => dropAll(node, commands)) : [];
  if (offlineQueue === undefined) return taken;
  let inTransaction = isOpenAfterResent(client as Queueing);
  // Each is taken from the front, and put back at the end, if it stays.
  for (let left = offlineQueue.length; left > 0; left -= 1) {
    const item = offlineQueue.shift() as QueueItem;
    if (!inTransaction && commands.has(item.command)) taken.push(item.command);
    else {
      inTransaction = opensTransaction(item.command.name, inTransaction);
      offlineQueue.push(item);
    }
  }
  return taken;
}
