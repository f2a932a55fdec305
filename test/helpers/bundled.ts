import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A program of the tests for processes of their own, in one file: `tsx` takes longer to load it than it runs. */
export async function bundled(program: string): Promise<string> {
  // Packages are found from there. One test file runs a program.
  const outfile = join(ROOT, 'node_modules/.programs', `${basename(program, '.ts')}.mjs`);
  await build({
    entryPoints: [program],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
  });
  return outfile;
}
