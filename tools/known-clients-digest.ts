/**
 * `known-clients-digest.ts <folder of a client package>`: prints what that package is recognized by, as JSON. A process
 * for each, in which nothing has touched its classes.
 */
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Cluster, Redis } from 'ioredis';
import { build } from 'rolldown';
import { filesDigest, type LoadedModules, loadedHash, methodDigest, sourceOf } from '../src/host/digest.js';
import { hostPrototype } from '../src/host/probe.js';
import { reachableMethods } from '../src/host/recognize.js';

/** What `known-clients.ts` puts into its table. */
export interface Digests {
  /** Of the files that its clients rest on, and of those that a Cluster does. */
  readonly files: string;
  /**
   * Of the methods that can be reached from a client and a Cluster, as they are published, and as a minifier writes
   * them.
   */
  readonly methods: readonly string[];
}

const folder = `${realpathSync(process.argv[2] as string)}/`;
const require = createRequire(folder);
const built = `${folder}built/`;

interface Entry {
  readonly default: typeof Redis;
  readonly Cluster: typeof Cluster;
}

function methodsOf({ default: Client, Cluster }: Entry): string[] {
  return [new Client({ lazyConnect: true }), new Cluster([], { lazyConnect: true })].flatMap((client) =>
    reachableMethods(client, hostPrototype(client) as object).map(([name, method]) =>
      methodDigest(name, method, sourceOf(method)),
    ),
  );
}

const methods = methodsOf(require('./built/index.js'));
const files = [false, true].map((whole) => filesDigest(built, require.cache as LoadedModules, whole, loadedHash));
// Other minifiers leave all names where they are; this one writes `if (!a.b) a.b = c` as `a.b ||= c`.
const file = `${folder}minified.cjs`;
await build({
  input: `${built}index.js`,
  platform: 'node',
  output: { file, format: 'cjs', minify: true },
  logLevel: 'silent',
});
const digests: Digests = { files: files.join(' '), methods: [...methods, ...methodsOf(require(file))] };
console.log(JSON.stringify(digests));
