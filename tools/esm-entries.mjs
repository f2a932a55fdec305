// Completes the CommonJS that tsup wrote to dist/. The ES modules written here, which Node loads for an `import`, re-export
// it, so that a program which loads the package both ways has one copy of it. Bundlers read those in dist/esm instead
// (the condition "module" in package.json).
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const dist = new URL('../dist/', import.meta.url);
const read = (file) => readFileSync(new URL(file, dist), 'utf8');
const write = (file, text) => writeFileSync(new URL(file, dist), text);

/** Says what to do where a peer is missing, in place of Node's own words. */
const guard = (peer, advice) => `try {
  require('${peer}');
} catch (error) {
  if (error?.code === 'MODULE_NOT_FOUND' && /^Cannot find (module|package) '${peer}'/.test(error.message)) {
    throw Object.assign(new Error('ioredis-coalesce: ${advice}', { cause: error }), { code: error.code });
  }
  throw error;
}`;
const IOREDIS_GUARD = guard(
  'ioredis',
  'the drop-in classes need the package "ioredis" (version 5 or 6), which is not installed: ' +
    'run "npm install ioredis", or import { coalesce } from "ioredis-coalesce/coalesce" to wrap a client you already have',
);
const PROM_CLIENT_GUARD = guard(
  'prom-client',
  'ioredis-coalesce/prometheus needs the package "prom-client", which is not installed: run "npm install prom-client"',
);

// Both ioredis's and @fastify/redis's own module is its default export with the named exports on it:
// const Redis = require('ioredis'), fastify.register(require('@fastify/redis')).
const DEFAULT_IS_MODULE = `
module.exports = Object.defineProperties(exports.default, Object.getOwnPropertyDescriptors(exports));
`;

const ENTRIES = ['coalesce', 'index', 'fastify', 'prometheus'];

for (const entry of ENTRIES) await writeEsModule(entry);
addGuard('index.cjs', withDefaultAsModule('index.cjs'), IOREDIS_GUARD);
addGuard('prometheus.cjs', read('prometheus.cjs'), PROM_CLIENT_GUARD);
patchFastify();
for (const entry of ENTRIES) await check(entry);

async function writeEsModule(entry) {
  const exported = require(`../dist/${entry}.cjs`);
  const names = namesOf(exported);
  const specifiers = [...names];
  const types = [`export * from './${entry}.cjs';`];
  if (exported.default) {
    const alias = names.find((name) => exported[name] === exported.default);
    if (!alias) {
      throw new Error(
        `the default export of src/${entry}.ts must be one of its named exports too: ${names.join(', ')}`,
      );
    }
    specifiers.push(`${alias} as default`);
    types.push(`export { ${alias} as default } from './${entry}.cjs';`);
  }
  write(`${entry}.js`, `export {\n${specifiers.map((name) => `  ${name},\n`).join('')}} from './${entry}.cjs';\n`);
  write(`${entry}.d.ts`, `${types.join('\n')}\n`);
}

function addGuard(file, text, code) {
  const [first, ...rest] = text.split('\n');
  if (!/^["']use strict["'];/.test(first)) {
    throw new Error(`the first line of dist/${file} must begin with "use strict", got: ${first}`);
  }
  const lines = code.split('\n');
  write(file, ['"use strict";', ...lines, first.replace(/^["']use strict["'];/, ''), ...rest].join('\n'));

  const map = JSON.parse(read(`${file}.map`));
  map.mappings = `${';'.repeat(lines.length + 1)}${map.mappings}`;
  write(`${file}.map`, JSON.stringify(map));
}

function patchFastify() {
  // What esbuild makes of import(): a require() that bundlers do not see, and so leave out.
  const hidden = /\w+\.__require\(/g;
  const text = withDefaultAsModule('fastify.cjs');
  if (!hidden.test(text)) throw new Error('dist/fastify.cjs must load its packages by __require(), found none');
  write('fastify.cjs', text.replaceAll(hidden, 'require('));
}

/** Added at the end, where it moves no line of the source map. */
function withDefaultAsModule(file) {
  const lines = read(file).split('\n');
  const sourceMapUrl = lines.findIndex((line) => line.startsWith('//# sourceMappingURL='));
  lines.splice(sourceMapUrl === -1 ? lines.length : sourceMapUrl, 0, ...DEFAULT_IS_MODULE.trimEnd().split('\n'));
  return lines.join('\n');
}

/** Loads what was written as a program would: Node finds a CommonJS module's names by scanning its text. */
async function check(entry) {
  const file = new URL(`${entry}.cjs`, dist);
  delete require.cache[require.resolve(file.pathname)];
  const common = require(file.pathname);
  const esm = await import(new URL(`${entry}.js`, dist).href);
  for (const name of Object.keys(common)) {
    if (esm[name] !== common[name]) {
      throw new Error(`dist/${entry}.js must export the "${name}" of dist/${entry}.cjs, got ${String(esm[name])}`);
    }
  }
}

function namesOf(exported) {
  return Object.keys(exported).filter((name) => name !== 'default');
}
