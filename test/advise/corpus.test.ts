/**
 * The advisor on patterns whose advice is known (`corpus/`): in Fastify, Express, Nest compiled with source maps,
 * BullMQ, GraphQL with and without a loader, and a worker thread. What it says is compared with the comments there.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Advice, RoundTrips, Wait } from 'ioredis-coalesce/coalesce';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const FOLDER = fileURLToPath(new URL('corpus/', import.meta.url));
const API = fileURLToPath(new URL('../../docs/api.md', import.meta.url));
const KINDS = ['together', 'argument', 'if', 'leave'] as const satisfies readonly Advice[];

/** What may be advised, by the place of the second command; after `loop:`, for the next item of a loop. */
const labels = new Map<string, Advice>();
for (const file of readdirSync(FOLDER)) {
  for (const [index, line] of readFileSync(join(FOLDER, file), 'utf8').split('\n').entries()) {
    const [, advice, ofLoop] = /^\s*\/\/ advice: (?:(\w+)(?:; |$))?(?:loop: (\w+))?$/.exec(line) ?? [];
    if (advice !== undefined) labels.set(`${file}:${index + 2}`, advice as Advice);
    if (ofLoop !== undefined) labels.set(`${file}:${index + 2}, loop`, ofLoop as Advice);
  }
}

/** As `nest build` compiles it: CommonJS, with a map of the lines. */
function compileNest(): string {
  const folder = mkdtempSync(join(tmpdir(), 'corpus-'));
  const source = join(FOLDER, 'nest.ts');
  const { outputText, sourceMapText = '' } = ts.transpileModule(readFileSync(source, 'utf8'), {
    fileName: source,
    compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022, sourceMap: true },
  });
  writeFileSync(join(folder, 'nest.js'), outputText);
  writeFileSync(join(folder, 'nest.js.map'), JSON.stringify({ ...JSON.parse(sourceMapText), sources: [source] }));
  writeFileSync(join(folder, 'package.json'), '{ "type": "commonjs" }');
  symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(folder, 'node_modules'));
  return folder;
}

describe('advice on the corpus', () => {
  let compiled = '';
  let found: Wait[] = [];
  const placeOf = ({ second, loop }: Wait) => {
    const place = basename(second.place);
    return loop && labels.has(`${place}, loop`) ? `${place}, loop` : place;
  };
  const isRight = (wait: Wait) => wait.advice === labels.get(placeOf(wait));

  beforeAll(async () => {
    compiled = compileNest();
    const args = ['--enable-source-maps', '--import', 'tsx', 'run.ts', redisUrl(), uniquePrefix('corpus'), compiled];
    const program = spawn(process.execPath, args, {
      cwd: FOLDER,
      env: { ...process.env, IOREDIS_COALESCE: 'advise:json' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [stderr, [status]] = await Promise.all([text(program.stderr), once(program, 'exit')]);
    if (status !== 0) throw new Error(stderr);
    // One line for each thread, beside warnings of Node's.
    const reports = stderr.split('\n').filter((line) => line.startsWith('{'));
    found = reports.flatMap((line) => (JSON.parse(line) as RoundTrips).sites);
  });
  afterAll(() => rmSync(compiled, { recursive: true }));

  it('has at least forty patterns, and each wait in it has its advice', () => {
    expect(labels.size).toBeGreaterThan(40);
    expect(found.filter((wait) => !labels.has(placeOf(wait)))).toEqual([]);
  });

  it('is never wrong in saying "together"', () => {
    expect(found.filter((wait) => wait.advice === 'together' && !isRight(wait))).toEqual([]);
  });

  it('has at least the precision and the recall that docs/api.md shows', () => {
    const said = (kind: Advice) => found.filter(({ advice }) => advice === kind);
    const meant = (kind: Advice) => [...labels].filter(([, label]) => label === kind);
    const figures: Record<string, (kind: Advice) => number> = {
      commands: (kind) => meant(kind).length,
      precision: (kind) => said(kind).filter(isRight).length / said(kind).length,
      recall: (kind) => {
        const right = meant(kind).filter(([place]) => said(kind).some((wait) => placeOf(wait) === place));
        return right.length / meant(kind).length;
      },
    };
    const wrong = found.filter((wait) => !isRight(wait)).map((wait) => `${placeOf(wait)}: ${wait.advice}`);
    const rows = [...readFileSync(API, 'utf8').matchAll(/^\| (commands|precision|recall) \| (.*) \|$/gm)];
    expect(rows).toHaveLength(3);
    for (const [, name = '', values = ''] of rows) {
      const shown = values.split(' | ').map(Number);
      const measured = KINDS.map((kind) => Number(figures[name]?.(kind).toFixed(2)));
      const short = KINDS.filter((_, index) => !((measured[index] as number) >= (shown[index] as number)));
      expect(short, `${name}: ${measured.join()}; ${wrong.join(', ')}`).toEqual([]);
    }
  });
});
