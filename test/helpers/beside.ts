import type { RedisOptions } from 'ioredis';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { expect } from 'vitest';
import { type Client, type Host, ready } from './hosts.js';

export type Kind = 'plain' | 'coalesced';
export const KINDS = ['plain', 'coalesced'] as const;

/** A plain client or a coalesced one, which is disconnected when the running test ends. */
export const createAs = (
  kind: Kind,
  host: Host,
  url: string,
  options: RedisOptions = {},
  coalesceOptions: CoalesceOptions = {},
): Client => (kind === 'plain' ? host.create(url, options) : host.createCoalesced(url, options, coalesceOptions));

/** The same, ready: the fast path of a coalesced one is, too. */
export const connectAs = (...asked: Parameters<typeof createAs>): Promise<Client> => ready(createAs(...asked));

/**
 * Plays a scene with plain clients, then with coalesced ones, and expects the same of both; returns what plain ones
 * gave.
 */
export async function expectAsPlain<T>(play: (kind: Kind) => Promise<T>): Promise<T> {
  const plain = await play('plain');
  expect(await play('coalesced')).toEqual(plain);
  return plain;
}
