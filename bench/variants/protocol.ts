/** What a variant's process runs, and what is measured of it. */

import type { Dataset, OperationId } from './data.js';

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
