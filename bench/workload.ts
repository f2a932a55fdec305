/** What an arm is asked to do, and what it answers: shared by the parent and the arm processes. */

export const ARM_IDS = [
  'plain',
  'auto',
  'node-redis',
  'node-redis-no-timeout',
  'cork',
  'coalesced',
  'coalesced-timeout',
  'reference',
] as const;
export type ArmId = (typeof ARM_IDS)[number];

/** `call` is `call('get', key)`: a read that the hot path does not take. */
export type Operation = 'get' | 'set' | 'call';

export interface Dataset {
  readonly keys: number;
  readonly valueBytes: number;
}

export type Workload =
  | { readonly kind: 'burst'; readonly operation: Operation; readonly size: number; readonly data: Dataset }
  | { readonly kind: 'loops'; readonly loops: number; readonly data: Dataset }
  | { readonly kind: 'memory'; readonly commands: number; readonly data: Dataset };

/** In microseconds. */
export interface Latency {
  readonly p50: number;
  readonly p95?: number;
  readonly p99: number;
}

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
  | { readonly type: 'open'; readonly arm: ArmId; readonly url: string; readonly prefix: string }
  /** Checks every value, then runs the workload untimed. */
  | { readonly type: 'prepare'; readonly workload: Workload; readonly seconds: number; readonly verify: boolean }
  | { readonly type: 'measure'; readonly workload: Workload; readonly seconds: number }
  | { readonly type: 'probe'; readonly workload: Workload; readonly seconds: number }
  | { readonly type: 'close' };

export type Answer =
  | { readonly type: 'opened'; readonly packagePath?: string }
  | { readonly type: 'prepared'; readonly idle: Idle }
  | { readonly type: 'measured'; readonly sample: Sample }
  | { readonly type: 'probed'; readonly probe: Probe }
  | { readonly type: 'closed' }
  | { readonly type: 'failed'; readonly message: string };

/** The keys of a data set; writes have keys of their own, so that they do not disturb what reads expect. */
export function keysOf(prefix: string, data: Dataset, operation: Operation): string[] {
  const group = operation === 'set' ? 'write' : 'read';
  return Array.from({ length: data.keys }, (_, index) => `${prefix}${group}:${data.valueBytes}:${index}`);
}

/** Values differ from key to key, so that a reply given to the wrong caller is seen. */
export function valuesOf(data: Dataset): string[] {
  return Array.from({ length: data.keys }, (_, index) => `${index}:`.padEnd(data.valueBytes, 'coalesce'));
}

/** The list that a memory round blocks on, so that what is sent after it stays unanswered. */
export function gateOf(prefix: string): string {
  return `${prefix}gate`;
}
