'use strict';

/** The set of changed files, as a property of `globalThis`. */
exports.MUTANT_FILES = Symbol.for('ioredis-coalesce mutant files');

/**
 * The text of a file, with the edits that are meant for it.
 *
 * @param {string} text
 * @param {string} path - of the file, with slashes.
 * @param {string} folder - of the host's package in `node_modules`.
 * @param {readonly { file?: string, search: string, replace: string, everywhere?: boolean }[]} edits - without a file:
 * for
 *   all of the host's. A file that begins with a slash is in another package. Each text is there exactly once, or with
 *   `everywhere` as often as it likes.
 * @returns {string}
 */
exports.mutate = (text, path, folder, edits) => {
  const [, found] = path.split(`/node_modules/${folder}/built/`);
  let result = text;
  for (const { file, search, replace, everywhere } of edits) {
    const isMeant =
      file === undefined ? found !== undefined : file === found || (file[0] === '/' && path.endsWith(file));
    if (!isMeant) continue;
    const parts = result.split(search);
    if (!everywhere && parts.length !== 2) throw new Error(`${parts.length - 1} times in ${path}: ${search}`);
    result = parts.join(replace);
  }
  return result;
};
