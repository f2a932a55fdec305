// Writes the entries to dist/cjs, which tsup built. Node loads these for a require() and for an `import` alike, so a
// program that does both has one copy of the package; whatever copies or compiles what Node loads finds the same files,
// by `import`s and calls of require() that can be read. Bundlers, which set the condition "module", and Vitest, which
// sets "development" alone, take the ES modules in dist/bundler: see "exports" in package.json. Node itself always sets
// "node-addons", so `node --conditions=development` loads what Node loads.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const dist = new URL('../dist/', import.meta.url);
const write = (file, text) => writeFileSync(new URL(file, dist), `${text.trim()}\n`);

/** What each entry needs beside the package: the versions that are tested, and what else to do where there is none. */
const ioredis = { versions: [5, 6] };
const ENTRIES = {
  coalesce: {},
  cork: {},
  index: {
    ioredis: {
      ...ioredis,
      entry: 'the drop-in classes need',
      or: ', or import { coalesce } from "ioredis-coalesce/coalesce" to wrap a client you already have',
    },
  },
  prometheus: { 'prom-client': { versions: [15] } },
  fastify: { '@fastify/redis': { versions: [9] }, ioredis },
};

for (const [entry, peers] of Object.entries(ENTRIES)) {
  const built = require(`../dist/cjs/${entry}.cjs`);
  const names = Object.keys(built).filter((name) => name !== 'default');
  const sameAsDefault = names.find((name) => built[name] === built.default);
  if (built.default && !sameAsDefault) {
    throw new Error(`the default export of src/${entry}.ts must be one of its named exports too: ${names.join(', ')}`);
  }
  const isGuarded = Object.keys(peers).length > 0;
  if (isGuarded) write(`load-${entry}.cjs`, guarded(entry, peers));
  const load = isGuarded ? { file: `load-${entry}`, call: '()' } : { file: `cjs/${entry}`, call: '' };
  write(`${entry}.cjs`, commonJs(load, built.default !== undefined));
  write(`${entry}.js`, esModule(load, names, sameAsDefault));
  write(`${entry}.d.ts`, types(entry, sameAsDefault));
}

write(
  'register.cjs',
  `
'use strict';
require('./cjs/register.cjs').register({
  attach: () => require('./cjs/attach.cjs'),
  advise: () => require('./cjs/advise.cjs'),
});`,
);
write('register.js', "import './register.cjs';");
for (const file of ['register.d.ts', 'cjs/register.d.cts']) write(file, 'export {};');
// Without "type": these files are for compilers alone, so Nitro compiles them, rather than to copy them and let Node
// load others.
write('bundler/package.json', JSON.stringify({ sideEffects: false }));

function commonJs({ file, call }, hasDefault) {
  // Both ioredis's and @fastify/redis's own module is its default export with the named exports on it:
  // const Redis = require('ioredis'), fastify.register(require('@fastify/redis')). Tools that read files look for the
  // last line. A copy: what comes from a chunk that entries share is a getter in `built`, and could not be assigned.
  const exports = hasDefault
    ? 'module.exports = Object.defineProperties(built.default, Object.getOwnPropertyDescriptors({ ...built }));\nmodule.exports.default = built.default;'
    : 'module.exports = built;';
  return `'use strict';\nconst built = require('./${file}.cjs')${call};\n${exports}`;
}

/**
 * A function that loads the entry, or throws what is wrong with a peer: Node 20 reports what an imported CommonJS
 * module throws twice, to import() and as an unhandled rejection. Where the manifest of a peer cannot be read, as where
 * a test puts another module in its place, the peer is taken as it is.
 */
function guarded(entry, peers) {
  const needs = Object.entries(peers).map(([name, { versions, or = '', ...peer }]) => {
    const needed = `${peer.entry ?? `ioredis-coalesce/${entry} needs`} the package "${name}" (version ${versions.join(' or ')})`;
    const missing = `${needed}, which is not installed: run "npm install ${name}"${or}`;
    return [
      name,
      {
        from: versions[0],
        missing,
        other: [`${needed}, but version `, ` is installed: run "npm install ${name}@${versions.at(-1)}"`],
      },
    ];
  });
  const versions = Object.keys(peers).map(
    (name) => `  try { found['${name}'] = require('${name}/package.json').version; } catch {}`,
  );
  return `
'use strict';
const PEERS = ${JSON.stringify(Object.fromEntries(needs), null, 2)};

module.exports = () => {
  const found = {};
${versions.join('\n')}
  for (const [name, { from, other }] of Object.entries(PEERS)) {
    if (parseInt(found[name], 10) < from) throw wrong(other.join(found[name]));
  }
  try {
    return require('./cjs/${entry}.cjs');
  } catch (error) {
    const [, name] = /^Cannot find (?:module|package) '([^']+)'/.exec(error?.message) ?? [];
    if (error?.code !== 'MODULE_NOT_FOUND' || PEERS[name] === undefined) throw error;
    throw wrong(PEERS[name].missing, { cause: error });
  }
};

function wrong(message, options) {
  return Object.assign(new Error(\`ioredis-coalesce: \${message}\`, options), { code: 'MODULE_NOT_FOUND' });
}`;
}

function esModule({ file, call }, names, sameAsDefault) {
  return `
import loaded from './${file}.cjs';
export const { ${names.join(', ')} } = loaded${call};
${sameAsDefault ? `export { ${sameAsDefault} as default };` : ''}`;
}

function types(entry, sameAsDefault) {
  const all = `export * from './cjs/${entry}.cjs';`;
  return sameAsDefault ? `${all}\nexport { ${sameAsDefault} as default } from './cjs/${entry}.cjs';` : all;
}
