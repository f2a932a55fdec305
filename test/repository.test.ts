import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { obstacles, type Situation, steps } from '../tools/release-steps.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const WORKFLOWS = readdirSync(`${ROOT}.github/workflows`);

const read = (file: string) => readFileSync(`${ROOT}${file}`, 'utf8');
const manifest = JSON.parse(read('package.json')) as { version: string; scripts: Record<string, string> };

interface Job {
  readonly 'timeout-minutes': number;
  readonly environment?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly { uses?: string; run?: string }[];
}

interface Workflow {
  readonly on: { readonly schedule?: readonly { readonly cron: string }[] };
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

function workflow(file: string): Workflow {
  return parse(read(`.github/workflows/${file}`)) as Workflow;
}

function commandsOf(file: string): string[] {
  return Object.values(workflow(file).jobs).flatMap((job) => job.steps.flatMap(({ run }) => run ?? []));
}

describe.each(WORKFLOWS)('the workflow %s', (file) => {
  const { jobs, permissions } = workflow(file);

  it('has only the permissions that it states, and a time limit for every job', () => {
    expect(permissions.contents).toBe('read');
    for (const job of Object.values(jobs)) expect(job['timeout-minutes']).toBeLessThanOrEqual(120);
  });

  it('pins each action by hash, with its version beside it', () => {
    const lines = read(`.github/workflows/${file}`).match(/uses:.*/g) ?? [];
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/^uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('runs scripts that exist', () => {
    const scripts = commandsOf(file).flatMap((command) =>
      [...command.matchAll(/npm run (\S+)/g)].map(([, name]) => name),
    );
    for (const script of scripts) expect(Object.keys(manifest.scripts)).toContain(script);
  });
});

describe('the workflows', () => {
  it('lint and check types first, then run .ci/run on each supported Node, for each change', () => {
    expect(commandsOf('ci.yml')).toEqual(['npm ci', 'npm run lint', 'npm run typecheck', '.ci/run']);
    expect(workflow('ci.yml').jobs.ci).toMatchObject({ needs: 'checks', strategy: { matrix: { node: [22, 24, 26] } } });
  });

  it('give .ci/run the time that it may take', () => {
    const [, limit] = /^limit=(\d+) /m.exec(read('.ci/run')) ?? [];
    expect(Number(limit)).toBeGreaterThan(0);
    expect(workflow('ci.yml').jobs.ci?.['timeout-minutes']).toBeGreaterThan(Number(limit) / 60);
  });

  it('can publish from a tag alone: a dry run has no environment and no identity', () => {
    const { jobs, permissions } = workflow('release.yml');
    const { 'dry-run': dryRun, release } = jobs;
    expect(dryRun?.steps.at(-1)?.run).toBe('npm run release -- --dry-run');
    expect({ ...permissions, ...dryRun?.permissions }).toEqual({ contents: 'read' });
    expect(dryRun?.environment).toBeUndefined();
    expect(release).toMatchObject({ environment: 'npm', permissions: { 'id-token': 'write' } });
  });

  it('run the whole matrix, the soak, the mutants and the coverage every night, and the canary every week', () => {
    const { report, ...checks } = workflow('nightly.yml').jobs;
    expect(Object.values(checks).map(({ steps }) => steps.findLast(({ run }) => run !== undefined)?.run)).toEqual([
      'npm run test:matrix',
      'npm run test:soak',
      'npm run test:mutants',
      'npm run test:coverage',
    ]);
    expect(report).toMatchObject({ needs: Object.keys(checks), permissions: { issues: 'write' } });
    expect(workflow('nightly.yml').on.schedule?.[0]?.cron).toMatch(/^\d+ \d+ \* \* \*$/);
    expect(commandsOf('canary.yml')).toContain('npm run canary -- --all');
    expect(workflow('canary.yml').on.schedule?.[0]?.cron).toMatch(/^\d+ \d+ \* \* \d$/);
  });
});

describe('the issue form', () => {
  const form = parse(read('.github/ISSUE_TEMPLATE/bug.yml')) as {
    body: { type: string; id?: string; attributes: { label?: string } }[];
  };
  const labels = form.body.flatMap(({ attributes }) => attributes.label ?? []).join('\n');

  it('asks for the figures that docs/production.md names', () => {
    for (const question of ['without coalescing', 'hotPath: false', 'stats()', 'Warnings', 'Versions', 'Options']) {
      expect(labels).toContain(question);
    }
  });

  it('gives each question a unique id', () => {
    const ids = form.body.filter(({ type }) => type !== 'markdown').map(({ id }) => id);
    expect(ids).not.toContain(undefined);
    expect(new Set(ids).size).toBe(ids.length);
  });
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

  it('of the present state is refused with the name of a section of CONTRIBUTING.md that exists', () => {
    expect(obstacles({ ...ready, manifest: { version: '1.2.3' } }).join()).toContain(
      '"The public address" in CONTRIBUTING.md',
    );
    expect(read('CONTRIBUTING.md')).toContain('\n## The public address\n');
  });
});
