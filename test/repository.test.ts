import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { obstacles, type Situation, steps } from '../tools/release-steps.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const WORKFLOWS = readdirSync(`${ROOT}.github/workflows`);

const read = (file: string) => readFileSync(`${ROOT}${file}`, 'utf8');
const manifest = JSON.parse(read('package.json')) as { version: string; scripts: Record<string, string> };

describe.each(WORKFLOWS)('the workflow %s', (file) => {
  it('pins each action by hash, with its version beside it', () => {
    const lines = read(`.github/workflows/${file}`).match(/uses:.*/g) ?? [];
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/^uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('runs scripts that exist', () => {
    const scripts = [...read(`.github/workflows/${file}`).matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name);
    for (const script of scripts) expect(Object.keys(manifest.scripts)).toContain(script);
  });
});

it('comments keep to 120 columns', () => {
  const folders = ['src', 'cli', 'test', 'bench', 'tools', 'examples'];
  const files = folders.flatMap((folder) =>
    readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  );
  const sources = files.filter((file) => /\.[cm]?[jt]s$/.test(file) && !/node_modules|\/dist\//.test(file));
  expect(sources.length).toBeGreaterThan(300);
  const long = sources.flatMap((file) =>
    read(file)
      .split('\n')
      .map((line, index) => ({ line, at: `${file}:${index + 1}` }))
      .filter(({ line }) => line.length > 120 && /^\s*(?:\/\/|\/?\*)/.test(line)),
  );
  expect(long.map(({ at }) => at)).toEqual([]);
});

it('a command passes no more files and functions than before', { timeout: 60_000 }, () => {
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', 'way'], { cwd: ROOT, encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(stdout.match(/ passes \d+ files and \d+ functions of /g)).toHaveLength(5);
  expect(status).toBe(0);
});

describe('SECURITY.md', () => {
  it('names tests that exist', () => {
    const named = [...read('SECURITY.md').matchAll(/`(test\/[^`]+)`/g)].map(([, path = '']) => path);
    expect(named.length).toBeGreaterThan(5);
    const files = readdirSync(`${ROOT}test`, { recursive: true, encoding: 'utf8' }).map((path) => `test/${path}`);
    for (const path of named) expect(files).toContain(path);
  });

  it('names the runtime dependencies', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    for (const name of Object.keys(dependencies)) expect(read('SECURITY.md')).toContain(`\`${name}\``);
  });
});

describe('a release', () => {
  const ready: Situation = {
    manifest: { version: '1.2.3', repository: {}, bugs: {}, homepage: '' },
    changelog: '# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n',
    tags: ['v1.2.3'],
    changed: [],
  };

  it('is possible when the tag, the changelog and the addresses exist', () => {
    expect(obstacles(ready)).toEqual([]);
  });

  it.each<[why: string, change: Partial<Situation>, says: RegExp]>([
    [
      'the addresses are missing',
      { manifest: { version: '1.2.3', bugs: {} } },
      /must have repository, homepage: see "The/,
    ],
    [
      'the changelog has no such version',
      { changelog: '## [1.2.30] - 2026-01-31' },
      /heading "## \[1\.2\.3\] - <date>"/,
    ],
    ['the commit has another tag', { tags: ['v1.2.2'] }, /must have the tag v1\.2\.3, got v1\.2\.2/],
    ['the commit has no tag', { tags: [] }, /must have the tag v1\.2\.3, got no tag/],
    ['files were changed', { changed: ['src/index.ts'] }, /must be clean, got changes in src\/index\.ts/],
  ])('is refused when %s', (_why, change, says) => {
    expect(obstacles({ ...ready, ...change })).toEqual([expect.stringMatching(says)]);
  });

  it('checks everything before it publishes, and a dry run publishes nothing', () => {
    const names = steps({ dryRun: false }).map(({ name }) => name);
    expect(names).toEqual(['lint', 'types', 'build', 'tests', 'tests of the package', 'package', 'publish']);
    expect(steps({ dryRun: false }).at(-1)?.command).toEqual(['npm', 'publish', '--provenance', '--access', 'public']);
    expect(steps({ dryRun: true }).at(-1)?.command).toContain('--dry-run');
    for (const { command } of steps({ dryRun: true })) {
      if (command[1] === 'run') expect(Object.keys(manifest.scripts)).toContain(command[2]);
    }
  });
});
