/**
 * `known-clients-digest.ts <folder of a client package>`: prints what that package is recognized by, as JSON. A process
 * for each, in which nothing has touched its classes.
 */
import { EventEmitter } from 'node:events';
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Cluster, Redis } from 'ioredis';
import { build } from 'rolldown';
import { exactDigest, namesDigest, textDigest } from '../src/host/digest.js';
import {
  isIgnored,
  openNothing,
  type Place,
  reachClass,
  reachConnection,
  reachMade,
  reachModules,
  textOf,
} from '../src/host/functions.js';
import type { AnyFunction, HostCommandClass } from '../src/host/types.js';

/** What `known-clients.ts` puts into its table: digests by place and name, as published and minified. */
export type Digests = Partial<Record<Place, Record<string, string[]>>>;

const folder = `${realpathSync(process.argv[2] as string)}/`;
const require = createRequire(folder);
const built = `${folder}built/`;

interface Entry {
  readonly default: typeof Redis & { readonly Command: HostCommandClass };
  readonly Cluster: typeof Cluster;
}

const digests: Digests = {};

function add({ default: Client, Cluster }: Entry, isMinified: boolean): void {
  const { prototype, Command } = Client;
  const { _connect, connect } = prototype as unknown as Record<string, AnyFunction>;
  const opened = openNothing(prototype, (_connect ?? connect) as AnyFunction, { protocol: 3 });
  const reached = [
    reachClass(prototype, Command, false),
    reachClass(Cluster.prototype, Command, true),
    reachMade(prototype, false),
    reachConnection(opened),
    reachModules(Command),
  ];
  for (const [place, holder] of reached.flatMap((holders) => Object.entries(holders) as [Place, object][])) {
    if (place === 'keys') continue;
    for (const [name, { value, get }] of Object.entries(Object.getOwnPropertyDescriptors(holder))) {
      const method: unknown = value ?? get;
      if (typeof method !== 'function' || isIgnored(place, name)) continue;
      if ((place === 'client' || place === 'cluster') && name in EventEmitter.prototype) continue;
      digests[place] ??= Object.create(null) as Record<string, string[]>;
      digests[place][name] ??= [];
      const all = digests[place][name];
      const source = textOf(name, method as AnyFunction);
      const published = isMinified ? [] : [exactDigest(source), textDigest(source)];
      const found = [namesDigest(method as AnyFunction, source), ...published];
      for (const digest of found) if (!all.includes(digest)) all.push(digest);
    }
  }
}

add(require('./built/index.js'), false);
// Other minifiers leave all names where they are; this one writes `if (!a.b) a.b = c` as `a.b ||= c`.
const file = `${folder}minified.cjs`;
await build({
  input: `${built}index.js`,
  platform: 'node',
  output: { file, format: 'cjs', minify: true },
  logLevel: 'silent',
});
add(require(file), true);
console.log(JSON.stringify(digests));
