/** What a variant's process is asked to do, and what it answers. */

import type { VariantId } from './clients.js';
import type { ClientOptions, Measured, Sample, Workload } from './protocol.js';

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
  prepare(order: Timed & { readonly verify: boolean }): Promise<object>;
  measure(order: Timed): Promise<Measured>;
  /** Counts writes. */
  probe(order: Timed): Promise<Sample>;
  close(order: object): Promise<object>;
}

export type Request = { [T in keyof Requests]: { type: T; order: Parameters<Requests[T]>[0] } }[keyof Requests];
