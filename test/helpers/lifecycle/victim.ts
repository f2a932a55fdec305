/**
 * A process with one client after another, each attacked by a malicious server. Its command line names them. It prints
 * what became of each, a line of JSON in the end.
 */
import { Redis as Redis6 } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { Redis as Valkey } from 'iovalkey';
import { coalesce } from '../../../src/coalesce.js';

export interface Orders {
  readonly host: 'ioredis 6' | 'ioredis 5' | 'iovalkey';
  readonly kind: 'plain' | 'coalesced';
  /** Attackers by the name of their attack. */
  readonly urls: Readonly<Record<string, string>>;
}

export interface Fate {
  /** What each command came to. */
  readonly replies: readonly string[];
  /** The kinds of errors that were emitted, and how many of each. */
  readonly errors: Readonly<Record<string, number>>;
  /** The kinds of exceptions that nobody could catch; how many depends on how the attack shares packets. */
  readonly uncaught: readonly string[];
  /** The most memory held at a time over what was held before, heap and buffers without garbage, in MiB. */
  readonly peak: number;
}

const CLASSES = { 'ioredis 6': Redis6, 'ioredis 5': Redis5 as unknown as typeof Redis6, iovalkey: Valkey as never };
const OPEN_FOR = 200;

const uncaught = new Set<string>();
process.on('uncaughtException', (error) => uncaught.add(brief(error)));

/** How often garbage is collected and the rest measured, in milliseconds. */
const SAMPLE_EVERY = 20;

const held = (): number => {
  (globalThis as { gc?(): void }).gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

function brief(error: Error): string {
  return `${error.name}: ${error.message.slice(0, 60)}`;
}

async function suffer({ host, kind }: Orders, url: string): Promise<Fate> {
  uncaught.clear();
  const errors: Record<string, number> = {};
  const options = { retryStrategy: () => null };
  const client = new (CLASSES[host] as typeof Redis6)(url, options);
  client.on('error', (error: Error) => {
    errors[brief(error)] = (errors[brief(error)] ?? 0) + 1;
  });
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()));
  if (kind === 'coalesced') coalesce(client);
  await new Promise<void>((resolve) => client.once('ready', () => resolve()));
  const before = held();
  let most = before;
  const sampler = setInterval(() => {
    most = Math.max(most, held());
  }, SAMPLE_EVERY);

  const replies = ['open', 'open', 'open'];
  [client.get('fast'), client.call('GET', 'cold'), client.get('behind')].forEach((reply, index) => {
    reply.then(
      (value) => {
        replies[index] = typeof value === 'string' ? `string of ${value.length}` : typeof value;
      },
      (error: Error) => {
        replies[index] = brief(error);
      },
    );
  });
  await ended;
  await new Promise((resolve) => setTimeout(resolve, replies.includes('open') ? OPEN_FOR : 0));
  most = Math.max(most, held());
  clearInterval(sampler);
  return { replies, errors, uncaught: [...uncaught], peak: Math.round((most - before) / 2 ** 20) };
}

const orders = JSON.parse(process.argv[2] ?? '') as Orders;
const fates: Record<string, Fate> = {};
for (const [attack, url] of Object.entries(orders.urls)) fates[attack] = await suffer(orders, url);
process.stdout.write(`${JSON.stringify(fates)}\n`, () => process.exit(0));
