/**
 * `known-clients-digest.ts <folder of a client package>`: prints what that package is recognized by, as JSON. A process for
 * each, in which nothing has touched its classes.
 */
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Cluster, Redis } from 'ioredis';
import { filesDigest, methodDigest } from '../src/host/digest.js';
import { DEPENDENCIES, dependencyDigest, hostPrototype, reachableMethods } from '../src/host/recognize.js';

/** What `known-clients.ts` puts into its table. */
export interface Digests {
  /** Of the files of the package. */
  readonly files: string;
  /** By name and version. */
  readonly dependencies: Readonly<Record<string, string>>;
  /** Of the methods that can be reached from a client and a Cluster. */
  readonly methods: readonly string[];
}

const folder = `${realpathSync(process.argv[2] as string)}/`;
const require = createRequire(folder);
const entry = require('./built/index.js') as { default: typeof Redis; Cluster: typeof Cluster };
const { dependencies } = require('./package.json') as { dependencies: Record<string, string> };

const clients = [new entry.default({ lazyConnect: true }), new entry.Cluster([], { lazyConnect: true })];
const methods = clients.flatMap((client) =>
  reachableMethods(client, hostPrototype(client)).map((found) => methodDigest(...found)),
);
const found = DEPENDENCIES.filter((name) => name in dependencies).map((name) => {
  const { version } = require(`${name}/package.json`) as { version: string };
  return [`${name} ${version}`, dependencyDigest(name, `${folder}built/`, require.cache)] as const;
});
const digests: Digests = {
  files: filesDigest(`${folder}built/`, require.cache),
  dependencies: Object.fromEntries(found),
  methods,
};
console.log(JSON.stringify(digests));
