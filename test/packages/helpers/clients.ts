import type { RedisOptions } from 'ioredis';
import { type Coalesced, Redis } from 'ioredis-coalesce';
import { expect } from 'vitest';
import { type Client, endWithTest, ioredis5, ioredis6 } from '../../helpers/hosts.js';
import { redisUrl } from '../../helpers/redis.js';

/** A way to come by the client that a package is handed. */
export interface ClientKind {
  readonly name: string;
  /** One write per turn: commands issued together are sent in fewer batches than there are commands. */
  readonly gathers: boolean;
  /** A client that is disconnected when the running test ends. */
  create(options?: RedisOptions): Client;
}

export const PLAIN: ClientKind = {
  name: 'a plain client',
  gathers: false,
  create: (options) => ioredis6.create(redisUrl(), options),
};

export const COALESCED: ClientKind = {
  name: 'coalesce(client)',
  gathers: true,
  create: (options) => ioredis6.createCoalesced(redisUrl(), options, { schedule: 'immediate' }),
};

const DROP_IN: ClientKind = {
  name: 'the drop-in class',
  gathers: false,
  create: (options = {}) => endWithTest(new Redis(redisUrl(), options)),
};

export const COALESCED_5: ClientKind = {
  name: 'coalesce(client) of ioredis 5',
  gathers: true,
  create: (options) => ioredis5.createCoalesced(redisUrl(), options, { schedule: 'immediate' }),
};

/** What a package does must be the same with each of them, so every scenario runs with each, under one expectation. */
export const CLIENT_KINDS: readonly ClientKind[] = [PLAIN, COALESCED, DROP_IN, COALESCED_5];

/**
 * Holds that the scenario has not passed beside the subject: commands left in fewer batches than there were, where the
 * client gathers, and, for a package whose commands are of the fast path's list, some of them took it. Of a plain
 * client it holds that it is one.
 */
export function expectTookPart(kind: ClientKind, client: Client, expected: { batched: boolean; fast: boolean }): void {
  if (kind === PLAIN) {
    expect(client).not.toHaveProperty('coalescer');
    return;
  }
  const { commands, batches, fastCommands } = statsOf(client);
  expect(commands, 'commands sent by the coalesced client').toBeGreaterThan(0);
  if (expected.batched && kind.gathers) expect(batches, `batches, of ${commands} commands`).toBeLessThan(commands);
  if (expected.fast) expect(fastCommands, `fast commands, of ${commands}`).toBeGreaterThan(0);
}

function statsOf(client: Client): ReturnType<Coalesced['coalescer']['stats']> {
  return (client as Client & Coalesced).coalescer.stats();
}

/** The clients that a package makes of this one by `duplicate()`, as they come. */
export function recordDuplicates(client: Client): readonly Client[] {
  const duplicates: Client[] = [];
  const { duplicate } = client;
  client.duplicate = (...args) => {
    const copy = duplicate.apply(client, args);
    duplicates.push(copy);
    return copy;
  };
  return duplicates;
}
