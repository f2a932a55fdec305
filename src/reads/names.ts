import { isPlainNumber } from '../resp/encoder.js';

/** Begins the text of several arguments, and of a single one that is empty or begins with this character. */
const JOINED = '\0';

/** The name under which a key's answers are kept; undefined for a key that is not text, such as a Buffer. */
export function keyName(argument: unknown): string | undefined {
  if (typeof argument === 'string') return argument;
  return typeof argument === 'number' && isPlainNumber(argument) ? String(argument) : undefined;
}

/**
 * The arguments after the key, on which a read's answer also depends, as one unambiguous text; undefined if one of them
 * is not text.
 *
 * @param sent - a single argument is not in an array.
 */
export function readArguments(sent: unknown): string | undefined {
  if (!Array.isArray(sent)) return '';
  if (sent.length === 2) {
    const text = keyName(sent[1]);
    if (text === undefined || (text !== '' && !text.startsWith(JOINED))) return text;
  }
  let joined = JOINED;
  for (let index = 1; index < sent.length; index += 1) {
    const text = keyName(sent[index]);
    if (text === undefined) return undefined;
    joined += `${text.length}:${text}`;
  }
  return joined;
}

/** V8: shorter substrings are copies. Longer ones, and joined text, refer to the text they were made from. */
const SHORTEST_REFERRING = 13;
const scratch = Buffer.allocUnsafeSlow(1024);

/** A copy of a text that does not keep the original alive. Lone surrogates are replaced. */
export function copyOfText(text: string): string {
  if (text.length < SHORTEST_REFERRING) return text;
  if (text.length * 3 > scratch.length) return Buffer.from(text).toString();
  return scratch.utf8Slice(0, scratch.write(text));
}
