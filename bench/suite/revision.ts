import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Another revision of this repository, built beside it, with this one's packages. */
export class Revision {
  readonly name: string;
  readonly folder: string;

  static async build(name: string): Promise<Revision> {
    const commit = await git('rev-parse', '--verify', '--short', `${name}^{commit}`).catch(() => {
      throw new Error(`--compare should name a revision of this repository, got "${name}"`);
    });
    const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-revision-'));
    const revision = new Revision(commit.trim(), folder);
    try {
      await git('worktree', 'add', '--detach', folder, commit.trim());
      await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
      await run('npm', ['run', '--silent', 'build'], { cwd: folder });
      return revision;
    } catch (error) {
      await revision.remove();
      const said = (error as { stderr?: string }).stderr?.trim();
      throw new Error(`revision ${name} could not be built: ${said || (error as Error).message}`);
    }
  }

  private constructor(name: string, folder: string) {
    this.name = name;
    this.folder = folder;
  }

  async remove(): Promise<void> {
    await git('worktree', 'remove', '--force', this.folder).catch(() => {});
    await rm(this.folder, { recursive: true, force: true });
    await git('worktree', 'prune').catch(() => {});
  }
}

export async function git(...args: string[]): Promise<string> {
  return (await run('git', args, { cwd: ROOT })).stdout;
}
