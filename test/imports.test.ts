import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));
const BENCH = fileURLToPath(new URL('../bench', import.meta.url));
const CLI = fileURLToPath(new URL('../cli', import.meta.url));

/** The folders in the order of docs/design.md: each may import from those below it. */
const LAYERS = [
  'advise',
  'attach',
  'split',
  'pipelines',
  'calls',
  'cache',
  'cache/prefetch',
  'reads',
  'observed',
  'core',
  'host',
  'cork',
  'commands',
  'resp',
  'util',
];
/** Folders that know nothing of this package but `util/`. */
const LEAVES = ['cork', 'commands', 'resp', 'util'];
/** What `cork/`, an entry of its own, knows beside that: how options are checked. */
const OF_CORK = ['options.ts', 'environment.ts', 'errors.ts'];
/** Known to every folder that is no leaf. */
const COMMON = ['options.ts', 'environment.ts', 'errors.ts', 'stats.ts', 'channels.ts', 'handle.ts'];
/** What the entries of their own (`fastify`, `prometheus`) and the command line may import. */
const SURFACE = ['coalesce.ts', 'handle.ts', 'errors.ts', 'options.ts', 'stats.ts'];
/** The drop-in classes, which `fastify` makes clients with. */
const CLASSES = ['redis.ts', 'cluster.ts'];
const ENTRIES = ['fastify', 'prometheus'];
/** The other public files, which may also import these folders. */
const ASSEMBLED = ['index.ts', 'register.ts', 'redis.ts', 'cluster.ts', 'coalesce.ts'];
const ASSEMBLED_FROM = ['advise', 'attach', 'host', 'cork'];

/** What only `host/` names, outside comments. */
const PRIVATE = /\._[a-z]\w*|\b(?:offlineQueue|connectionPool|flushQueue|scriptsSet|pipelineIndex|replyPending)\b/g;
/** A fast pipeline is a pipeline of the host, and inherits these. */
const INHERITED = ['._queue', '._transactions', 'replyPending'];
const INHERITING = ['pipelines/fast-pipeline.ts', 'pipelines/pipeline-entry.ts'];

type Import = { readonly from: string; readonly to: string };

const filesIn = (root: string) =>
  readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.d.ts'),
  );
const textOf = (file: string, root = SRC) => readFileSync(join(root, file), 'utf8');
/** Without lines that are comments. */
const code = (file: string) => textOf(file).replaceAll(/^\s*(?:\*|\/\/|\/\*).*$/gm, '');

/** Those of types, too. */
const importsIn = (root: string): Import[] =>
  filesIn(root).flatMap((from) =>
    [...textOf(from, root).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)\.js'/g)].map((match) => ({
      from,
      to: `${normalize(join(dirname(from), match[1] as string))}.ts`,
    })),
  );
const files = filesIn(SRC);
const imports = importsIn(SRC);

const folderOf = (file: string) => (file.includes('/') ? dirname(file) : '');
const shown = ({ from, to }: Import) => `${from} → ${relative('.', to)}`;

it('only host/ names private fields of the host, except those that a fast pipeline inherits', () => {
  const named = files
    .filter((file) => folderOf(file) !== 'host')
    .flatMap((file) =>
      (code(file).match(PRIVATE) ?? [])
        .filter((name) => !(INHERITING.includes(file) && INHERITED.includes(name)))
        .map((name) => `${file}: ${name}`),
    );
  expect(named).toEqual([]);
});

it('the prototype of our classes changes only in their own file: folders above the core use its hooks', () => {
  const changed = files
    .filter((file) => folderOf(file) !== 'host')
    .flatMap((file) =>
      [...code(file).matchAll(/\b([A-Z]\w*)\.prototype\.\w+ = .*/g)]
        .filter(([, name]) => !new RegExp(`class ${name}\\b`).test(code(file)))
        .map(([line]) => `${file}: ${line}`),
    );
  expect(changed).toEqual([]);
});

it('every file in a folder of docs/design.md’s table is named in its row', () => {
  const design = readFileSync(join(SRC, '../docs/design.md'), 'utf8');
  const missing = LAYERS.flatMap((folder) => {
    const row = design.split('\n').find((line) => line.startsWith(`| \`${folder}/\` |`)) ?? '';
    const names = files.filter((file) => folderOf(file) === folder).map((file) => basename(file, '.ts'));
    return names.filter((name) => !row.includes(`\`${name}\``)).map((name) => `${folder}/${name}`);
  });
  expect(missing).toEqual([]);
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

  it('keep cork/, resp/, commands/ and util/ free of the rest of the package', () => {
    const out = imports.filter(
      ({ from, to }) =>
        LEAVES.includes(folderOf(from)) &&
        folderOf(to) !== folderOf(from) &&
        folderOf(to) !== 'util' &&
        !(folderOf(from) === 'cork' && OF_CORK.includes(to)),
    );
    expect(out.map(shown)).toEqual([]);
  });

  it('keep the entries fastify and prometheus, and cli/ beside src/, on the public surface and util/', () => {
    const past = imports.filter(({ from, to }) => {
      const entry = ENTRIES.find((name) => from === `${name}.ts`);
      const known = entry === 'fastify' ? [...SURFACE, ...CLASSES] : SURFACE;
      return entry !== undefined && folderOf(to) !== 'util' && !known.includes(to);
    });
    expect(past.map(shown)).toEqual([]);
    const ofCli = importsIn(CLI).filter(({ to }) => to.startsWith('..') && !SURFACE.includes(relative('../src', to)));
    expect(ofCli.map(shown)).toEqual([]);
  });

  it('keep the common files free of all but each other and util/', () => {
    const out = imports.filter(
      ({ from, to }) => COMMON.includes(from) && !COMMON.includes(to) && folderOf(to) !== 'util',
    );
    expect(out.map(shown)).toEqual([]);
  });

  it('let the other public files assemble attach/ and host/, and nothing deeper', () => {
    const deeper = imports.filter(
      ({ from, to }) =>
        ASSEMBLED.includes(from) && ![...COMMON, ...ASSEMBLED].includes(to) && !ASSEMBLED_FROM.includes(folderOf(to)),
    );
    expect(deeper.map(shown)).toEqual([]);
    const known = [...COMMON, ...ASSEMBLED, ...ENTRIES.map((name) => `${name}.ts`)];
    expect(files.filter((file) => folderOf(file) === '' && !known.includes(file))).toEqual([]);
  });
});

it.each([
  ['src/', imports],
  ['bench/', importsIn(BENCH)],
])('the imports of %s form no cycle', (_, all) => {
  const targets = new Map<string, string[]>();
  for (const { from, to } of all) targets.set(from, [...(targets.get(from) ?? []), to]);
  const finished = new Set<string>();
  const loops: string[] = [];
  const visit = (file: string, path: readonly string[]) => {
    if (path.includes(file)) loops.push([...path.slice(path.indexOf(file)), file].join(' → '));
    if (finished.has(file) || path.includes(file)) return;
    for (const next of targets.get(file) ?? []) visit(next, [...path, file]);
    finished.add(file);
  };
  for (const file of targets.keys()) visit(file, []);
  expect(targets.size).toBeGreaterThan(20);
  expect(loops).toEqual([]);
});

it('files that comments name exist', () => {
  const missing = files.flatMap((file) =>
    [...textOf(file).matchAll(/`((?:[\w-]+\/)*[\w-]+\.ts)`/g)]
      .map(([, name]) => name as string)
      .filter(
        (name) =>
          !existsSync(join(SRC, name)) &&
          !existsSync(join(SRC, '..', name)) &&
          !existsSync(join(SRC, dirname(file), name)),
      )
      .filter((name) => name.includes('/') || !files.some((other) => basename(other) === name))
      .map((name) => `${file}: ${name}`),
  );
  expect(missing).toEqual([]);
});
