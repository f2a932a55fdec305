import { Child } from '../suite/child.js';

export interface LoadOrder {
  readonly origin: string;
  /** In turn. */
  readonly requests: readonly { readonly path: string; readonly headers?: Readonly<Record<string, string>> }[];
  readonly connections: number;
  readonly limit: { readonly seconds: number } | { readonly requests: number };
}

export interface ArrivalsOrder {
  readonly port: number;
  readonly connections: number;
  /** In turn. @default `/` */
  readonly paths?: readonly string[];
  readonly seconds: number;
  /** Mean requests per second, of all connections; where there is none, as fast as it goes. */
  readonly rate?: number | undefined;
}

/** Latencies in microseconds. */
export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  /** CPU of the load per request, and how late it sent them, where they were due at a time. */
  readonly loadCpu?: number;
  readonly late?: number;
}

/** The process that makes the load, from the parent's side. */
export class Load extends Child {
  constructor(file: string) {
    super('the load process', file, { env: { ...process.env, NODE_OPTIONS: '' } });
  }

  run(order: LoadOrder | ArrivalsOrder): Promise<LoadResult> {
    return this.ask(order);
  }
}
