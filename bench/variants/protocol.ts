/** What a variant's process is asked to do, and what it answers. */

import type { Tasks } from '../tasks/index.js';
import type { VariantId } from './clients.js';
import type { Dataset } from './data.js';
import type { OperationId } from './operations.js';

interface Burst {
  readonly kind: 'burst';
  readonly operation: OperationId;
  readonly size: number;
  readonly data: Dataset;
  /** Takes the latency of whole bursts in the timed rounds; it costs next to nothing. */
  readonly timed?: 'burst';
  /** SETs per second to the same keys by another client meanwhile. */
  readonly writes?: number;
}

interface Loops extends Pick<Burst, 'data' | 'writes'> {
  readonly kind: 'loops';
  readonly loops: number;
  readonly operation?: OperationId;
}

/** GETs that fall due by the clock, whatever became of the ones before: `perSecond`, in steps of 1 ms. */
interface Rate extends Pick<Burst, 'data'> {
  readonly kind: 'rate';
  readonly perSecond: number;
}

/** Memory per command in flight, single or in one pipeline; or per value that was read and is cached. */
export interface MemoryWorkload extends Pick<Burst, 'data'> {
  readonly kind: 'memory';
  readonly commands: number;
  readonly of?: 'pipeline' | 'cached values';
}

export interface PackageWorkload extends Pick<Burst, 'data'> {
  readonly kind: 'package';
  readonly name: string;
  readonly concurrency: number;
  /** Per second, of HTTP requests; where there is none, as fast as it goes. */
  readonly rate?: number;
}

export type TimedWorkload = Burst | Loops | Rate;
export type Workload = TimedWorkload | MemoryWorkload | PackageWorkload;

/** In microseconds. */
export interface Latency {
  readonly p50: number;
  readonly p95?: number;
  readonly p99: number;
  readonly p999?: number;
}

/** What the clients are opened with beside their variant's own options. */
export interface ClientOptions {
  /** The authority that signed the server's certificate, in PEM; makes it TLS. */
  readonly ca?: string;
  /** Of the coalesced variants. */
  readonly coalesce?: Readonly<Record<string, number | boolean | string>>;
}

/** What a task measured, by name. */
export type Measurements = Readonly<Record<string, number | readonly number[]>>;

/** One timed round of one variant. */
export interface Sample {
  /** Commands, requests, or what the case says. */
  readonly perSecond?: number;
  /** CPU of the client's process, microseconds per command. */
  readonly cpuUs?: number;
  /** CPU of the server, microseconds per command. */
  readonly serverCpuUs?: number;
  readonly latencyUs?: Latency;
  /** Heap and external memory of the client per command in flight. */
  readonly bytes?: number;
}

/** A sample as it is taken: what its figures were divided by stays with the process that measured. */
export interface Measured extends Sample {
  readonly commands: number;
  readonly seconds?: number;
}

/** Measured once per case and variant, outside of the timed rounds, because measuring it costs. */
export interface Probe {
  readonly writesPerCommand?: number;
  readonly latencyUs?: Latency;
}

/** CPU that a process spent while it should have been idle. */
export interface Idle {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

interface Timed {
  readonly workload: Workload;
  readonly seconds: number;
}

export interface OpenOrder {
  readonly variant: VariantId;
  readonly url: string;
  readonly prefix: string;
  readonly options: ClientOptions;
}

/** What a variant's process is asked, by type; a failure is answered with `{ error }`. */
export interface Requests {
  /** `unsupported`: why this version of the package has no such variant. */
  open(order: OpenOrder): Promise<{ readonly packagePath?: string; readonly unsupported?: string }>;
  /** Checks every value if it is told to `verify`, then runs the workload untimed. */
  prepare(order: Timed & { readonly verify: boolean }): Promise<Idle>;
  measure(order: Timed): Promise<Measured>;
  probe(order: Timed): Promise<Probe>;
  /** Runs one of `tasks/`. */
  task(order: { readonly name: keyof Tasks; readonly options: object }): Promise<Measurements>;
  close(order: object): Promise<object>;
}

export type Request = { [T in keyof Requests]: { type: T; order: Parameters<Requests[T]>[0] } }[keyof Requests];
