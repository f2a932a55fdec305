/** Plain words, in code and documents: what a reader whose third language is English would stumble over. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PLACES = ['src', 'bench', 'tools', 'examples', 'test', 'docs', 'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md'];
const SKIPPED = /(^|\/)(node_modules|dist|results)\/|words\.test\.ts$/;
const READ = /\.(ts|js|mjs|md|html)$/;

/** Each with the words to write instead. */
const BANNED: readonly [RegExp, instead: string][] = [
  [/\b(whoever|somebody|someone|whomever)\b/i, 'caller, subscriber, user, client'],
  [/\bby turns\b/i, 'in turn, alternating'],
  [/\bso many\b/i, 'the number, or the name of the parameter'],
  [/(?<![a-z-])(hand-shakes?|time-outs?|look-ups?|start-up|set-up|throw-away)(?![a-z])/i, 'without the hyphen'],
  [/\bwhat (waits|has gathered|is there of)\b/i, 'backlog, pending bytes, partial reply'],
  [/\bsharers?\b/i, 'leader and followers'],
  [/\blayers? [0-2]\b/i, 'the cork, the hot path'],
  [/\b(needless|mid-life|second life)\b/i, 'redundant; while connected; after connecting again'],
  [
    /(\d\.?\d* (µs|ns|ms|[KM]iB|bytes)|[A-Z]{3,}`?s?`?) an? (command|request|reply|reconnect|round trip|line|product|batch)\b/,
    'per',
  ],
];

const files = PLACES.flatMap((place) =>
  statSync(join(ROOT, place)).isFile()
    ? [place]
    : readdirSync(join(ROOT, place), { recursive: true, encoding: 'utf8' }).map((file) => `${place}/${file}`),
).filter((file) => READ.test(file) && !SKIPPED.test(file));

it('finds the files, so that the tests below can fail', () => {
  expect(files.length).toBeGreaterThan(300);
  expect(files).toContain('src/client/hot-path.ts');
});

it.each(BANNED)('no file says %s; better: %s', (banned) => {
  const found = files.flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (banned.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : [])),
  );
  expect(found).toEqual([]);
});
