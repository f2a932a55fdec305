/**
 * A service as they are: Fastify, BullMQ, reads that follow each other, writers. Run by mixed-service.soak.ts, which
 * loses its connections and its Redis: `mixed-service.ts <url> <kind>`.
 */
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { Queue, Worker } from 'bullmq';
import Fastify from 'fastify';
import type * as ioredis from 'ioredis';

/** What it answers to any message; to `end` when all that it has issued is settled, or it has waited for long. */
export interface Sample {
  readonly heapMiB: number;
  readonly requests: number;
  readonly jobs: number;
  /** Commands that were rejected: the connection was lost. */
  readonly rejected: number;
  /** Requests and jobs that were not settled yet. */
  readonly open: number;
  readonly wrong: readonly string[];
  readonly observed: number;
  readonly hits: number;
  readonly predictionsUsed: number;
}

const USERS = 500;
const REQUESTS_AT_ONCE = 3;
const PAUSE_MS = 50;
const KINDS_OF_KEY = ['profile', 'settings', 'cart', 'flags', 'plan'];
const LONGEST_END_MS = 60_000;

const [url = '', kind = ''] = process.argv.slice(2);
const require = createRequire(import.meta.url);
/** Commands that a tracer has seen. */
let observed = 0;
if (kind === 'traced') {
  const exporter = {
    async shutdown() {},
    export(spans: unknown[], exported: (result: { code: number }) => void) {
      observed += spans.length;
      exported({ code: 0 });
    },
  };
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  provider.register();
  const instrumentation = new IORedisInstrumentation({ requireParentSpan: false });
  instrumentation.setTracerProvider(provider);
  instrumentation.enable();
} else {
  diagnostics.channel('tracing:ioredis:command:start').subscribe(() => void observed++);
}
const { Redis } = require('ioredis') as typeof ioredis;
const { coalesce } = await import('ioredis-coalesce/coalesce');

const wrong: string[] = [];
let requests = 0;
let jobs = 0;
let rejected = 0;
let open = 0;

function connect(options: { autoResendUnfulfilledCommands?: false; maxRetriesPerRequest?: 0 | null }): ioredis.Redis {
  const client = new Redis(url, { retryStrategy: () => 100, ...options });
  client.on('error', () => {});
  return client;
}
const redis = coalesce(connect({}), kind === 'cached' ? { cache: { prefetch: true, maxEntries: 400 } } : {});
// What is sent again could undo a later write, which readers would take for an old value.
const writer = coalesce(connect({ autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }));
const connection = coalesce(connect({ maxRetriesPerRequest: null }));

/** Every value has its key, and a number that only grows. */
let version = 0;
const newest = new Map<string, number>();

/** Reads a key: its value has to be its own, and no older than one that was read before. */
async function read(key: string): Promise<string | null> {
  const least = newest.get(key) ?? 0;
  const value = await redis.get(key);
  if (value === null) return null;
  const [name = '', count] = value.split('=');
  if (name !== key) wrong.push(`${key} has the value ${value}`);
  if (Number(count) < least) wrong.push(`${key} has the value ${value} after ${least}`);
  newest.set(key, Math.max(newest.get(key) ?? 0, Number(count)));
  return value;
}

const app = Fastify();
app.get<{ Params: { id: string } }>('/user/:id', async ({ params: { id } }) => {
  await read(`${kind}:user:${id}`);
  const values: (string | null)[] = [];
  for (const each of KINDS_OF_KEY) values.push(await read(`${kind}:${each}:${id}`));
  return values;
});
app.get<{ Params: { id: string } }>('/together/:id', ({ params: { id } }) =>
  Promise.all(KINDS_OF_KEY.map((each) => read(`${kind}:${each}:${id}`))),
);
app.get<{ Params: { id: string } }>('/write/:id', async ({ params: { id } }) => {
  const batch = writer.pipeline();
  for (const each of ['user', ...KINDS_OF_KEY]) {
    version += 1;
    batch.set(`${kind}:${each}:${id}`, `${kind}:${each}:${id}=${version}`, 'EX', 60);
  }
  return ((await batch.exec()) ?? []).every(([error]) => error === null);
});

const queue = new Queue(kind, { connection });
const worker = new Worker(kind, async ({ data, name }) => void (data === name || wrong.push(`job ${name}: ${data}`)), {
  connection: coalesce(connect({ maxRetriesPerRequest: null })),
  concurrency: 5,
});
worker.on('completed', () => void jobs++);
queue.on('error', () => {});
worker.on('error', () => {});

async function follow(work: Promise<unknown>): Promise<void> {
  open += 1;
  await work.catch(() => void rejected++);
  open -= 1;
}

async function request(): Promise<void> {
  const id = Math.floor(Math.random() * USERS);
  const route = ['user', 'user', 'together', 'write'][Math.floor(Math.random() * 4)];
  const { statusCode } = await app.inject(`/${route}/${id}`);
  requests += 1;
  if (statusCode !== 200) rejected += 1;
}

let isEnding = false;
async function load(): Promise<void> {
  for (let turn = 0; !isEnding; turn += 1) {
    for (let count = 0; count < REQUESTS_AT_ONCE; count += 1) void follow(request());
    const name = String(turn);
    if (turn % 4 === 0) void follow(queue.add(name, name, { removeOnComplete: true, removeOnFail: true }));
    await sleep(PAUSE_MS);
  }
}

process.on('message', async (message) => {
  isEnding ||= message === 'end';
  const until = performance.now() + LONGEST_END_MS;
  while (isEnding && open > 0 && performance.now() < until) await sleep(10);
  (globalThis as { gc?: () => void }).gc?.();
  const { cache } = redis.coalescer.stats();
  process.send?.({
    ...{ requests, jobs, rejected, open, wrong, observed },
    heapMiB: process.memoryUsage().heapUsed / 2 ** 20,
    hits: cache?.hits ?? 0,
    predictionsUsed: cache?.predictionsUsed ?? 0,
  } satisfies Sample);
  if (isEnding) process.disconnect?.();
});
process.on('disconnect', () => process.exit());
await once(redis, 'ready');
await load();
