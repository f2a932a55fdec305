import { isBuiltin } from 'node:module';
import { defineConfig, type Options } from 'tsup';

const modules = {
  index: 'src/index.ts',
  coalesce: 'src/coalesce.ts',
  fastify: 'src/fastify.ts',
  prometheus: 'src/prometheus.ts',
};

const common: Options = {
  target: 'node20',
  platform: 'node',
  sourcemap: true,
  splitting: true,
  treeshake: true,
  // Small, and for the command line alone: not worth a dependency of everybody's.
  noExternal: ['cli-progress', 'cli-table3'],
  // Colours of cli-table3, which does without.
  external: ['@colors/colors'],
};

/** What Node loads, by `require()` and by `import`: one copy, whichever way a program goes. */
const forNode: Options = {
  ...common,
  entry: { ...modules, cli: 'src/cli.ts' },
  format: ['cjs'],
  dts: { entry: modules },
  outDir: 'dist',
  clean: ['!esm/**', '!**/*.d.{ts,cts}'],
  esbuildOptions: (options) => {
    // Jest cannot do import().
    options.supported = { ...options.supported, 'dynamic-import': false };
    options.define = { ...options.define, 'import.meta.url': '__filename' };
  },
};

/**
 * Makes `require('tty')` and its like an import, which esbuild leaves as a call that no ES module can do.
 */
const importBuiltins: NonNullable<Options['esbuildPlugins']>[number] = {
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
 * What bundlers read for an `import`: ES modules throughout, since a bundle that is one cannot `require()`. So `debug`,
 * which is CommonJS and requires parts of Node, is part of them.
 */
const forBundlers: Options = {
  ...common,
  entry: modules,
  format: ['esm'],
  outDir: 'dist/esm',
  clean: true,
  noExternal: ['debug'],
  esbuildPlugins: [importBuiltins],
};

export default defineConfig([forNode, forBundlers]);
