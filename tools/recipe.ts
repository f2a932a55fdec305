import { readFileSync } from 'node:fs';
import ts from 'typescript';

const DOCUMENT = readFileSync(new URL('../docs/recipes.md', import.meta.url), 'utf8');

/** The TypeScript under a heading of docs/recipes.md, as JavaScript. */
export function recipeOf(title: string): string {
  const [, text = ''] = DOCUMENT.split(`\n## ${title}\n`);
  const [, code] = /^```ts\n(.*?)^```$/ms.exec(text.split('\n## ', 1)[0]!) ?? [];
  if (code === undefined) throw new Error(`docs/recipes.md should have TypeScript under the heading "${title}"`);
  const compilerOptions: ts.CompilerOptions = {
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  return ts.transpileModule(code, { compilerOptions }).outputText;
}
