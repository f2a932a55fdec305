/**
 * `known-clients-digest.ts <folder of a client package>`: prints what that package is recognized by, as JSON. A process for
 * each, in which nothing has touched its classes.
 */
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Cluster, Redis } from 'ioredis';
import { filesDigest, type LoadedModules, loadedHash, methodDigest, sourceOf } from '../src/host/digest.js';
import { hostPrototype } from '../src/host/probe.js';
import { reachableMethods } from '../src/host/recognize.js';

/** What `known-clients.ts` puts into its table. */
export interface Digests {
  /** Of the files that its clients rest on, and of those that a Cluster does. */
  readonly files: string;
  /** Of the methods that can be reached from a client and a Cluster. */
  readonly methods: readonly string[];
}

const folder = `${realpathSync(process.argv[2] as string)}/`;
const require = createRequire(folder);
const entry = require('./built/index.js') as { default: typeof Redis; Cluster: typeof Cluster };
const clients = [new entry.default({ lazyConnect: true }), new entry.Cluster([], { lazyConnect: true })];
const methods = clients.flatMap((client) =>
  reachableMethods(client, hostPrototype(client) as object).map(([name, method]) =>
    methodDigest(name, method, sourceOf(method)),
  ),
);
const built = `${folder}built/`;
const digests: Digests = {
  files: [false, true].map((whole) => filesDigest(built, require.cache as LoadedModules, whole, loadedHash)).join(' '),
  methods,
};
console.log(JSON.stringify(digests));
