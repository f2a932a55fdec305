/** A client whose modules were loaded in a context of `node:vm`, as Jest does: its `Error` and `Object` are others. */
import { readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname } from 'node:path';
import { compileFunction, createContext } from 'node:vm';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { expectAsPlain } from '../helpers/beside.js';
import { type Client, endWithTest, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('realm');

/** The exports of a CommonJS package, all of whose modules are loaded in a context of their own. */
function loadedElsewhere(name: string): { Redis: new (url: string) => Client } {
  const { Buffer, process, setTimeout, clearTimeout, setImmediate, console, URL } = globalThis;
  const parsingContext = createContext({ Buffer, process, setTimeout, clearTimeout, setImmediate, console, URL });
  const modules = new Map<string, { exports: object }>();
  const load = (file: string): object => {
    const known = modules.get(file);
    if (known !== undefined) return known.exports;
    const made = { exports: {} };
    modules.set(file, made);
    const source = readFileSync(file, 'utf8');
    if (file.endsWith('.json')) return JSON.parse(source) as object;
    const own = createRequire(file);
    const required = (id: string): unknown => (isBuiltin(id) ? own(id) : load(own.resolve(id)));
    const names = ['module', 'exports', 'require', '__filename', '__dirname'];
    const run = compileFunction(source, names, { filename: file, parsingContext }) as (...args: unknown[]) => void;
    run(made, made.exports, required, file, dirname(file));
    return made.exports;
  };
  return load(createRequire(import.meta.url).resolve(name)) as ReturnType<typeof loadedElsewhere>;
}

describe.each(['ioredis', 'ioredis5', 'iovalkey'])('a client of %s from another realm', (name) => {
  it('is corked: errors within a transaction are errors', async () => {
    const { Redis } = loadedElsewhere(name);
    await expectAsPlain(async (kind) => {
      const client = endWithTest(await ready(new Redis(redisUrl())));
      if (kind === 'coalesced') expect(coalesce(client).coalescer.stats().mode).toBe('cork');
      await client.hset(`${prefix}h`, { f: 'v' });
      const exec = await client.multi().hget(`${prefix}h`, 'f').get(`${prefix}h`).exec();
      const pipeline = await client.pipeline().hget(`${prefix}h`, 'f').get(`${prefix}h`).exec();
      await client.del(`${prefix}h`);
      return [exec, pipeline].map((results) => results?.map(([error, value]) => [error && String(error), value]));
    });
  });
});
