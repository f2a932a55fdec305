import { Child } from '../suite/child.js';
import type { Latency } from '../variants/protocol.js';

export interface LoadOrder {
  readonly origin: string;
  /** In turn. */
  readonly requests: readonly { readonly path: string; readonly headers?: Readonly<Record<string, string>> }[];
  readonly connections: number;
  readonly limit: { readonly seconds: number } | { readonly requests: number };
  /** Requests per second, of all connections; where there is none, as fast as it goes. */
  readonly rate?: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  readonly latencyUs: Latency;
}

/** The process that makes the load, from the parent's side. */
export class Load extends Child {
  constructor(file: string) {
    super('the load process', file, { env: { ...process.env, NODE_OPTIONS: '' } });
  }

  run(order: LoadOrder): Promise<LoadResult> {
    return this.ask(order);
  }
}
