'use strict';
// `node --require` this with MUTANT set: changes the text of a host's files as they are loaded (run.ts, mutants.ts).
const Module = require('node:module');
const { MUTANT_FILES, mutate } = require('./mutate.cjs');

const { edits, folder } = JSON.parse(process.env.MUTANT ?? '{"edits":[],"folder":""}');
const compile = Module.prototype._compile;

/** What `mutate` has changed, for the program to check that nothing was missed. */
globalThis[MUTANT_FILES] = new Set();

Module.prototype._compile = function (text, path, ...rest) {
  const changed = mutate(text, path.replaceAll('\\', '/'), folder, edits);
  if (changed !== text) globalThis[MUTANT_FILES].add(path);
  return compile.call(this, changed, path, ...rest);
};
