import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as ioredis from 'ioredis';
import { coalesce } from '../src/coalesce.js';
import { CliError, type Target } from './arguments.js';

export const VARIANTS = ['plain', 'auto', 'cork', 'coalesced'] as const;
export type Variant = (typeof VARIANTS)[number];

/** A Redis or a Cluster, of ioredis 5, ioredis 6 or iovalkey: all have the members used here. */
export type Client = ioredis.Redis;

type ConnectError = Error & { lastNodeError?: Error };
export type Host = Pick<typeof ioredis, 'Redis' | 'Cluster'> & Readonly<Record<'name' | 'version', string>>;

const CONNECT_TIMEOUT = 3_000;
const ANSWER_TIMEOUT = 5_000;

/** The client library of the project in the working directory, else the one installed next to this package. */
export function loadHost(): Host {
  for (const from of [join(process.cwd(), 'package.json'), import.meta.url]) {
    const load = createRequire(from);
    for (const name of ['ioredis', 'iovalkey']) {
      try {
        const { version } = load(`${name}/package.json`) as { version: string };
        return { ...(load(name) as Pick<Host, 'Redis' | 'Cluster'>), name, version };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
      }
    }
  }
  throw new CliError(
    'needs the package "ioredis", which is not installed: run "npx --no-install ioredis-coalesce bench" in the folder of a ' +
      'project that has both',
  );
}

/** Connects, and never reconnects: a connection that breaks makes the figures worthless. */
export async function open(host: Host, target: Target, variant: Variant, fuseReads = false): Promise<Client> {
  const client = create(host, target, variant === 'auto');
  // Before it connects: a service's connections coalesce from their first byte.
  if (variant === 'coalesced') coalesce(client, { fuseReads });
  else if (variant === 'cork') coalesce(client, { fastPath: false });
  let reason: ConnectError | undefined;
  for (const name of ['error', 'node error']) {
    client.on(name, (error: Error) => {
      // A Cluster first reports only that it could not connect, and then why.
      if (error.message !== 'Connection is closed.') reason ??= error;
    });
  }
  try {
    const answer = client.connect().then(() => client.get('ioredis-coalesce:bench:'));
    await within(ANSWER_TIMEOUT, answer);
    // Host: if the URL's database does not exist, it continues in database 0. A Cluster reports nodes that it does not
    // need.
    if (reason && !target.cluster) throw reason;
    return client;
  } catch (error) {
    client.disconnect();
    const failure = reason ?? (error as ConnectError);
    throw new CliError(`cannot use the Redis at ${target.name}: ${briefly(failure.lastNodeError ?? failure)}`);
  }
}

/** The client's own timeout covers connecting, not a server that accepts the connection and stays silent. */
export async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  const isLate = await Promise.race([work.then(() => false), sleep(milliseconds, true)]);
  if (isLate) throw new Error(`no answer within ${milliseconds / 1000} s`);
}

const HINTS: readonly [error: RegExp, hint: string][] = [
  [/ MOVED /, '; it is a node of a Cluster: add --cluster'],
  [/ NOAUTH /, '; redis://user:password@host:port, best in REDIS_URL'],
  [/SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/, '; trust its authority with NODE_EXTRA_CA_CERTS=<file>'],
  [/^E(TIMED|CONNRES|PIPE|PRO|RR_SSL)|is closed/, '; with TLS the URL begins with rediss://, else redis://'],
];

/** The first line of an error, with a hint if there is one. Errors of several addresses have an empty message. */
export function briefly({ message, name, code = name }: NodeJS.ErrnoException): string {
  const hint = HINTS.find(([error]) => error.test(`${code} ${message}`))?.[1] ?? '';
  return `${(message || code).split('\n')[0]}${hint}`;
}

function create(host: Host, { url, cluster }: Target, enableAutoPipelining: boolean): Client {
  const common = { lazyConnect: true, enableAutoPipelining };
  const options = { connectTimeout: CONNECT_TIMEOUT, retryStrategy: () => null, maxRetriesPerRequest: 0 };
  if (!cluster) return new host.Redis(url, { ...common, ...options });
  // The options of each node, except its address.
  const { username, password, protocol } = new URL(url);
  const redisOptions = {
    connectTimeout: CONNECT_TIMEOUT,
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' && { tls: {} }),
  };
  return new host.Cluster([url], { ...common, clusterRetryStrategy: () => null, redisOptions }) as unknown as Client;
}
