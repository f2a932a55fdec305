import { isBuiltin } from 'node:module';
import { defineConfig, type Options } from 'tsup';

type Plugin = NonNullable<Options['esbuildPlugins']>[number];

const modules = {
  index: 'src/index.ts',
  coalesce: 'src/coalesce.ts',
  cork: 'src/cork/cork.ts',
  fastify: 'src/fastify.ts',
  prometheus: 'src/prometheus.ts',
};

/** For `node --import` and `--require`, which only Node has: the last two are loaded when the first client is made. */
const forFlags = { register: 'src/register.ts', attach: 'src/attach/attach.ts', advise: 'src/advise/layer.ts' };

// No source maps: the output is as readable as the sources, and names the file of each part.
const common: Options = { target: 'node20', platform: 'node', treeshake: true };

/** CommonJS, which Node loads by `require()` and by `import` alike; `tools/entries.mjs` writes the entries to it. */
const forNode: Options = {
  ...common,
  entry: { ...modules, ...forFlags },
  format: ['cjs'],
  splitting: true,
  dts: { entry: modules },
  outDir: 'dist/cjs',
  clean: ['!**/*.d.cts'],
  esbuildOptions: (options) => {
    options.define = { ...options.define, 'import.meta.url': '__filename' };
    // In the frames of a profile.
    options.chunkNames = 'ioredis-coalesce-[hash]';
  },
};

/** Makes `require('tty')` and its like an import, which esbuild leaves as a call that no ES module can do. */
const importBuiltins: Plugin = {
  name: 'import-builtins',
  setup: (build) => {
    const namespace = 'builtin';
    build.onResolve({ filter: /^(node:)?[a-z_]+$/ }, ({ kind, path }) =>
      kind === 'require-call' && isBuiltin(path) ? { path, namespace } : undefined,
    );
    build.onResolve({ filter: /./, namespace }, ({ path }) => ({ path, external: true }));
    build.onLoad({ filter: /./, namespace }, ({ path }) => ({
      contents: `export * from '${path}'; export { default } from '${path}';`,
    }));
    // Of debug, for more colours, where it is installed.
    build.onResolve({ filter: /^supports-color$/ }, ({ path }) => ({ path, namespace: 'none' }));
    build.onLoad({ filter: /./, namespace: 'none' }, () => ({ contents: 'module.exports = {};' }));
  },
};

/**
 * ES modules throughout, for whatever else reads an `import`: a bundle that is one cannot `require()`, and a test
 * runner replaces what a module imports. So `debug`, which is CommonJS and requires parts of Node, is part of them.
 */
const forOthers: Options = {
  ...common,
  entry: modules,
  format: ['esm'],
  splitting: true,
  outDir: 'dist/bundler',
  clean: true,
  noExternal: ['debug'],
  esbuildPlugins: [importBuiltins],
  esbuildOptions: (options) => {
    options.chunkNames = 'ioredis-coalesce-[hash]';
  },
};

/** The command line, beside the package's own entry. */
const commandLine: Options = {
  ...common,
  entry: { cli: 'cli/main.ts' },
  format: ['cjs'],
  splitting: false,
  outDir: 'dist',
  clean: ['!*/**'],
  esbuildPlugins: [
    {
      name: 'require-the-package',
      setup: (build) => {
        build.onResolve({ filter: /^\.\.\/src\/coalesce\.js$/ }, () => ({ path: './coalesce.cjs', external: true }));
      },
    },
  ],
  esbuildOptions: (options) => {
    options.define = { ...options.define, 'import.meta.url': '__filename' };
  },
};

export default defineConfig([forNode, forOthers, commandLine]);
