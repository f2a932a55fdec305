/**
 * Copies of an installed client package, as another release, a patch or a hook that changes what is loaded would make
 * them.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Redis, RedisOptions } from 'ioredis';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { cache } = createRequire(import.meta.url);

/** What to put into which file of `built/`, in place of what. */
export interface Change {
  readonly file: string;
  readonly text: string | RegExp;
  readonly by: string | ((text: string) => string);
}

export interface CopiedHost {
  readonly folder: string;
  /** Loads the package, as a fresh process would. `change` is made to what is loaded, and the file stays as it is. */
  load(change?: Change): {
    readonly Redis: new (url: string, options?: RedisOptions) => Redis;
    readonly Cluster: new (nodes: object[], options?: object) => Redis;
    readonly Command: { readonly prototype: Record<string, (...args: unknown[]) => unknown> };
  };
  remove(): void;
}

/** @param name - the name by which the package is installed here. */
export function copyHost(name: string, version?: string, onDisk?: Change): CopiedHost {
  // Where the packages that it depends on are found.
  const scratch = mkdtempSync(join(ROOT, 'node_modules/.copy-'));
  const folder = join(scratch, 'package');
  const original = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
  cpSync(original, folder, { recursive: true, dereference: true });
  if (version !== undefined) {
    const file = join(folder, 'package.json');
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), version }));
  }
  if (onDisk !== undefined) {
    const file = join(folder, 'built', onDisk.file);
    writeFileSync(file, changed(readFileSync(file, 'utf8'), onDisk));
  }
  return {
    folder,
    load(change) {
      for (const file of Object.keys(cache)) if (file.startsWith(folder)) delete cache[file];
      const modules = Module.prototype as unknown as { _compile(text: string, file: string): unknown };
      const { _compile } = modules;
      let isChanged = change === undefined;
      modules._compile = function compile(text, file) {
        const isMeant = change !== undefined && file === join(folder, 'built', change.file);
        if (isMeant) isChanged = true;
        return _compile.call(this, isMeant ? changed(text, change) : text, file);
      };
      try {
        const loaded = createRequire(folder)(folder);
        if (!isChanged) throw new Error(`${change?.file} was not loaded`);
        return loaded;
      } finally {
        modules._compile = _compile;
      }
    },
    remove: () => rmSync(scratch, { recursive: true }),
  };
}

function changed(text: string, { file, text: from, by }: Change): string {
  const result = text.replace(from, by as string);
  if (result === text) throw new Error(`${file} has no ${String(from)}`);
  return result;
}
