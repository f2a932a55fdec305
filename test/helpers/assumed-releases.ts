/**
 * For `npm run canary` and `npm run known-clients`: what nobody has read yet is tested as if it were known. Loaded
 * before whatever reads the table of known releases; users' clients of such a release get the cork.
 */
import { KNOWN_METHODS, KNOWN_RELEASES } from '../../src/host/known-releases.js';
import type { Digests } from '../../tools/known-clients-digest.js';

/** Set by tools/matrix-run.ts. */
const assumed = JSON.parse(process.env.MATRIX_ASSUMED ?? '[]') as readonly Digests[];
for (const { files, methods } of assumed) {
  (KNOWN_RELEASES as Record<string, readonly string[]>)[files] ??= ['the release under test'];
  for (const method of methods) (KNOWN_METHODS as Set<string>).add(method);
}
