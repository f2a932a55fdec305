import { defineConfig } from 'tsup';

export default defineConfig({
  entry: { index: 'src/index.ts', coalesce: 'src/coalesce.ts' },
  format: ['cjs'],
  target: 'node20',
  platform: 'node',
  dts: true,
  clean: true,
  sourcemap: true,
  splitting: true,
  treeshake: true,
  outDir: 'dist',
});
