/** Packages that people put on top of ioredis, each at one thing that it does. */

import { bullmqAdd, bullmqWorker } from './bullmq.js';
import { FLOWS } from './flows.js';
import { fastifyRateLimit, fastifySession } from './http.js';
import { graphqlSubscriptions, rateLimiterFlexible, redlock, socketIoBroadcasts } from './in-process.js';
import type { OpenPackage, Package, PackageContext } from './package.js';

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
export type FlowName = keyof typeof FLOWS;

export function openPackage(name: string, context: PackageContext): Promise<Package> {
  const all: Readonly<Record<string, OpenPackage>> = { ...PACKAGES, ...FLOWS };
  const open = all[name];
  if (open === undefined) throw new Error(`no package "${name}"; there are ${Object.keys(all).join(', ')}`);
  return open(context);
}
