/**
 * Clients whose code was rewritten as it was loaded. New Relic 13, and Sentry 11 with ioredis before 5.11, print
 * `Redis.js` anew and put the code of a method into a function within it, around which they publish what happens. Such
 * a method is a layer, as one that a tracer has put over the client's own; all else must mean what it did.
 */
import { COMMENTS, sourceOf } from './digest.js';
import { isKnownMethod } from './probe.js';
import type { AnyFunction } from './types.js';

/** The methods that nothing here calls in the host's place: their callers pass through what was put around them. */
const MAY_BE_WRAPPED = ['sendCommand', 'connect'];

/** A text without what printers choose themselves: no comments, blanks, parentheses, commas, quotes. */
const withoutStyle = (text: string) => text.replaceAll(COMMENTS, '').replaceAll(/[\s(),;'"`\\]/g, '');

/** The text from `start` to the end of the first block in it. */
function throughBlock(text: string, start: number): string {
  let depth = 0;
  for (let end = text.indexOf('{', start); end >= 0 && end < text.length; end += 1) {
    if (text[end] === '{') depth += 1;
    else if (text[end] === '}') depth -= 1;
    if (depth === 0) return text.slice(start, end + 1);
  }
  return '';
}

function methodIn(text: string, name: string): string {
  const start = text.search(new RegExp(`(?<=})${name}(?=[\\w$.]*{)`));
  return start < 0 ? '' : throughBlock(text, start);
}

/** Whether a class is the one in the text of its file, but for how it is printed, and methods of it are wrapped. */
export function isWrapped(loaded: AnyFunction, file: string): boolean {
  let now = withoutStyle(sourceOf(loaded));
  let before = withoutStyle(file);
  let wrapped = 0;
  for (const name of MAY_BE_WRAPPED) {
    const method = methodIn(now, name);
    const own = methodIn(before, name);
    if (own === '' || !method.includes(own.slice(name.length))) return false;
    if (method !== own) wrapped += 1;
    now = now.replace(method, '');
    before = before.replace(own, '');
  }
  return wrapped > 0 && before.includes(now);
}

/** Whether a method has a known one within it, where no file tells what it was. */
export function wrapsKnown(name: string, method: AnyFunction): boolean {
  if (!MAY_BE_WRAPPED.some((each) => name === `client.${each}`)) return false;
  const source = sourceOf(method);
  const start = source.search(/\bfunction\b/);
  return start >= 0 && isKnownMethod(name, method, throughBlock(source, start));
}

/** Who has rewritten a class or method, if its marks tell. */
export function rewriterOf(source: string): string | undefined {
  if (source.includes('tr_ch_apm$nr_')) return 'New Relic';
  return source.includes('tr_ch_apm') && '__SENTRY_ORCHESTRION__' in globalThis ? 'Sentry' : undefined;
}
