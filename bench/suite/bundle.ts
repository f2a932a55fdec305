import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CACHE = join(ROOT, 'node_modules/.cache/');

/** What runs in processes of its own. */
const PROGRAMS = {
  variant: 'bench/variants/main.ts',
  load: 'bench/http/load.ts',
  preload: 'bench/http/preload.ts',
  service: 'examples/fastify-app/src/main.ts',
};

/** The programs as plain JavaScript. */
export interface Bundle {
  readonly files: Readonly<Record<keyof typeof PROGRAMS, string>>;
  /** The binary of Node that runs them. */
  readonly nodePath: string;
  remove(): Promise<void>;
}

/**
 * Bundles the programs with every package left outside. Plain `node` then runs them as it runs a user's service:
 * `ioredis-coalesce` resolves to the built package (tsx would follow tsconfig's `paths` to the sources), and no
 * loader's helpers are in the measured code. In `node_modules/.cache`, packages are found; in another revision's
 * folder, that revision is what `ioredis-coalesce` resolves to.
 */
export async function bundlePrograms(nodePath = process.execPath, parent = CACHE): Promise<Bundle> {
  if (!existsSync(join(ROOT, 'dist/index.js'))) throw new Error('dist/index.js is missing: run "npm run build" first');
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, 'ioredis-coalesce-bench-'));
  await build({
    entryPoints: Object.fromEntries(Object.entries(PROGRAMS).map(([name, file]) => [name, join(ROOT, file)])),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    // What one workload needs is not loaded for another.
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    // Not the project's: its `paths` point to the sources.
    tsconfigRaw: {},
  });
  const names = Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[];
  const files = Object.fromEntries(names.map((name) => [name, join(folder, `${name}.mjs`)])) as Bundle['files'];
  return { files, nodePath, remove: () => rm(folder, { recursive: true, force: true }) };
}
