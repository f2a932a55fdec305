import type { Redis } from 'ioredis';
import type { Measured } from '../variants/protocol.js';

export interface PackageContext {
  /** A client of the variant's kind, of this package alone; it is closed after the package. */
  open(): Promise<Redis>;
  readonly prefix: string;
  /** How many callers, jobs, or connections at a time. */
  readonly concurrency: number;
}

/** A package at work. */
export interface Package {
  /** What a run needs, or leaves behind: done between runs, and in the figures of none. */
  refill?(seconds: number): Promise<void>;
  run(seconds: number): Promise<Measured>;
  close?(): Promise<unknown>;
}

export type OpenPackage = (context: PackageContext) => Promise<Package>;
