/**
 * `npm run release`: publishes the version of package.json, by the release workflow.
 *
 *     npm run release -- --dry-run    every check, and what would be published
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { obstacles, steps } from './release-steps.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const { values: flags } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } });
const dryRun = flags['dry-run'];

const found = obstacles({
  manifest: JSON.parse(read('package.json')) as Record<string, unknown>,
  changelog: read('CHANGELOG.md'),
  tags: linesOf('tag', '--points-at', 'HEAD'),
  changed: linesOf('status', '--porcelain').map((line) => line.slice(3)),
});
for (const obstacle of found) console.error(`${dryRun ? 'would stop a release' : 'no release'}: ${obstacle}`);
if (found.length > 0 && !dryRun) process.exit(1);

for (const { name, command } of steps({ dryRun })) {
  console.log(`\n== ${name}: ${command.join(' ')}`);
  const [file, ...args] = command;
  const { status } = spawnSync(file, args, { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) {
    console.error(`no release: ${name} failed`);
    process.exit(1);
  }
}

function read(file: string): string {
  return readFileSync(`${ROOT}${file}`, 'utf8');
}

function linesOf(...git: string[]): string[] {
  return execFileSync('git', git, { cwd: ROOT, encoding: 'utf8' }).split('\n').filter(Boolean);
}
