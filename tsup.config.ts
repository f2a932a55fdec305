import { defineConfig } from 'tsup';

const modules = {
  index: 'src/index.ts',
  coalesce: 'src/coalesce.ts',
  fastify: 'src/fastify.ts',
  prometheus: 'src/prometheus.ts',
};

export default defineConfig({
  entry: { ...modules, cli: 'src/cli.ts' },
  format: ['cjs'],
  target: 'node20',
  platform: 'node',
  dts: { entry: modules },
  clean: true,
  sourcemap: true,
  splitting: true,
  treeshake: true,
  // import.meta.url, which createRequire() is given.
  shims: true,
  // Small, and for one entry each: not worth a dependency of everybody's.
  noExternal: ['fastify-plugin', 'cli-progress', 'cli-table3'],
  // Colours of cli-table3, which does without.
  external: ['@colors/colors'],
  outDir: 'dist',
});
