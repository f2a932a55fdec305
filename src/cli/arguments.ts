import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

export interface BenchSettings {
  readonly target: Target;
  /** Callers that each await one GET after the other. */
  readonly concurrency: number;
  readonly valueBytes: number;
  readonly keys: number;
  /** Measured per variant, over all rounds. */
  readonly seconds: number;
  readonly json: boolean;
}

/** A command line that cannot be understood; its message is one line. */
export class UsageError extends Error {
  constructor(problem: string, help = 'ioredis-coalesce bench --help') {
    super(`${problem} (see ${help})`);
  }
}

export const BENCH_HELP = `Usage: ioredis-coalesce bench [options]

What would I gain on my Redis? Measures GETs with a plain client, with ioredis's auto-pipelining and with a coalesced
client, in turns. It reads and writes keys under one random prefix, with an expiry, and removes them at the end and on
Ctrl-C.

Options:
  --url <url>          redis://user:password@host:port/db, rediss://…, host:port, or the path of a unix socket
                       (default: $REDIS_URL, or redis://127.0.0.1:6379)
  --cluster            the URL is a node of a Cluster
  --ca <file>          with rediss://: trust this authority's certificate (PEM), as for a self-signed one
  --insecure           with rediss://: trust any certificate
  --concurrency <n>    callers that each await one command after the other  (default: 100)
  --value-size <n>     bytes of a value  (default: 100)
  --keys <n>           keys that are read  (default: 1000)
  --seconds <n>        time measured for each of the three clients  (default: 5)
  --json               print the result as JSON
  --help               this text

× plain is the ratio of the two figures shown, each the median of its rounds.

A password is better given in REDIS_URL than on the command line, where other users of the machine can see it.
`;

const MAX_DATA_BYTES = 256 * 1024 * 1024;

/** @throws {UsageError} */
export function parseBenchArguments(args: readonly string[], env: NodeJS.ProcessEnv): BenchSettings | 'help' {
  const values = parse(args);
  if (values.help) return 'help';
  const settings: BenchSettings = {
    target: target(values.url ?? (env.REDIS_URL || 'redis://127.0.0.1:6379'), values.cluster, tlsCheck(values)),
    concurrency: integer('--concurrency', values.concurrency, 100_000),
    valueBytes: integer('--value-size', values['value-size'], 64 * 1024 * 1024),
    keys: integer('--keys', values.keys, 10_000_000),
    seconds: number('--seconds', values.seconds, 0.1, 3600),
    json: values.json,
  };
  if (settings.keys * settings.valueBytes > MAX_DATA_BYTES) {
    throw new UsageError(
      `--keys × --value-size must be at most ${MAX_DATA_BYTES} bytes, since all of it is written to Redis, ` +
        `got ${settings.keys * settings.valueBytes}`,
    );
  }
  return settings;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: withNegativeValues(args),
      options: {
        url: { type: 'string' },
        cluster: { type: 'boolean', default: false },
        ca: { type: 'string' },
        insecure: { type: 'boolean', default: false },
        concurrency: { type: 'string', default: '100' },
        'value-size': { type: 'string', default: '100' },
        keys: { type: 'string', default: '1000' },
        seconds: { type: 'string', default: '5' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith('ERR_PARSE_ARGS')) throw error;
    // The first sentence names the mistake. A stray argument may be a URL, with a password.
    const stray = code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL';
    throw new UsageError(stray ? 'expected options only; a URL follows --url' : (message.split(/\.\s/)[0] ?? message));
  }
}

/** `--keys -5` as `--keys=-5`: otherwise Node takes the value for an option. */
function withNegativeValues(args: readonly string[]): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const flag = joined.at(-1);
    if (/^-[\d.]/.test(arg) && flag?.startsWith('--')) joined[joined.length - 1] = `${flag}=${arg}`;
    else joined.push(arg);
  }
  return joined;
}

function tlsCheck({ ca, insecure }: { ca?: string | undefined; insecure: boolean }): TlsCheck | undefined {
  if (ca === undefined) return insecure ? { rejectUnauthorized: false } : undefined;
  if (insecure) throw new UsageError('--ca and --insecure exclude each other');
  try {
    return { ca: readFileSync(ca, 'utf8') };
  } catch (error) {
    throw new UsageError(
      `--ca must name a file that can be read, got "${ca}" (${(error as NodeJS.ErrnoException).code})`,
    );
  }
}

function target(url: string, cluster: boolean, tls: TlsCheck | undefined): Target {
  try {
    return targetOf(url, cluster, tls);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function integer(flag: string, text: string, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= max) return value;
  throw new UsageError(`${flag} must be a whole number from 1 to ${max}, got "${text}"`);
}

function number(flag: string, text: string, min: number, max: number): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${flag} must be a number from ${min} to ${max}, got "${text}"`);
}

/** The Redis that is measured. */
export interface Target {
  /** As the client takes it: a URL, or the path of a unix socket. */
  readonly url: string;
  readonly cluster: boolean;
  /** `host:port` or the path, for messages: never the user or the password. */
  readonly name: string;
  /** How the server's certificate is checked; undefined for Node's own way. */
  readonly tls: TlsCheck | undefined;
}

/** Options of a TLS connection. */
export type TlsCheck = { readonly ca: string } | { readonly rejectUnauthorized: false };

const HOST_AND_PORT = /^(?:\[[\da-f:.]+\]|[\w.-]+):\d+(?:\/\d+)?$/i;

/** @throws {Error} whose message does not repeat the address, since it may hold a password. */
export function targetOf(address: string, cluster: boolean, tls?: TlsCheck): Target {
  const target = socketTarget(address, cluster, tls) ?? urlTarget(address, cluster, tls);
  if (tls !== undefined && !speaksTls(target)) {
    throw new Error('--ca and --insecure need TLS: a URL that begins with rediss://');
  }
  return target;
}

export function speaksTls({ url }: Target): boolean {
  return url.startsWith('rediss:');
}

function socketTarget(address: string, cluster: boolean, tls: TlsCheck | undefined): Target | undefined {
  const path = address.replace(/^unix:(?:\/\/)?(?=\/)/, '');
  if (!path.startsWith('/')) return undefined;
  if (cluster) throw new Error('--cluster needs a URL with a host, not a unix socket');
  return { url: path, cluster, tls, name: path };
}

function urlTarget(address: string, cluster: boolean, tls: TlsCheck | undefined): Target {
  const url = HOST_AND_PORT.test(address) ? `redis://${address}` : address;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol) || parsed.hostname === '') {
    throw new Error(
      'the URL of Redis must look like redis://host:port, rediss://host:port, host:port or /path/of/a.sock',
    );
  }
  return { url, cluster, tls, name: `${parsed.hostname}:${parsed.port || '6379'}` };
}

/** The options of each node of a Cluster, except its address. */
export function clusterNodeOptions({ url, tls }: Target): { username?: string; password?: string; tls?: object } {
  const { username, password, protocol } = new URL(url);
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' && { tls: tls ?? {} }),
  };
}
