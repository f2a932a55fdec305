/**
 * The host: an ioredis or iovalkey client. The files of this folder are the only ones that name its private fields,
 * except those that a fast pipeline inherits (`pipelines/fast-pipeline.ts`, `pipelines/pipeline-entry.ts`).
 *
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.3–0.4, `built/Redis.js`, `built/Command.js`,
 * `built/utils/Commander.js`, `built/redis/event_handler.js`, `built/DataHandler.js`.
 */
import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import type * as ioredis from 'ioredis';

/** Any function; its arguments are checked where it is called. */
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
  pop(): QueueItem | undefined;
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
  readonly db?: number;
  readonly connectionName?: unknown;
  readonly keyPrefix?: string | Buffer;
  readonly commandTimeout?: unknown;
  readonly autoResendUnfulfilledCommands?: unknown;
  readonly monitor?: unknown;
  readonly socketTimeout?: unknown;
  /** Command methods record their stack; errors show it from the first frame that is not the host's. */
  readonly showFriendlyErrorStack?: unknown;
  readonly enableAutoPipelining?: unknown;
  readonly stringNumbers?: unknown;
  /** ioredis 6 and up, where it is always set. */
  readonly protocol?: unknown;
}

/** A client or a Cluster. */
export interface HasOptions {
  readonly options: HostOptions;
}

/** The members of a client that this package uses. */
export interface HostClient extends EventEmitter {
  readonly status: string;
  readonly stream?: Duplex;
  readonly commandQueue: HostQueue;
  readonly options: HostOptions;
  readonly condition?: HostCondition;
  readonly isCluster: boolean;
  sendCommand: AnyFunction;
  /** Later versions; see `SocketTimeout`. */
  setSocketTimeout?(): void;
  socketTimeoutTimer?: NodeJS.Timeout | undefined;
  /** A command's published data, in versions that publish commands. */
  _buildCommandContext?(command: HostCommand): object;
}

export type ArgumentTransformers = Record<
  string,
  | ((args: unknown[]) => unknown[])
  | { readonly transformerFunction: (args: unknown[]) => unknown[]; readonly includeCommand: unknown }
  | null
  | undefined
>;

/** The host's `Command` class: the only way to its transformers, which users can replace at any time. */
export interface HostCommandClass {
  new (...args: never[]): HostCommand;
  readonly prototype: {
    transformReply: (this: ReplyContext, reply: unknown) => unknown;
    getKeys(): readonly unknown[];
  };
  checkFlag(flag: string, name: string): boolean;
  readonly _transformer: { readonly argument: ArgumentTransformers; readonly reply: Record<string, unknown> };
}

/** The members of a command that `Command#transformReply` reads. */
export interface ReplyContext {
  readonly name: string;
  readonly replyEncoding: 'utf8' | null;
  readonly protocol: 2 | 3;
  readonly replyMapping: 'legacy' | 'resp3';
}

/** A write by the host: the arguments of the stream's `write`. */
export interface HostWrite {
  readonly data: string | Uint8Array;
  readonly encoding: BufferEncoding | undefined;
  readonly callback: ((error?: Error | null) => void) | undefined;
}

/*
 * The types of ioredis's classes: generic over the reply mapping since ioredis 6, not before.
 */

/** How ioredis 6 maps the types of RESP3 that RESP2 does not have; see its option `replyMapping`. */
export type ReplyMapping = 'legacy' | 'resp3';

type HostIsGeneric = 'replyMapping' extends keyof ioredis.RedisOptions ? true : false;

// biome-ignore lint/suspicious/noTsIgnore: an error in declarations that users of ioredis 5 compile, in none here
/** @ts-ignore: with ioredis 5 the first branch names a type that is not generic, and the second is taken. */
export type HostRedis<M extends ReplyMapping> = HostIsGeneric extends true ? ioredis.Redis<M> : ioredis.Redis;

// biome-ignore lint/suspicious/noTsIgnore: as above
/** @ts-ignore: as above. */
export type HostCluster<M extends ReplyMapping> = HostIsGeneric extends true ? ioredis.Cluster<M> : ioredis.Cluster;

type Replaced = 'prototype' | 'Cluster' | 'createClient';

/** The class `Redis` in a form that a generic class can extend, without the members that the drop-in class defines. */
export interface HostRedisClass extends Omit<typeof ioredis.Redis, Replaced> {
  new <M extends ReplyMapping = 'legacy'>(...args: unknown[]): HostRedis<M>;
  readonly prototype: ioredis.Redis;
}

export interface HostClusterClass extends Omit<typeof ioredis.Cluster, Replaced> {
  new <M extends ReplyMapping = 'legacy'>(...args: unknown[]): HostCluster<M>;
  readonly prototype: ioredis.Cluster;
}

/** The mapping that the options name, or else the current one. */
export type MappingOf<Options, Current extends ReplyMapping> = Options extends { replyMapping: infer Mapping }
  ? [Extract<Mapping, ReplyMapping>] extends [never]
    ? Current
    : Extract<Mapping, ReplyMapping>
  : Current;

/** Like `MappingOf`, for the options of a Cluster. */
export type ClusterMappingOf<Options, Current extends ReplyMapping> = Options extends { redisOptions: infer OfNodes }
  ? MappingOf<OfNodes, Current>
  : Current;
