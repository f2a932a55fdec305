/** docs/api.md has a heading for whatever is public, read from the source; docs/commands.md every fast command. */
import { readFileSync } from 'node:fs';
import { CHANNELS, CODES } from 'ioredis-coalesce/coalesce';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { FAST_COMMANDS } from '../src/commands/fast-commands.js';
import { DEFAULT_OPTIONS, resolveSetting } from '../src/options.js';
import { headings, section } from './helpers/markdown.js';

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const api = read('docs/api.md');
const names = headings(api).map(({ text }) => text);

/** The names of an interface's members, methods with `()`. */
function membersOf(file: string, name: string): string[] {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.ES2022);
  for (const statement of source.statements) {
    if (!ts.isInterfaceDeclaration(statement) || statement.name.text !== name) continue;
    return statement.members.map((member) => {
      const text = (member.name as ts.Identifier).text;
      return ts.isMethodSignature(member) ? `${text}()` : text;
    });
  }
  throw new Error(`expected ${file} to have an interface ${name}`);
}

const options = membersOf('src/options.ts', 'CoalesceOptions');
const nested = resolveSetting({ cache: true }, 'options') as unknown as Record<string, object>;
/** Options of options, with their defaults. */
const nestedOptions = membersOf('src/options.ts', 'CacheOptions').map(
  (name) => [`cache.${name}`, (nested.cache as Record<string, unknown>)[name]] as const,
);

const PLUGIN_OPTIONS = ['CommonOptions', 'ServerOptions', 'ClusterNodesOptions', 'ClientOptions'];

function entriesOf(): string[] {
  const { exports, bin } = JSON.parse(read('package.json')) as { exports: object; bin: Record<string, string> };
  return [
    ...Object.keys(exports).map((entry) => `\`ioredis-coalesce${entry.slice(1)}\``),
    ...Object.keys(bin).map((name) => `The command \`${name}\``),
  ];
}

describe('docs/api.md', () => {
  it('documents every entry point, option, member and code of the source', () => {
    expect(options.toSorted()).toEqual(Object.keys(DEFAULT_OPTIONS).toSorted());
    expect(membersOf('src/handle.ts', 'Coalescer')).toContain('stats()');
    expect(() => membersOf('src/options.ts', 'NoSuchInterface')).toThrow('NoSuchInterface');
  });

  it.each([
    ...entriesOf(),
    ...options.map((option) => `\`${option}\``),
    ...nestedOptions.map(([option]) => `\`${option}\``),
    ...membersOf('src/handle.ts', 'Coalescer').map((member) => `\`coalescer.${member}\``),
    ...membersOf('src/handle.ts', 'ClientCache').map((member) => `\`coalescer.cache.${member}\``),
    ...Object.values(CHANNELS).map((channel) => `\`${channel}\``),
    ...Object.values(CODES).map((code) => `\`${code}\``),
  ])('has the heading %s once, and something under it', (heading) => {
    expect(names.filter((name) => name === heading)).toEqual([heading]);
    expect(section(api, heading).trim()).not.toBe('');
  });

  it('has no option, member or code that does not exist', () => {
    const under = (group: string) => headings(section(api, group)).map(({ text }) => text.replaceAll('`', ''));
    expect(under('Options').toSorted()).toEqual([...options, ...nestedOptions.map(([option]) => option)].toSorted());
    expect(under('Diagnostics channels')).toEqual(Object.values(CHANNELS));
    expect([...under('Errors'), ...under('Warnings')].toSorted()).toEqual(Object.values(CODES).toSorted());
  });

  it.each([
    ...options.map((option) => [option, DEFAULT_OPTIONS[option as keyof typeof DEFAULT_OPTIONS]] as const),
    ...nestedOptions,
  ])('gives %s its type, unit, default and cost', (option, value) => {
    const text = section(api, `\`${option}\``);
    const shown = typeof value === 'string' ? `'${value}'` : String(value);
    expect(text).toContain(`\n- Default: \`${shown}\`\n`);
    expect(text).toMatch(/^- Type: ./m);
    expect(text).toMatch(/^- Cost: ./m);
    if (typeof value === 'number') expect(text).toMatch(/^- Unit: ./m);
  });

  it.each([
    ...new Set(
      PLUGIN_OPTIONS.flatMap((name) => membersOf('src/fastify.ts', name)).map((name) => `Plugin option \`${name}\``),
    ),
    ...membersOf('src/prometheus.ts', 'CollectOptions').map((name) => `Metrics option \`${name}\``),
  ])('gives %s its type, default and cost', (heading) => {
    const text = section(api, heading);
    for (const line of [/^- Type: ./m, /^- Default: ./m, /^- Cost: ./m]) expect(text).toMatch(line);
  });

  it.each([
    ...membersOf('src/handle.ts', 'Coalescer').map((member) => `coalescer.${member}`),
    ...membersOf('src/handle.ts', 'ClientCache').map((member) => `coalescer.cache.${member}`),
  ])('says what %s is or returns, and what it costs', (member) => {
    const text = section(api, `\`${member}\``);
    expect(text).toMatch(/^- (Type|Returns): ./m);
    expect(text).toMatch(/^- Cost: ./m);
  });

  it.each(Object.values(CODES))('says what %s means and what to do', (code) => {
    expect(section(api, `\`${code}\``)).toMatch(/^- Means: .[\s\S]*^- What to do: ./m);
  });

  it.each([
    ['BATCH', 'BatchEvent'],
    ['CONNECTION', 'ConnectionEvent'],
  ] as const)('has the constant and every field of the channel %s', (constant, event) => {
    const text = section(api, `\`${CHANNELS[constant]}\``);
    const fields = [...text.matchAll(/^\| `(\w+)` \|/gm)].map(([, field]) => field);
    expect(text).toContain(`\`CHANNELS.${constant}\``);
    expect(fields).toEqual(membersOf('src/channels.ts', event));
  });

  it('has every option of the command', () => {
    const given = [...read('cli/arguments.ts').matchAll(/^ {2}(--[\w-]+)/gm)].map(([, flag = '']) => flag);
    const text = section(api, 'The command `ioredis-coalesce`');
    expect(given.length).toBeGreaterThan(5);
    for (const flag of given) expect(text).toMatch(new RegExp(`\`${flag}[ \`]`));
  });
});

it('docs/commands.md: lists every command of the fast path, and no other', () => {
  const rows = section(read('docs/commands.md'), 'The list').match(/^\| .*/gm) ?? [];
  const listed = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  expect(listed.toSorted()).toEqual(FAST_COMMANDS.map(({ name }) => name).toSorted());
});
