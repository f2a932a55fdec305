import { createRequire } from 'node:module';
import { type Span, trace } from '@opentelemetry/api';
import type { InstrumentationNodeModuleDefinition } from '@opentelemetry/instrumentation';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';

export type InstrumentationConfig = NonNullable<ConstructorParameters<typeof IORedisInstrumentation>[0]>;

const require = createRequire(import.meta.url);
const exporter = new InMemorySpanExporter();
/** Registered once for a process; contexts follow async calls by `AsyncLocalStorage`. */
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
const tracer = trace.getTracer('test');
const instrumentation = new IORedisInstrumentation({ enabled: false });
instrumentation.setTracerProvider(provider);

/**
 * Switches OpenTelemetry's instrumentation on: `sendCommand` of the prototype is wrapped from now on.
 *
 * @param packageName - it looks for `ioredis` itself; other copies have other names in this repository, where a
 *   service that has only one calls it `ioredis` too.
 */
export function instrument(packageName = 'ioredis', config: InstrumentationConfig = {}): { restore(): void } {
  instrumentation.setConfig(config);
  if (packageName === 'ioredis') {
    instrumentation.enable();
    // It patches what is loaded by this name, when it is asked for.
    require('ioredis');
    return once(() => instrumentation.disable());
  }
  const [definition] = (instrumentation as unknown as { init(): InstrumentationNodeModuleDefinition[] }).init();
  const module = require(packageName) as unknown;
  definition?.patch?.(module, '5.0.0');
  return once(() => definition?.unpatch?.(module, '5.0.0'));
}

function once(restore: () => void): { restore(): void } {
  let restored = false;
  return {
    restore() {
      if (!restored) restore();
      restored = true;
    },
  };
}

/** Runs `work` in a span of this name. */
export const inSpan = <T>(name: string, work: (span: Span) => Promise<T>): Promise<T> =>
  tracer.startActiveSpan(name, (span) => work(span).finally(() => span.end()));

/** Takes the spans that ended since the last time, those of ioredis and the ones around them. */
export function takeSpans(): { commands: ReadableSpan[]; requests: ReadableSpan[] } {
  const spans = exporter.getFinishedSpans();
  exporter.reset();
  const isCommand = (span: ReadableSpan) => span.instrumentationScope.name.includes('ioredis');
  return { commands: spans.filter(isCommand), requests: spans.filter((span) => !isCommand(span)) };
}
