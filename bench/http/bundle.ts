import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The three programs that run in processes of their own, as plain JavaScript. */
export interface Bundle {
  service: string;
  preload: string;
  load: string;
  remove(): Promise<void>;
}

/**
 * Bundles them with every package left outside, so that plain `node` runs the service as it would in production: under
 * tsx `ioredis-coalesce` would resolve to the sources (tsconfig's `paths`), and its helpers would be in the measured
 * code. The folder lies in `node_modules`, where packages are found.
 */
export async function bundlePrograms(): Promise<Bundle> {
  if (!existsSync(join(ROOT, 'dist/index.js'))) {
    throw new Error('dist/index.js is missing: run "npm run build" first');
  }
  const cache = join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'ioredis-coalesce-demo-'));
  await build({
    entryPoints: {
      service: join(ROOT, 'examples/fastify-app/src/main.ts'),
      preload: join(ROOT, 'bench/http/preload.ts'),
      load: join(ROOT, 'bench/http/load.ts'),
    },
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    tsconfigRaw: {},
  });
  return {
    service: join(folder, 'service.mjs'),
    preload: join(folder, 'preload.mjs'),
    load: join(folder, 'load.mjs'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
