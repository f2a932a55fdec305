import { parseArgs } from 'node:util';

/** Why a command cannot do its work; the message is one line for the user. */
export class CliError extends Error {
  exitCode = 1;
}

export function usageError(problem: string): CliError {
  return Object.assign(new CliError(`${problem} (see ioredis-coalesce --help)`), { exitCode: 2 });
}

export const HELP = `Usage: ioredis-coalesce bench [options]

What would I gain on my Redis? Measures GETs with a plain client, with ioredis's auto-pipelining, with a corked and with
a coalesced client, in turns: the client alone, and what Redis uses meanwhile. It reads and writes keys under one random prefix, with
an expiry, and removes them at the end and on Ctrl-C.

Options:
  --url <url>          redis://user:password@host:port/db, rediss://…, host:port, or the path of a unix socket
                       (default: $REDIS_URL, or redis://127.0.0.1:6379)
  --cluster            the URL is a node of a Cluster
  --concurrency <n>    callers that each await one command after the other  (default: 100)
  --value-size <n>     bytes of a value  (default: 100)
  --keys <n>           keys that are read  (default: 1000)
  --seconds <n>        time measured for each of the four clients  (default: 5)
  --fuse               the coalesced client has the option fuseReads
  --json               print the result as JSON
  --help               this text; ioredis-coalesce --version prints the version

A password is better given in REDIS_URL, where other users of the machine do not see it. An authority of your own is
trusted with NODE_EXTRA_CA_CERTS=<file>.
`;

const MAX_DATA_BYTES = 256 * 1024 * 1024;
export type BenchSettings = Exclude<ReturnType<typeof parseBenchArguments>, 'help'>;
/** The Redis that is measured: its URL for the client, and a name without user and password, for messages. */
export type Target = ReturnType<typeof targetOf>;

/** @throws {CliError} whose message never repeats the address, since it may hold a password. */
export function parseBenchArguments(args: readonly string[], env: NodeJS.ProcessEnv) {
  const values = parse([...args]);
  if (values.help) return 'help';
  const settings = {
    target: targetOf(values.url ?? (env.REDIS_URL || 'redis://127.0.0.1:6379'), values.cluster),
    concurrency: inRange('--concurrency', values.concurrency, 1, 100_000),
    valueBytes: inRange('--value-size', values['value-size'], 1, 64 * 1024 * 1024),
    keys: inRange('--keys', values.keys, 1, 10_000_000),
    /** Measured per variant, over all rounds. */
    seconds: inRange('--seconds', values.seconds, 0.1, 3600),
    fuse: values.fuse,
    json: values.json,
  };
  const bytes = settings.keys * settings.valueBytes;
  if (bytes <= MAX_DATA_BYTES) return settings;
  throw usageError(`--keys × --value-size must be at most ${MAX_DATA_BYTES} bytes, which are written, got ${bytes}`);
}

const OPTIONS = {
  url: { type: 'string' },
  cluster: { type: 'boolean', default: false },
  concurrency: { type: 'string', default: '100' },
  'value-size': { type: 'string', default: '100' },
  keys: { type: 'string', default: '1000' },
  seconds: { type: 'string', default: '5' },
  fuse: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h' },
} as const;

function parse(args: string[]) {
  try {
    return parseArgs({ args: args.flatMap(joinNegative), options: OPTIONS }).values;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith('ERR_PARSE_ARGS')) throw error;
    // The first sentence names the mistake. A stray argument may be a URL, with a password.
    const stray = code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL';
    throw usageError(stray ? 'expected options only; a URL follows --url' : (message.split(/\.\s/)[0] ?? message));
  }
}

/** `--keys -5` as `--keys=-5`: Node takes the number for an option. */
function joinNegative(arg: string, index: number, args: readonly string[]): string[] {
  const isNegative = (text = '') => /^-\.?\d/.test(text);
  if (isNegative(arg)) return args[index - 1]?.startsWith('--') ? [] : [arg];
  return [arg.startsWith('--') && isNegative(args[index + 1]) ? `${arg}=${args[index + 1]}` : arg];
}

/** Parses an option's number: a whole number, unless it may be less than 1. */
function inRange(name: string, text: string, min: number, max: number): number {
  const [form, kind] = min < 1 ? [/^\d*\.?\d+$/, 'number'] : [/^\d+$/, 'whole number'];
  const value = form.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw usageError(`${name} must be a ${kind} from ${min} to ${max}, got "${text}"`);
}

function targetOf(address: string, cluster: boolean) {
  const isPath = address.startsWith('/');
  if (isPath && cluster) throw usageError('--cluster needs a URL with a host, not a unix socket');
  if (isPath) return { url: address, cluster, tls: false, name: address };
  const isHostAndPort = /^(?:\[[\da-f:.]+\]|[\w.-]+):\d+(?:\/\d+)?$/i.test(address);
  const url = isHostAndPort ? `redis://${address}` : address;
  const { protocol = '', hostname = '', port = '' } = URL.canParse(url) ? new URL(url) : {};
  if (/^rediss?:$/.test(protocol) && hostname !== '') {
    return { url, cluster, tls: protocol === 'rediss:', name: `${hostname}:${port || '6379'}` };
  }
  throw usageError('the URL of Redis must look like redis://host:port, rediss://host:port, host:port or /path.sock');
}
