// Writes the entries to dist/cjs, which tsup built. Node loads these for a require() and for an `import` alike, so a
// program that does both has one copy of the package. Whatever else reads an `import` takes the ES modules in dist/esm:
// see "exports" in package.json, where "node-addons" is the condition that Node sets and bundlers and Vitest do not.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const dist = new URL('../dist/', import.meta.url);
const write = (file, text) => writeFileSync(new URL(file, dist), `${text.trim()}\n`);

/** What each entry needs beside the package, and what to do where that is missing, in place of Node's own words. */
const ENTRIES = {
  coalesce: {},
  cork: {},
  register: {},
  index: {
    ioredis:
      'the drop-in classes need the package "ioredis" (version 5 or 6), which is not installed: ' +
      'run "npm install ioredis", or import { coalesce } from "ioredis-coalesce/coalesce" to wrap a client you already have',
  },
  prometheus: {
    'prom-client':
      'ioredis-coalesce/prometheus needs the package "prom-client", which is not installed: ' +
      'run "npm install prom-client"',
  },
  fastify: {
    '@fastify/redis':
      'ioredis-coalesce/fastify needs the package "@fastify/redis" (version 9), which is not installed: ' +
      'run "npm install @fastify/redis"',
    ioredis:
      'ioredis-coalesce/fastify needs the package "ioredis" (version 5 or 6), which is not installed: ' +
      'run "npm install ioredis"',
  },
};

for (const [entry, peers] of Object.entries(ENTRIES)) {
  const built = require(`../dist/cjs/${entry}.cjs`);
  const names = Object.keys(built).filter((name) => name !== 'default');
  const sameAsDefault = names.find((name) => built[name] === built.default);
  if (built.default && !sameAsDefault) {
    throw new Error(`the default export of src/${entry}.ts must be one of its named exports too: ${names.join(', ')}`);
  }
  write(`${entry}.cjs`, commonJs(entry, peers, built.default !== undefined));
  write(`${entry}.js`, esModule(entry, names, sameAsDefault));
  write(`${entry}.d.ts`, types(entry, sameAsDefault));
}

function commonJs(entry, peers, hasDefault) {
  const load = Object.keys(peers).length === 0 ? `const built = require('./cjs/${entry}.cjs');` : guarded(entry, peers);
  // Both ioredis's and @fastify/redis's own module is its default export with the named exports on it:
  // const Redis = require('ioredis'), fastify.register(require('@fastify/redis')). Tools that read files look for the
  // last line. A copy: what comes from a chunk that entries share is a getter in `built`, and could not be assigned.
  const exports = hasDefault
    ? 'module.exports = Object.defineProperties(built.default, Object.getOwnPropertyDescriptors({ ...built }));\nmodule.exports.default = built.default;'
    : 'module.exports = built;';
  return `'use strict';\n${load}\n${exports}`;
}

function guarded(entry, peers) {
  return `
let built;
try {
  built = require('./cjs/${entry}.cjs');
} catch (error) {
  const [, missing] = /^Cannot find (?:module|package) '([^']+)'/.exec(error?.message) ?? [];
  const advice = Object.entries(${JSON.stringify(peers)}).find(([peer]) => peer === missing)?.[1];
  if (error?.code !== 'MODULE_NOT_FOUND' || advice === undefined) throw error;
  throw Object.assign(new Error(\`ioredis-coalesce: \${advice}\`, { cause: error }), { code: error.code });
}`;
}

/**
 * By require(): Node 20 reports what an imported CommonJS module throws twice, to import() and as an unhandled
 * rejection.
 */
function esModule(entry, names, sameAsDefault) {
  return `
import { createRequire } from 'node:module';
const built = createRequire(import.meta.url)('./${entry}.cjs');
export const { ${names.join(', ')} } = built;
${sameAsDefault ? `export { ${sameAsDefault} as default };` : ''}`;
}

function types(entry, sameAsDefault) {
  const all = `export * from './cjs/${entry}.cjs';`;
  return sameAsDefault ? `${all}\nexport { ${sameAsDefault} as default } from './cjs/${entry}.cjs';` : all;
}
