/**
 * Functions of the host are recognized by their text in the memory of this process (`known-releases.ts`). Bundlers and
 * APMs print code again, so their own choices do not count: comments, blanks, parentheses, commas, quotes, line ends in
 * strings, empty blocks, and the numbers and underscores of bindings. A minifier leaves no indented lines, and little
 * but property names: such a text is recognized by how often each of them occurs. Its behaviour is proven like any
 * other (`proof.ts`).
 */
import { createHash } from 'node:crypto';
import type { AnyFunction } from './types.js';

export const sourceOf = (method: AnyFunction) => Function.prototype.toString.call(method);

const COMMENTS = /\/\*[\s\S]*?\*\/|(?<=^|[^:'"`])\/\/.*$/gm;
/** Text that printers write differently. */
const PRINTED: readonly (readonly [found: RegExp, alike: string])[] = [
  [COMMENTS, ''],
  [/\bvoid 0\b/g, 'undefined'],
  [/\breturn undefined\b/g, 'return'],
  [/\\[rn]/g, ''],
  [/\b1e3\b/g, '1000'],
  [/\b(\w+): *\1\b/g, '$1'],
  [/['"`]\s*\+\s*['"`]/g, ''],
  [/\{\s*\}/g, ''],
  [/[\s(),;'"`\\]+|\b_(?=[A-Z])|(?<=[A-Za-z_])(?:\d*\$[\da-z]+|\d+)\b/g, ''],
];
const NAMES = /(?<!\.)\??\.#?([A-Za-z_$][\w$]*)|#\w+|\b(?:async|await)\b/g;
/** Names that are not counted: imports in bundles, and names that webpack and rollup put into `Pipeline#exec`. */
const UNRELIABLE = ['.default', '.length', '._groupsBySlot'];
const DIGITS = 5;

function digest(...parts: unknown[]): string {
  return createHash('sha256').update(parts.join(' ')).digest('base64url').slice(0, DIGITS);
}

/** The digest of a text as published. It is looked up first: the others cost a process milliseconds. */
export const exactDigest = (source: string) => digest('exact', source);

/** The digest of a function's text; meaningless for a native or bound function, or a Proxy. */
export function digestOf(method: AnyFunction, source = sourceOf(method)): string {
  return isMinified(source) ? namesDigest(method, source) : textDigest(source);
}

/** Bun recompiles modules, and shows that text. */
const isBun = process.versions.bun !== undefined;

export const isMinified = (source: string) => isBun || !/\n[ \t]|\[native code\]/.test(source);

export function textDigest(source: string): string {
  return digest(
    'text',
    PRINTED.reduce((text, [found, alike]) => text.replaceAll(found, alike), source),
  );
}

export function namesDigest({ length }: AnyFunction, source: string): string {
  const counts: Record<string, number> = {};
  for (const [found] of source.replaceAll(COMMENTS, '').matchAll(NAMES)) {
    const word = found.replace('?', '');
    if (!UNRELIABLE.includes(word)) counts[word] = (counts[word] ?? 0) + 1;
  }
  return digest('names', length, Object.entries(counts).sort().join());
}
