/** Packages that people put on top of ioredis, each at one thing that it does. */

import type { Redis } from 'ioredis';
import type { Measured } from '../variants/protocol.js';
import { bullmqAdd, bullmqWorker } from './bullmq.js';
import { fastifyRateLimit, fastifySession } from './http.js';
import { graphqlSubscriptions, rateLimiterFlexible, redlock, socketIoBroadcasts } from './in-process.js';

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

const PACKAGES = {
  'bullmq add': bullmqAdd,
  'bullmq worker': bullmqWorker,
  'rate-limiter-flexible': rateLimiterFlexible,
  '@fastify/rate-limit': fastifyRateLimit,
  redlock,
  '@socket.io/redis-adapter': socketIoBroadcasts,
  '@fastify/session': fastifySession,
  'graphql-redis-subscriptions': graphqlSubscriptions,
} satisfies Readonly<Record<string, OpenPackage>>;
export type PackageName = keyof typeof PACKAGES;

export function openPackage(name: string, context: PackageContext): Promise<Package> {
  const open = (PACKAGES as Readonly<Record<string, OpenPackage>>)[name];
  if (open === undefined) throw new Error(`no package "${name}"; there are ${Object.keys(PACKAGES).join(', ')}`);
  return open(context);
}
