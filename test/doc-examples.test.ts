/** The TypeScript and JavaScript of README and docs is compiled as a user with `strict` would compile it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DOCUMENTS = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
  'examples/fastify-app/README.md',
];

/** What the examples take as given, because the text around them says so. */
const GIVEN = `
  declare const client: import('ioredis').Redis;
  declare const redis: import('ioredis-coalesce').Redis;
  declare const logger: { debug(...args: unknown[]): void; info(...args: unknown[]): void; warn(...args: unknown[]): void };
  declare const app: import('fastify').FastifyInstance;
  declare const id: string;
  declare function loadCart(user: string): Promise<unknown>;
  declare const underPressure: import('fastify').FastifyPluginCallback<{
    maxEventLoopUtilization: number; healthCheck: () => Promise<boolean>; healthCheckInterval: number;
  }>;
  // Not packages of this repository; those of Nest and Express run every night (tools/known-applications.ts).
  declare module 'express' {
    interface Request { session: { views?: number } }
    interface Response { json(value: unknown): void }
    interface Express {
      use(handler: unknown): void;
      get(path: string, handler: (request: Request, response: Response) => void): void;
      listen(port: number | string | undefined): void;
    }
    export default function express(): Express;
  }
  declare module 'express-session' {
    export default function session(options: { store: object; secret: string; resave: boolean; saveUninitialized: boolean }): object;
  }
  declare module 'connect-redis' { export class RedisStore { constructor(options: { client: object }); } }
  declare module '@nestjs/microservices' {
    export enum Transport { REDIS }
    export function MessagePattern(pattern: string): MethodDecorator;
  }
  declare namespace jest { function mock(name: string, make?: () => unknown): void; }
  declare const vi: typeof import('vitest').vi;
  declare const mock: typeof import('node:test').mock;
`;

type Example = { readonly document: string; readonly line: number; readonly code: string };

const examples = DOCUMENTS.flatMap(examplesOf);

function examplesOf(document: string): Example[] {
  const text = readFileSync(join(ROOT, document), 'utf8');
  return [...text.matchAll(/^```(?:ts|js)\n(.*?)^```$/gms)].map(({ index, 1: code = '' }) => ({
    document,
    line: text.slice(0, index).split('\n').length + 1,
    code,
  }));
}

/** A virtual file in the repository, so that packages are found; a module of its own by its last line. */
const files = new Map(
  examples.map((example, index) => [
    join(ROOT, `example-${index}.mts`),
    { ...example, code: `${example.code}\nexport {};` },
  ]),
);
const given = join(ROOT, 'given.d.ts');

function compile(): ts.Program {
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    experimentalDecorators: true,
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
    paths: {
      'ioredis-coalesce': [join(ROOT, 'src/index.ts')],
      'ioredis-coalesce/cork': [join(ROOT, 'src/cork/cork.ts')],
      'ioredis-coalesce/*': [join(ROOT, 'src/*.ts')],
    },
    resolveJsonModule: true,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  const virtual = (file: string) => (file === given ? GIVEN : files.get(file)?.code);
  host.fileExists = (file) => virtual(file) !== undefined || fileExists(file);
  host.readFile = (file) => virtual(file) ?? readFile(file);
  host.getSourceFile = (file, ...rest) => {
    const text = virtual(file);
    return text === undefined ? getSourceFile(file, ...rest) : ts.createSourceFile(file, text, ts.ScriptTarget.ES2022);
  };
  return ts.createProgram([given, ...files.keys()], options, host);
}

describe('the TypeScript and JavaScript examples of the documents', () => {
  it('more than ten examples are found, in more than two documents', () => {
    expect(examples.length).toBeGreaterThan(10);
    expect(new Set(examples.map(({ document }) => document)).size).toBeGreaterThan(2);
  });

  it('every example compiles under strict', () => {
    const program = compile();
    const errors = [...files].flatMap(([file, { document, line }]) => {
      const source = program.getSourceFile(file);
      return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map((error) => {
        const at = source?.getLineAndCharacterOfPosition(error.start ?? 0).line ?? 0;
        return `${document}:${line + at}: ${ts.flattenDiagnosticMessageText(error.messageText, '\n')}`;
      });
    });
    expect(errors).toEqual([]);
  }, 120_000);
});
