// `node --require` or `--import` this with APM set: starts that agent, which tells nobody, and shows what it has seen.
const { APM } = process.env;
/** Nobody listens there. */
const NOBODY = 'http://127.0.0.1:9';

/**
 * Each starts an agent. `within` runs a request under a span of the agent's; `spans` are those of finished requests, of
 * which Datadog prints its own.
 */
const AGENTS = {
  'open-telemetry'() {
    const { trace } = require('@opentelemetry/api');
    const { getNodeAutoInstrumentations } = require('@opentelemetry/auto-instrumentations-node');
    const { NodeSDK } = require('@opentelemetry/sdk-node');
    const { InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base');
    const exporter = new InMemorySpanExporter();
    const spanProcessors = [new SimpleSpanProcessor(exporter)];
    new NodeSDK({ spanProcessors, instrumentations: [getNodeAutoInstrumentations()] }).start();
    return {
      within: (name, run) =>
        trace.getTracer('application').startActiveSpan(name, async (span) => {
          await run();
          span.end();
        }),
      spans: () =>
        exporter.getFinishedSpans().map((span) => ({
          id: span.spanContext().spanId,
          parent: span.parentSpanContext?.spanId ?? span.parentSpanId,
          name: span.name,
          error: span.status.message,
        })),
      forget: () => exporter.reset(),
    };
  },

  'dd-trace'() {
    const tracer = require('dd-trace').init();
    return { within: (name, run) => tracer.trace('request', { resource: name }, run), spans: () => [], forget() {} };
  },

  sentry() {
    const Sentry = require('@sentry/node');
    let spans = [];
    Sentry.init({
      dsn: NOBODY.replace('//', '//key@').concat('/1'),
      tracesSampleRate: 1,
      traceLifecycle: 'static',
      transport: () => ({ send: async () => ({}), flush: async () => true }),
      beforeSendTransaction({ transaction, contexts, spans: children = [] }) {
        spans.push({ id: contexts.trace.span_id, name: transaction });
        for (const { span_id: id, parent_span_id: parent, description: name, status } of children)
          spans.push({ id, parent, name, error: status === 'ok' ? undefined : status });
        return null;
      },
    });
    return {
      within: (name, run) => Sentry.startSpan({ name, op: 'request' }, run),
      spans: async () => {
        await Sentry.flush(2_000);
        return spans;
      },
      forget: () => {
        spans = [];
      },
    };
  },

  newrelic() {
    const newrelic = require('newrelic');
    let spans = [];
    newrelic.agent.on('transactionFinished', ({ name, trace }) => {
      const add = (segment, parent) => {
        // The transaction stands at the root, and once more below it.
        const isRequest = parent === undefined || segment.name === name;
        spans.push({ id: segment.id, parent, name: isRequest ? name.split('/').pop() : segment.name });
        for (const child of trace.getChildren(segment.id)) add(child, segment.id);
      };
      add(trace.root);
    });
    return {
      within: (name, run) => newrelic.startBackgroundTransaction(name, run),
      spans: () => spans,
      forget: () => {
        spans = [];
      },
    };
  },

  elastic() {
    let spans = [];
    const ignore = (_, done) => done?.();
    const keep = (span, done) => {
      const { id, parent_id: parent, name, outcome } = span;
      spans.push({ id, parent, name, error: outcome === 'failure' ? outcome : undefined });
      done?.();
    };
    const transport = { sendSpan: keep, sendTransaction: keep, sendError: ignore, sendMetricSet: ignore };
    const apm = require('elastic-apm-node').start({
      serverUrl: NOBODY,
      transport: () => ({
        ...transport,
        config() {},
        addMetadataFilter() {},
        lambdaStart() {},
        flush: ignore,
        destroy() {},
        supportsKeepingLambdaTransaction: () => false,
      }),
      transactionMaxSpans: -1,
      spanCompressionEnabled: false,
      centralConfig: false,
      cloudProvider: 'none',
      metricsInterval: '0s',
      logLevel: 'off',
    });
    return {
      within: async (name, run) => {
        const transaction = apm.startTransaction(name);
        await run();
        transaction.end();
      },
      spans: () => spans,
      forget: () => {
        spans = [];
      },
    };
  },
};

globalThis.apm = AGENTS[APM]();
