/** What an arm is asked to do, and what it answers: shared by the parent and the arm processes. */

export const ARM_IDS = [
  'plain',
  'plain-resp2',
  'plain5',
  'auto',
  'auto5',
  'iovalkey',
  'node-redis',
  'node-redis-no-timeout',
  'node-redis-resp2',
  'glide',
  'pipeline',
  'mget',
  'cork',
  'coalesced',
  'coalesced-resp2',
  'coalesced-timeout',
  'reference',
  'cluster',
  'cluster-auto',
  'cluster-node-redis',
  'cluster-coalesced',
] as const;
export type ArmId = (typeof ARM_IDS)[number];

/**
 * `call` is `call('get', key)`: a read that the hot path does not take. `mixed` is four GETs, then a SET. `hget` reads
 * one of 8 fields, `hgetall` all of them, `lrange` a list of 100 elements.
 */
export type Operation = 'get' | 'set' | 'call' | 'mixed' | 'hget' | 'hgetall' | 'lrange';

export interface Dataset {
  readonly keys: number;
  readonly valueBytes: number;
}

export type Workload =
  | { readonly kind: 'burst'; readonly operation: Operation; readonly size: number; readonly data: Dataset }
  | { readonly kind: 'loops'; readonly loops: number; readonly data: Dataset }
  /** GETs that fall due by the clock, whatever became of the ones before: so many a second, in steps of 1 ms. */
  | { readonly kind: 'rate'; readonly perSecond: number; readonly data: Dataset }
  | { readonly kind: 'memory'; readonly commands: number; readonly data: Dataset };

/** In microseconds. */
export interface Latency {
  readonly p50: number;
  readonly p95?: number;
  readonly p99: number;
  readonly p999?: number;
}

/** What the clients are opened with beside their arm's own options. */
export interface ClientOptions {
  /** The authority that signed the server's certificate, in PEM; makes it TLS. */
  readonly ca?: string;
  /** Of the coalesced arms. */
  readonly coalesce?: Readonly<Record<string, number | boolean | string>>;
}

/** What a task found out, by name. */
export type Figures = Readonly<Record<string, number | readonly number[]>>;

/** One timed round of one arm. */
export interface Sample {
  readonly commands: number;
  readonly seconds: number;
  /** Commands or requests. */
  readonly perSecond?: number;
  /** The client process's CPU, microseconds per command. */
  readonly cpuUs?: number;
  /** The server's CPU, microseconds per command. */
  readonly serverCpuUs?: number;
  readonly latencyUs?: Latency;
  /** Heap and external memory of the client per command in flight. */
  readonly bytes?: number;
}

/** What is measured once per case and arm, outside of the timed rounds, because measuring it costs. */
export interface Probe {
  readonly writesPerCommand?: number;
  readonly latencyUs?: Latency;
}

/** CPU that an arm spent while it should have been idle. */
export interface Idle {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

export type Request =
  | {
      readonly type: 'open';
      readonly arm: ArmId;
      readonly url: string;
      readonly prefix: string;
      readonly options: ClientOptions;
    }
  /** Checks every value, then runs the workload untimed. */
  | { readonly type: 'prepare'; readonly workload: Workload; readonly seconds: number; readonly verify: boolean }
  | { readonly type: 'measure'; readonly workload: Workload; readonly seconds: number }
  | { readonly type: 'probe'; readonly workload: Workload; readonly seconds: number }
  /** Runs one of `tasks/`. */
  | { readonly type: 'task'; readonly name: string; readonly options: Readonly<Record<string, unknown>> }
  | { readonly type: 'close' };

export type Answer =
  | { readonly type: 'opened'; readonly packagePath?: string }
  | { readonly type: 'prepared'; readonly idle: Idle }
  | { readonly type: 'measured'; readonly sample: Sample }
  | { readonly type: 'probed'; readonly probe: Probe }
  | { readonly type: 'done'; readonly figures: Figures }
  | { readonly type: 'closed' }
  | { readonly type: 'failed'; readonly message: string };

const FIELDS = 8;
const ELEMENTS = 100;
/** The field that `hget` reads. */
export const FIELD = 'f0';

/** Operations that share their keys; writes have keys of their own, so that they do not disturb what reads expect. */
export type Group = 'read' | 'write' | 'hash' | 'list';

export function groupOf(operation: Operation): Group {
  switch (operation) {
    case 'set':
      return 'write';
    case 'hget':
    case 'hgetall':
      return 'hash';
    case 'lrange':
      return 'list';
    default:
      return 'read';
  }
}

export function keysOf(prefix: string, data: Dataset, operation: Operation): string[] {
  const group = groupOf(operation);
  return Array.from({ length: data.keys }, (_, index) => `${prefix}${group}:${data.valueBytes}:${index}`);
}

/** Values differ from key to key, so that a reply given to the wrong caller is seen. */
export function valuesOf(data: Dataset): string[] {
  return Array.from({ length: data.keys }, (_, index) => `${index}:`.padEnd(data.valueBytes, 'coalesce'));
}

export function hashOf(value: string): Record<string, string> {
  return Object.fromEntries(Array.from({ length: FIELDS }, (_, field) => [`f${field}`, value]));
}

export function listOf(value: string): string[] {
  return Array.from({ length: ELEMENTS }, (_, element) => `${element}:${value}`);
}

/** The list that a memory round blocks on, so that what is sent after it stays unanswered. */
export function gateOf(prefix: string): string {
  return `${prefix}gate`;
}
