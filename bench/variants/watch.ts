import { subscribe } from 'node:diagnostics_channel';
import { createRequire } from 'node:module';
import type { Redis } from 'ioredis';
import { type BenchClient, type OpenVariant, VARIANTS, type VariantId } from './clients.js';
import type { ClientOptions } from './protocol.js';

type WatchClient = (client: BenchClient) => Promise<void>;

const SCRAPE_EVERY_MS = 100;

function noop(): void {}

export async function openVariant(variant: VariantId, url: string, options: ClientOptions): Promise<OpenVariant> {
  const watching = await watchVariant(variant);
  const open = await VARIANTS[variant][1](url, options);
  await watching(open.client);
  return open;
}

/**
 * Watches this process as the variant says: some of it before the client's library is loaded, the rest with a client.
 */
async function watchVariant(variant: VariantId): Promise<WatchClient> {
  if (variant.endsWith('-otel')) await traceCommands();
  if (variant === 'coalesced-batch-channel') {
    const { CHANNELS } = await import('ioredis-coalesce');
    for (const event of ['start', 'end']) subscribe(`tracing:${CHANNELS.BATCH}:${event}`, noop);
  }
  return variant === 'coalesced-prometheus' ? collect : async () => {};
}

async function collect(client: BenchClient): Promise<void> {
  const { collectMetrics } = await import('ioredis-coalesce/prometheus');
  const { Registry } = await import('prom-client');
  const register = new Registry();
  collectMetrics(client as unknown as Redis & Parameters<typeof collectMetrics>[0], { register });
  client.scrape = () => register.metrics();
  setInterval(() => void register.metrics(), SCRAPE_EVERY_MS).unref();
}

/** One span for each command, which is processed in batches, as in production, and exported to nowhere. */
async function traceCommands(): Promise<void> {
  const { BatchSpanProcessor, NodeTracerProvider } = await import('@opentelemetry/sdk-trace-node');
  const { IORedisInstrumentation } = await import('@opentelemetry/instrumentation-ioredis');
  const exporter = {
    export: (_: unknown, done: (result: { code: number }) => void) => done({ code: 0 }),
    shutdown: async () => {},
  };
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
  provider.register();
  const instrumentation = new IORedisInstrumentation({ requireParentSpan: false, enabled: false });
  instrumentation.setTracerProvider(provider);
  instrumentation.enable();
  // It patches what is loaded by this name, when it is required.
  createRequire(import.meta.url)('ioredis');
}
