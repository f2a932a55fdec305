/** Every relative link and anchor in the documents leads somewhere. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { obstacles } from '../tools/release-steps.js';
import { anchors, links } from './helpers/markdown.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DOCUMENTS = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
  'test/README.md',
  'bench/README.md',
  'bench/TARGETS.md',
  'bench/results/README.md',
  'examples/fastify-app/README.md',
];

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const isRelative = (link: string) => !/^[a-z]+:/.test(link);

/** The links of a text that lead nowhere, as if it stood in `document`. */
const broken = (document: string, text: string): string[] =>
  links(text)
    .filter(isRelative)
    .filter((link) => {
      const [path = '', anchor] = link.split('#');
      const file = path === '' ? document : relative(ROOT, join(ROOT, dirname(document), path));
      if (path !== '' && !existsSync(join(ROOT, file))) return true;
      return anchor !== undefined && !anchors(path === '' ? text : read(file)).has(anchor);
    });

it('finds links that lead nowhere, so that the tests below can fail', () => {
  const text =
    '# A `b.c`?\n\n[1](#a-bc) [2](#d) [3](guarantees.md) [4](no.md) [5](guarantees.md#limits) [6](guarantees.md#no)';
  expect(broken('docs/a.md', text)).toEqual(['#d', 'no.md', 'guarantees.md#no']);
});

it.each(DOCUMENTS)('%s: has no relative link or anchor that leads nowhere', (document) => {
  expect(broken(document, read(document))).toEqual([]);
});

it('README.md links to files outside the package only where the repository resolves the links', () => {
  const manifest = JSON.parse(read('package.json')) as { version: string; files: string[]; repository?: unknown };
  const packed = ['README.md', 'LICENSE', 'package.json', ...manifest.files];
  const outside = links(read('README.md')).filter(
    (link) => isRelative(link) && !link.startsWith('#') && !packed.includes(link.split('#')[0]!),
  );
  if (outside.length === 0 || manifest.repository !== undefined) return;
  // npm resolves relative links by the repository's address. While that is not known, nothing can be released.
  const { version } = manifest;
  const changelog = `## [${version}] - 2026-01-01`;
  const refused = obstacles({ manifest, changelog, tags: [`v${version}`], changed: [] });
  expect(refused.join()).toContain('repository');
});
