/**
 * The host: an ioredis or iovalkey client. This file and, for Clusters, `host-cluster.ts` are the only ones that
 * name its private fields.
 *
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.3–0.4, `built/Redis.js`, `built/Command.js`,
 * `built/utils/Commander.js`, `built/redis/event_handler.js`, `built/DataHandler.js`.
 */
import { tracingChannel } from 'node:diagnostics_channel';
import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import debug from 'debug';
import { scanRequests } from './resp/request-scanner.js';
import type { FallThroughReason } from './stats.js';

/** Any function; what it takes is checked where it is called. */
export type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;

/** The part of the host's `Command` that its queue handling uses. */
export interface HostCommand {
  readonly name: string;
  readonly args: readonly unknown[];
  readonly promise: Promise<unknown>;
  resolve(reply: unknown): void;
  reject(error: Error): void;
}

/** An element of `commandQueue`: a command that awaits its reply. */
export interface QueueItem {
  readonly command: HostCommand;
  /** The pipeline's writer for commands of an explicit pipeline. */
  readonly stream?: unknown;
  /** The database selected when it was sent. */
  readonly select: number;
}

/** The part of Denque that `commandQueue` is used through. */
export interface HostQueue {
  readonly length: number;
  push(item: QueueItem): number;
  shift(): QueueItem | undefined;
  peekFront(): QueueItem | undefined;
  peekAt(index: number): QueueItem | undefined;
}

interface HostCondition {
  readonly select: number;
  readonly subscriber: unknown;
  /** ioredis 6 and up. */
  readonly protocol?: 2 | 3;
  readonly replyMapping?: 'legacy' | 'resp3';
}

export interface HostOptions {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string | null;
  readonly keyPrefix?: string | Buffer;
  readonly commandTimeout?: unknown;
  readonly socketTimeout?: unknown;
  readonly showFriendlyErrorStack?: unknown;
  readonly enableAutoPipelining?: unknown;
  readonly stringNumbers?: unknown;
}

/** A client or a Cluster. */
export interface HasOptions {
  readonly options: HostOptions;
}

/** A client, as far as this package knows it. */
export interface HostClient extends EventEmitter {
  readonly status: string;
  readonly stream?: Duplex;
  readonly commandQueue: HostQueue;
  readonly options: HostOptions;
  readonly condition?: HostCondition;
  readonly isCluster: boolean;
  sendCommand: AnyFunction;
}

type ReplyTransformers = Record<string, unknown>;
type ArgumentTransformers = Record<string, ((args: unknown[]) => unknown[]) | undefined>;

/** The host's `Command` class: the only way to its transformers, which users can replace at any time. */
export interface HostCommandClass {
  readonly prototype: { transformReply: (this: ReplyContext, reply: unknown) => unknown };
  readonly _transformer: { readonly argument: ArgumentTransformers; readonly reply: ReplyTransformers };
}

/** What `Command#transformReply` reads of its command. */
export interface ReplyContext {
  readonly name: string;
  readonly replyEncoding: 'utf8' | null;
  readonly protocol: 2 | 3;
  readonly replyMapping: 'legacy' | 'resp3';
}

/** How the host's decoder turns replies into values on one connection. */
export interface ReplyMode {
  /** Whether the host's decoder knows the types of RESP3 (ioredis 6, whatever protocol was agreed on). */
  readonly resp3Types: boolean;
  readonly replyMapping: 'legacy' | 'resp3';
  readonly stringNumbers: boolean;
}

/** Whether `value` has what every ioredis-like client has; by what it has, since class names differ among versions. */
export function isHostClient(value: unknown): value is HostClient {
  if (typeof value !== 'object' || value === null) return false;
  const client = value as Partial<Record<keyof HostClient, unknown>>;
  return (
    typeof client.sendCommand === 'function' &&
    typeof client.on === 'function' &&
    typeof client.status === 'string' &&
    typeof client.options === 'object' &&
    client.options !== null
  );
}

/** What the hot path needs of a client's internals, or what it misses there. */
export function probeInternals(client: HostClient): { commandClass: HostCommandClass } | { missing: string } {
  const queue = client.commandQueue as Partial<HostQueue> | undefined;
  for (const method of ['push', 'shift', 'peekFront', 'peekAt'] as const) {
    if (typeof queue?.[method] !== 'function') return { missing: `commandQueue.${method}()` };
  }
  return probeCommandClass(client);
}

/** The `Command` class behind a client or Cluster, or what it misses. */
export function probeCommandClass(client: object): { commandClass: HostCommandClass } | { missing: string } {
  const commandClass = captureCommandClass(client);
  if (typeof commandClass?.prototype?.transformReply !== 'function') return { missing: 'Command#transformReply()' };
  const transformer = commandClass._transformer as Partial<HostCommandClass['_transformer']> | undefined;
  if (typeof transformer?.argument !== 'object') return { missing: 'Command._transformer.argument' };
  if (typeof transformer.reply !== 'object') return { missing: 'Command._transformer.reply' };
  return { commandClass };
}

/**
 * Whether the host's promises settle some microtasks after they are resolved. Host: iovalkey and earlier versions
 * of ioredis 5 end `Command#initPromise` in `.finally()`.
 */
export function settlesLate(commandClass: HostCommandClass): boolean {
  const initPromise = (commandClass.prototype as { initPromise?: unknown }).initPromise;
  return typeof initPromise === 'function' && Function.prototype.toString.call(initPromise).includes('.finally(');
}

/**
 * Host: on ioredis 6 `client.constructor` is EventEmitter and no static leads from a client to its `Command` class, so
 * a genuine command method is run on an object that only keeps the command it makes. Nothing is sent.
 */
function captureCommandClass(client: object): HostCommandClass | undefined {
  const echo = inheritedMethod(client, 'echo');
  if (echo === undefined || !isGenuineMethod(echo)) return undefined;
  let captured: object | undefined;
  echo.call(
    {
      options: {},
      sendCommand(command: object) {
        captured = command;
      },
    },
    '',
  );
  return captured?.constructor as HostCommandClass | undefined;
}

function inheritedMethod(client: object, name: string): AnyFunction | undefined {
  const method = (Object.getPrototypeOf(client) as Record<string, unknown>)[name];
  return typeof method === 'function' ? (method as AnyFunction) : undefined;
}

/**
 * Whether a command method is the one that the host generates. A wrapper cannot be told by comparing with what was
 * there at attach, since it may be older than that; but its source is another. Property names survive minifiers.
 */
export const isGenuineMethod = sourceTest((source) =>
  ['showFriendlyErrorStack', 'keyPrefix', 'sendCommand'].every((name) => source.includes(name)),
);

/**
 * Whether `sendCommand` is the host's own. Tracers (OpenTelemetry, Datadog, New Relic, …) wrap it on the prototype,
 * often before this package is loaded; their wrapper's source does not fill the host's queues.
 */
export const isGenuineSendCommand = sourceTest((source) =>
  ['commandQueue.push', 'offlineQueue.push', 'setTimeout'].every((text) => source.includes(text)),
);

export function sourceTest(test: (source: string) => boolean): (fn: AnyFunction) => boolean {
  const seen = new WeakMap<AnyFunction, boolean>();
  return (fn) => {
    const known = seen.get(fn);
    if (known !== undefined) return known;
    const genuine = test(Function.prototype.toString.call(fn));
    seen.set(fn, genuine);
    return genuine;
  };
}

/**
 * The `data` listener that the host registered on its connection, if it can be told from the others'.
 * Host: `DataHandler` is built in the connect handler and nobody keeps a reference to it.
 */
export function findDataListener(stream: Duplex): AnyFunction | undefined {
  const listeners = stream.listeners('data') as AnyFunction[];
  if (listeners.length === 1) return listeners[0];
  const matching = listeners.filter((listener) =>
    /\b(?:parser|decoder)\.(?:execute|write)\(/.test(Function.prototype.toString.call(listener)),
  );
  return matching.length === 1 ? matching[0] : undefined;
}

/** Read once per connection, when the host has made its decoder (`connectHandler`). */
export function replyModeOf(client: HostClient): ReplyMode {
  const { condition, options } = client;
  return {
    resp3Types: condition?.protocol !== undefined,
    replyMapping: condition?.replyMapping ?? 'legacy',
    stringNumbers: Boolean(options.stringNumbers),
  };
}

/**
 * What reply transformers are told of the connection. Host: a server that refuses RESP3 changes the condition during
 * the hand-shake, when the decoder is made already.
 */
export function replyProtocol({ condition }: HostClient): Pick<ReplyContext, 'protocol' | 'replyMapping'> {
  return { protocol: condition?.protocol ?? 2, replyMapping: condition?.replyMapping ?? 'legacy' };
}

/**
 * Host: `DEBUG=ioredis:*` prints a line for every command that passes `sendCommand`; with it on, all of them must.
 */
export function isDebugging(): boolean {
  return debug.enabled('ioredis:redis') || debug.enabled('iovalkey:redis');
}

/** Host: `isResp2SubscriberMode`; RESP2 alone mixes messages with replies, and refuses other commands. */
export function inSubscriberMode(client: HostClient): boolean {
  const { condition } = client;
  return condition !== undefined && Boolean(condition.subscriber) && condition.protocol !== 3;
}

const command = tracingChannel('ioredis:command');
// Not `command.hasSubscribers`: Node has it since 20.13 only.
const { start, end, asyncStart, asyncEnd, error } = command;

function isTraced(): boolean {
  return (
    start.hasSubscribers ||
    end.hasSubscribers ||
    asyncStart.hasSubscribers ||
    asyncEnd.hasSubscribers ||
    error.hasSubscribers
  );
}

let lastGenuineSendCommand: AnyFunction | undefined;

/**
 * Why a command of this client cannot take the hot path on `stream` now, or undefined if it can. Everything is looked
 * at anew for each command: status, options and prototypes may change between two of them.
 */
export function obstacle(client: HostClient, stream: Duplex): FallThroughReason | undefined {
  if (client.status !== 'ready' || client.stream !== stream || !stream.writable) return 'connection';
  if (inSubscriberMode(client)) return 'subscriber';
  const { sendCommand } = client;
  if (sendCommand !== lastGenuineSendCommand) {
    if (!isGenuineSendCommand(sendCommand)) return 'patched';
    lastGenuineSendCommand = sendCommand;
  }
  const { options } = client;
  if (options.socketTimeout !== undefined || options.showFriendlyErrorStack || options.enableAutoPipelining) {
    return 'options';
  }
  if (isTraced()) return 'traced';
  return undefined;
}

export function isAutoPipelining(client: HasOptions): boolean {
  return Boolean(client.options.enableAutoPipelining);
}

/**
 * Host: `parseOptions` fills `options` key by key, which leaves V8 with a dictionary, and five look-ups in it are an
 * eighth of what a hot command costs. An object that serves as a prototype is kept in fast form; nothing else about it
 * changes. See "Options in fast form" in docs/performance.md.
 */
export function makeOptionsFast(client: HasOptions): void {
  const inheriting = Object.create(client.options) as HostOptions;
  // V8 turns a prototype fast when a look-up through it is cached, which takes a few.
  for (let round = 0; round < 100; round += 1) void inheriting.keyPrefix;
}

/** `host:port` of the server at the other end of a stream, or its socket's path, as far as either is known. */
export function addressOf({ options }: HostClient, stream: Duplex): string {
  const { remoteAddress, remotePort } = stream as { remoteAddress?: string; remotePort?: number };
  if (remoteAddress !== undefined) return `${remoteAddress}:${remotePort}`;
  return options.path ?? `${options.host}:${options.port}`;
}

/** The database that a command sent now runs in. */
export function selectedDatabase(client: HostClient): number {
  return client.condition?.select ?? 0;
}

/** `keyPrefix` as it is now; undefined for none. */
export function keyPrefixOf(client: HasOptions): string | Buffer | undefined {
  const { keyPrefix } = client.options;
  return keyPrefix === '' ? undefined : keyPrefix;
}

/** `commandTimeout` in milliseconds as it is now; undefined for none. Host: any number counts, `sendCommand`. */
export function commandTimeoutOf(client: HostClient): number | undefined {
  const { commandTimeout } = client.options;
  return typeof commandTimeout === 'number' ? commandTimeout : undefined;
}

/**
 * How many commands a write of the host's stands for. A single command is written before its entry is pushed. An
 * explicit pipeline's bytes go out in one write when its last command passes; its other entries are in the queue by
 * then and carry the pipeline's writer as their `stream` (`built/Pipeline.js`, `execPipeline`). So only a write behind
 * entries of a pipeline not met before needs a look at its bytes.
 */
export class HostWriteCounter {
  readonly #met = new WeakSet<object>();

  count(client: HostClient, data: string | Uint8Array): number {
    const queue = client.commandQueue;
    const writer = queue.peekAt(queue.length - 1)?.stream;
    if (typeof writer !== 'object' || writer === null || this.#met.has(writer)) return 1;
    this.#met.add(writer);
    return scanRequests(data).commands;
  }
}
