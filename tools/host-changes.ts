/** What a release of a client changed, by files and functions, for `canary.ts`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The head of a function or method in what `tsc` writes. */
const HEAD =
  /^(?:\}, )?(?: {4})?(?:static |async )*(?:function )?(?:(\w+(?:\.\w+)*) = )?(?:async )?(?:function )?(\w*)\(.*\) (?:=> )?\{$/;
const NO_FUNCTIONS = /^ *(?:if|for|while|switch|catch)\b/;

/** Lines such as `DataHandler.js: shiftCommand, returnReply`; empty if the JavaScript of both folders is the same. */
export function changesBetween(known: string, other: string): string[] {
  const files = new Set([known, other].flatMap((folder) => scriptsIn(folder)));
  return [...files].sort().flatMap((file) => {
    const [before, after] = [known, other].map((folder) => functionsIn(join(folder, file)));
    const names = new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])]);
    const changed = [...names].filter((name) => before?.get(name) !== after?.get(name));
    return changed.length === 0 ? [] : [`${file}: ${changed.join(', ')}`];
  });
}

function scriptsIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));
}

/** The text of each function, and what stands outside of all. */
function functionsIn(path: string): Map<string, string> {
  const functions = new Map<string, string>();
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return functions;
  }
  let current = 'the top level';
  for (const line of text.split('\n')) {
    const [, assigned, named] = (!NO_FUNCTIONS.test(line) && HEAD.exec(line)) || [];
    current = assigned || named || current;
    functions.set(current, `${functions.get(current) ?? ''}${line}\n`);
    if (line === '}' || line === '};') current = 'the top level';
  }
  return functions;
}
