/** What a release consists of, without doing it. */

export interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

/** What must hold before anything is run. */
export interface Situation {
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly changelog: string;
  /** Of the commit that is checked out. */
  readonly tags: readonly string[];
  /** Files that differ from the commit. */
  readonly changed: readonly string[];
}

/** Users follow them from the package's page, and provenance is checked against `repository`. */
const ADDRESSES = ['repository', 'bugs', 'homepage'];

/** Why this must not be released; empty if it may. */
export function obstacles({ manifest, changelog, tags, changed }: Situation): string[] {
  const version = String(manifest.version);
  const found: string[] = [];
  const missing = ADDRESSES.filter((field) => manifest[field] === undefined);
  if (missing.length > 0) {
    found.push(`package.json must have ${missing.join(', ')}: see "The public address" in CONTRIBUTING.md`);
  }
  if (!new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\] - \\d{4}-\\d{2}-\\d{2}$`, 'm').test(changelog)) {
    found.push(`CHANGELOG.md must have the heading "## [${version}] - <date>" for the version of package.json`);
  }
  if (!tags.includes(`v${version}`)) {
    found.push(`the commit must have the tag v${version}, got ${tags.length === 0 ? 'no tag' : tags.join(', ')}`);
  }
  if (changed.length > 0) found.push(`the work tree must be clean, got changes in ${changed.join(', ')}`);
  return found;
}

/** In this order; the next one runs only if the one before it passed. */
export function steps({ dryRun }: { dryRun: boolean }): Step[] {
  return [
    { name: 'lint', command: ['npm', 'run', 'lint'] },
    { name: 'types', command: ['npm', 'run', 'typecheck'] },
    { name: 'build', command: ['npm', 'run', 'build'] },
    { name: 'tests', command: ['npm', 'test'] },
    { name: 'tests of the package', command: ['npm', 'run', 'test:package'] },
    { name: 'package', command: ['npm', 'run', 'check:package'] },
    {
      name: dryRun ? 'publish (dry run)' : 'publish',
      command: ['npm', 'publish', '--provenance', '--access', 'public', ...(dryRun ? ['--dry-run'] : [])],
    },
  ];
}
