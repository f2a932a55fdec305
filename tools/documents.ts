import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What a generated region holds: made from results, and where it is a part of a table, from what stands there. */
export type Region = string | ((current: string) => string);

const begin = (name: string) => `<!-- ${name}:begin -->`;
const end = (name: string) => `<!-- ${name}:end -->`;

/** The documents that may hold generated regions: README.md, those in docs/, and what the bench measured. */
export async function readDocuments(root = ROOT): Promise<Map<string, string>> {
  const docs = (await readdir(join(root, 'docs'))).filter((file) => file.endsWith('.md')).map((file) => `docs/${file}`);
  const texts = ['README.md', ...docs.sort(), 'bench/TARGETS.md', 'bench/results/README.md'].map(async (file) => {
    return [file, await readFile(join(root, file), 'utf8')] as const;
  });
  return new Map(await Promise.all(texts));
}

/** The documents that hold one of the regions, with what it should hold now. */
export function fillRegions(
  documents: ReadonlyMap<string, string>,
  regions: Readonly<Record<string, Region>>,
): Map<string, string> {
  const filled = new Map<string, string>();
  for (const [file, text] of documents) {
    const names = Object.keys(regions).filter((name) => text.includes(begin(name)));
    if (names.length === 0) continue;
    filled.set(
      file,
      names.reduce((filling, name) => fill(filling, file, name, regions[name]!), text),
    );
  }
  return filled;
}

/** Writes the regions into the repository's documents, and returns the files. */
export async function writeRegions(regions: Readonly<Record<string, Region>>): Promise<string[]> {
  const filled = fillRegions(await readDocuments(), regions);
  for (const [file, text] of filled) await writeFile(join(ROOT, file), text);
  return [...filled.keys()];
}

function fill(text: string, file: string, name: string, region: Region): string {
  const from = text.indexOf(begin(name)) + begin(name).length;
  const to = text.indexOf(end(name));
  if (to < from) throw new Error(`${file} should hold ${begin(name)} and, after it, ${end(name)}`);
  const content = typeof region === 'string' ? region : region(text.slice(from, to).trim());
  return `${text.slice(0, from)}\n${content}\n${text.slice(to)}`;
}

export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
