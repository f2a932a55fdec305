import { execFile } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sleep } from './hosts.js';
import { redisUrl, uniquePrefix } from './redis.js';

const run = promisify(execFile);

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The package as it would be published, and projects that have it installed. */
export interface PackedPackage {
  /** The file that npm would publish. */
  readonly tarball: string;
  /** Its files. */
  readonly files: readonly string[];
  /** A project with the package and `dependencies` in its node_modules; no network. */
  createProject(name: string, dependencies: readonly string[]): Promise<Project>;
  remove(): Promise<void>;
}

export interface Project {
  readonly folder: string;
  write(file: string, text: string): Promise<void>;
  /** Runs a program that prints one line of JSON; its arguments are the URL of a server and a prefix for keys. */
  run(file: string, flagsOfNode?: readonly string[]): Promise<unknown>;
}

export async function packPackage(): Promise<PackedPackage> {
  await build();
  const scratch = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-package-'));
  // prepack would build again.
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', scratch], {
    cwd: ROOT,
  });
  const [tarball] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  return {
    tarball: join(scratch, tarball.filename),
    files: tarball.files.map(({ path }) => path),
    createProject: (name, dependencies) =>
      createProject(join(scratch, name), join(scratch, tarball.filename), dependencies),
    remove: () => rm(scratch, { recursive: true, force: true }),
  };
}

/** Builds what is older than its sources; one test file at a time, the others wait. */
async function build(): Promise<void> {
  const lock = join(ROOT, 'node_modules/.building');
  while (isStale()) {
    try {
      await mkdir(lock);
    } catch {
      // Left behind by a run that was killed.
      if (Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > 180_000) await rmdir(lock);
      await sleep(200);
      continue;
    }
    try {
      if (isStale()) await run('npm', ['run', 'build'], { cwd: ROOT });
    } finally {
      await rmdir(lock);
    }
  }
}

function isStale(): boolean {
  // The last files that a build writes; the second is not of `build:code`.
  const built = ['dist/fastify.d.ts', 'dist/cjs/fastify.d.cts'].map((file) => join(ROOT, file));
  if (!built.every((file) => existsSync(file))) return true;
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((file) => `src/${file}`);
  const newest = Math.max(
    ...[...sources, 'package.json', 'tsup.config.ts', 'tools/entries.mjs'].map(
      (file) => statSync(join(ROOT, file)).mtimeMs,
    ),
  );
  return built.some((file) => statSync(file).mtimeMs < newest);
}

/** Unpacks the tarball as npm would, and links what an install would have fetched. */
async function createProject(folder: string, tarball: string, dependencies: readonly string[]): Promise<Project> {
  const target = join(folder, 'node_modules/ioredis-coalesce');
  await mkdir(target, { recursive: true });
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', target]);
  const own = JSON.parse(await readFile(join(target, 'package.json'), 'utf8')) as { dependencies: object };
  for (const dependency of [...Object.keys(own.dependencies), ...dependencies]) {
    // `ioredis=ioredis5`: under another name than in this repository.
    const [name = '', source = name] = dependency.split('=');
    await linkPackage(folder, name, source);
  }
  const project: Project = {
    folder,
    write: (file, text) => writeFile(join(folder, file), text),
    run: (file, flags) => runProgram(join(folder, file), flags),
  };
  await project.write('package.json', JSON.stringify({ name: 'project', private: true }));
  return project;
}

/** Puts a package of this repository's node_modules into that of a folder. */
export async function linkPackage(folder: string, name: string, source = name): Promise<void> {
  const link = join(folder, 'node_modules', name);
  await mkdir(dirname(link), { recursive: true });
  await symlink(join(ROOT, 'node_modules', source), link, 'dir');
}

export async function runProgram(file: string, flagsOfNode: readonly string[] = []): Promise<unknown> {
  const { stdout } = await run(process.execPath, [...flagsOfNode, file, redisUrl(), uniquePrefix('package')], {
    cwd: dirname(file),
    timeout: 15_000,
  });
  return JSON.parse(stdout);
}
