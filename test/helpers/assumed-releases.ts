/**
 * For `npm run canary` and `npm run known-clients`: what nobody has read yet is tested as if it were known. Loaded
 * before whatever reads the table of known releases; users' clients of such a release get the cork.
 */
import { KNOWN_FUNCTIONS } from '../../src/host/known-releases.js';
import type { Digests } from '../../tools/known-clients-digest.js';

/** Set by tools/matrix-run.ts. */
const assumed = JSON.parse(process.env.MATRIX_ASSUMED ?? '[]') as readonly Digests[];
const known = KNOWN_FUNCTIONS as Record<string, Record<string, string>>;
for (const [place, functions] of assumed.flatMap((digests) => Object.entries(digests))) {
  for (const [name, digests] of Object.entries(functions)) {
    known[place] ??= {};
    const ofPlace = known[place];
    ofPlace[name] = [ofPlace[name], ...digests].join(' ');
  }
}
