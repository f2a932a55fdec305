/**
 * What an error reply says about the next command of its kind on the same connection:
 *
 * - `passing`: the server answers nothing of the kind now, and will again;
 * - `moved`: this server does not have the data, or no longer has its role;
 * - `forbidden`: this user may not;
 * - `other`: it is about this command, its arguments or its key. To repeat it is useless.
 */
export type ErrorMeaning = 'passing' | 'moved' | 'forbidden' | 'other';

const MEANINGS: readonly (readonly [ErrorMeaning, RegExp])[] = [
  ['passing', /^(?:BUSY|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/],
  ['moved', /^(?:MOVED|ASK|REDIRECT|READONLY)\b/],
  ['forbidden', /^(?:NOPERM|NOAUTH)\b/],
];

/** Characters of an error reply that are enough to tell. */
export const MEANING_LENGTH = 12;

/** @param message - an error reply without its minus, or its first `MEANING_LENGTH` characters. */
export function meaningOfError(message: string): ErrorMeaning {
  return MEANINGS.find(([, pattern]) => pattern.test(message))?.[0] ?? 'other';
}
