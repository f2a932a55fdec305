import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));

/** The folders in the order of docs/design.md: each may import from those below it. */
const LAYERS = ['client', 'connection', 'host', 'commands', 'resp', 'util'];
/** Folders that know nothing of this package but `util/`. */
const LEAVES = ['commands', 'resp', 'util'];
/** Known to every folder that is no leaf. */
const COMMON = ['options.ts', 'errors.ts', 'stats.ts', 'channels.ts', 'handle.ts'];
/** What the entries of their own (`fastify`, `prometheus`, `cli`) may import beside their folder. */
const SURFACE = ['coalesce.ts', 'handle.ts', 'errors.ts', 'options.ts', 'stats.ts'];
const ENTRIES = ['fastify', 'prometheus', 'cli'];

interface Import {
  readonly from: string;
  readonly to: string;
}

const imports: Import[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
  .flatMap((from) =>
    [...readFileSync(join(SRC, from), 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)\.js'/g)].map((match) => ({
      from,
      to: `${normalize(join(dirname(from), match[1] as string))}.ts`,
    })),
  );

const folderOf = (file: string) => (file.includes('/') ? (file.split('/')[0] as string) : '');
const shown = ({ from, to }: Import) => `${from} → ${relative('.', to)}`;

it('private members of the host are named only in host/, except those that a light pipeline inherits', () => {
  const inherited = ['client/light-pipeline.ts', 'connection/pipeline-entry.ts'];
  const strays = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && folderOf(file) !== 'host')
    .flatMap((file) => {
      const names = readFileSync(join(SRC, file), 'utf8').match(/\._[a-z]\w*/g) ?? [];
      const own = inherited.includes(file)
        ? names.filter((name) => !['._queue', '._transactions'].includes(name))
        : names;
      return own.map((name) => `${file}: ${name}`);
    });
  expect(strays).toEqual([]);
});

describe('the imports of src/', () => {
  it('point down the list of folders in docs/design.md', () => {
    const up = imports.filter(({ from, to }) => {
      const level = LAYERS.indexOf(folderOf(from));
      if (level < 0) return false;
      const target = LAYERS.indexOf(folderOf(to));
      if (target >= 0) return target < level;
      return !COMMON.includes(to);
    });
    expect(imports.length).toBeGreaterThan(50);
    expect(up.map(shown)).toEqual([]);
  });

  it('keep resp/, commands/ and util/ free of the rest of the package', () => {
    const out = imports.filter(
      ({ from, to }) => LEAVES.includes(folderOf(from)) && folderOf(to) !== folderOf(from) && folderOf(to) !== 'util',
    );
    expect(out.map(shown)).toEqual([]);
  });

  it('keep the entries fastify, prometheus and cli on the public surface and util/', () => {
    const past = imports.filter(({ from, to }) => {
      const entry = ENTRIES.find((name) => from === `${name}.ts` || folderOf(from) === name);
      return entry !== undefined && ![entry, 'util'].includes(folderOf(to)) && !SURFACE.includes(to);
    });
    expect(past.map(shown)).toEqual([]);
  });

  it('form no cycle', () => {
    const targets = new Map<string, string[]>();
    for (const { from, to } of imports) targets.set(from, [...(targets.get(from) ?? []), to]);
    const finished = new Set<string>();
    const loops: string[] = [];
    const visit = (file: string, path: readonly string[]) => {
      if (path.includes(file)) loops.push([...path.slice(path.indexOf(file)), file].join(' → '));
      if (finished.has(file) || path.includes(file)) return;
      for (const next of targets.get(file) ?? []) visit(next, [...path, file]);
      finished.add(file);
    };
    for (const file of targets.keys()) visit(file, []);
    expect(loops).toEqual([]);
  });
});

describe('private fields of the host', () => {
  it('are named by host/ alone', () => {
    const PRIVATE = /\b(offlineQueue|connectionPool|flushQueue|scriptsSet|pipelineIndex)\b/;
    const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && folderOf(file) !== 'host',
    );
    const naming = files.filter((file) =>
      readFileSync(join(SRC, file), 'utf8')
        .split('\n')
        .some((line) => PRIVATE.test(line) && !/^\s*(\*|\/\/|\/\*)/.test(line)),
    );
    expect(naming).toEqual([]);
  });
});
