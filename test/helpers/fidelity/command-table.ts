import { canonical } from './canonical.js';
import type { Normalise } from './outcomes.js';
import { HASHES, LISTS, SETS, SORTED_SETS } from './table/collections.js';
import type { Entry } from './table/entry.js';
import { OTHERS, SCRIPTS, STREAMS } from './table/streams-and-others.js';
import { KEYS, STRINGS } from './table/strings-and-keys.js';

export type { Call, Entry } from './table/entry.js';

export const ENTRIES: readonly Entry[] = [
  STRINGS,
  KEYS,
  HASHES,
  LISTS,
  SETS,
  SORTED_SETS,
  STREAMS,
  SCRIPTS,
  OTHERS,
].flat();

const sizeOnly: Normalise = (value) =>
  typeof value === 'string' ? value.replace(/\d{4,}/, '~') : typeof value === 'number' && value > 0 ? '~' : value;
const byCanonical = (a: unknown, b: unknown): number =>
  Buffer.compare(Buffer.from(canonical(a)), Buffer.from(canonical(b)));

export const sorted: Normalise = (value) => (Array.isArray(value) ? value.toSorted(byCanonical) : value);

/** For replies that depend on the clock or on the server's hash seed: what of them is compared. */
export const NORMALISE: Readonly<Record<string, Normalise>> = {
  ttl: sizeOnly,
  pttl: sizeOnly,
  keys: sorted,
  scan: (value) => (Array.isArray(value) ? value.map(sorted) : value),
  randomkey: (value) => (Buffer.isBuffer(value) ? 'Buffer' : typeof value),
  xadd: (value) =>
    Buffer.isBuffer(value) && value.length > 10
      ? 'Buffer'
      : typeof value === 'string' && value.length > 10
        ? 'text'
        : value,
};
