/**
 * The meaning of an error reply for similar commands on the same connection:
 *
 * - `passing`: the server refuses them temporarily;
 * - `moved`: this server does not have the data, or has lost its role;
 * - `forbidden`: the user has no permission;
 * - `other`: the error is about this command, its arguments or its key, so repeating it is useless.
 */
export type ErrorMeaning = 'passing' | 'moved' | 'forbidden' | 'other';

const MEANINGS: readonly (readonly [ErrorMeaning, RegExp])[] = [
  ['passing', /^(?:BUSY|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b/],
  ['moved', /^(?:MOVED|ASK|REDIRECT|READONLY)\b/],
  ['forbidden', /^(?:NOPERM|NOAUTH)\b/],
];

/** The number of characters of an error reply that determine its meaning. */
export const MEANING_LENGTH = 12;

/** @param message - an error reply without its minus, or its first `MEANING_LENGTH` characters. */
export function meaningOfError(message: string): ErrorMeaning {
  return MEANINGS.find(([, pattern]) => pattern.test(message))?.[0] ?? 'other';
}
