import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { git, run } from './tool.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Another revision of this repository, built beside it, with this one's packages. */
export async function buildRevision(name: string) {
  const commit = await git('rev-parse', '--verify', '--short', `${name}^{commit}`).catch(() => {
    throw new Error(`--compare should name a revision of this repository, got "${name}"`);
  });
  const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-revision-'));
  const remove = async () => {
    await git('worktree', 'remove', '--force', folder).catch(() => {});
    await rm(folder, { recursive: true, force: true });
    await git('worktree', 'prune').catch(() => {});
  };
  try {
    await git('worktree', 'add', '--detach', folder, commit);
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await run('npm', ['run', '--silent', 'build'], { cwd: folder });
    return { name: commit, folder, remove };
  } catch (error) {
    await remove();
    const said = (error as { stderr?: string }).stderr?.trim();
    throw new Error(`revision ${name} could not be built: ${said || (error as Error).message}`);
  }
}
