// Run as `traced-program.ts <tracer>` by traced-program.test.ts, in its own process: the tracer is loaded first.
import { createRequire } from 'node:module';
import type { tracer as DatadogTracer } from 'dd-trace';
import type { Redis } from 'ioredis';
import { FaultyProxy } from '../../helpers/proxy.js';
import { everyKind } from '../helpers/every-kind.js';

const require = createRequire(import.meta.url);
const url = process.env.TEST_URL as string;
const k = `${process.env.TEST_PREFIX}key`;

type InSpan = (name: string, work: () => Promise<unknown>) => Promise<unknown>;

/** Loads a tracer as its manual says. Each prints what it exports: Datadog itself, the other one here. */
const tracers: Record<string, () => InSpan> = {
  'dd-trace': () => {
    const tracer = require('dd-trace') as typeof DatadogTracer;
    tracer.init({ startupLogs: false });
    return (name, work) => tracer.trace(name, work);
  },
  sentry: () => {
    const sentry = require('@sentry/node') as typeof import('@sentry/node');
    sentry.init({
      dsn: 'http://key@127.0.0.1:9/1',
      tracesSampleRate: 1,
      traceLifecycle: 'static',
      transport: () => ({ send: () => Promise.resolve({}), flush: () => Promise.resolve(true) }),
      beforeSendTransaction: ({ transaction, contexts, spans }) => {
        console.log(JSON.stringify({ transaction, root: contexts?.trace?.span_id, spans }));
        return null;
      },
    });
    process.on('exit', () => void sentry.flush());
    return (name, work) => sentry.startSpan({ name }, work);
  },
};

async function sixty(client: Redis, proxy: FaultyProxy): Promise<void> {
  for (let round = 0; round < 3; round += 1) await Promise.allSettled(everyKind(client, k));
  const gone = new AbortController();
  const view =
    'coalescer' in client
      ? (client as import('ioredis-coalesce').Redis).coalescer.withOptions({ signal: gone.signal })
      : client;
  const aborted = Promise.allSettled([view.get(k), view.incr(k), view.del(k)]);
  gone.abort();
  await aborted;
  await client.echo('after them');
  await new Promise<void>((settle) => void client.set(k, Buffer.from([0xff]), () => settle()));
  const options = client.options as { commandTimeout: number | undefined };
  proxy.stall();
  options.commandTimeout = 30;
  await Promise.allSettled([client.get(k), client.getBuffer(k), client.strlen(k), client.hgetall(k)]);
  options.commandTimeout = undefined;
  proxy.resume();
  await client.echo('after them');
  const resent = Promise.allSettled([client.getBuffer(k), client.strlen(k), client.hgetall(k), client.echo('resent')]);
  await proxy.loseReplies('resent');
  await resent;
}

const inSpan = tracers[process.argv[2] ?? '']?.();
if (inSpan === undefined) throw new Error(`expected one of ${Object.keys(tracers)}, got ${process.argv[2]}`);
const { Redis: Plain } = require('ioredis') as typeof import('ioredis');
const { Redis: Coalesced } = require('../../../src/index.ts') as typeof import('ioredis-coalesce');
const proxy = new FaultyProxy(Number(new URL(url).port));
await proxy.listen();
for (const [name, Class] of Object.entries({ plain: Plain, coalesced: Coalesced })) {
  const client: Redis = new (Class as typeof Plain)(proxy.url, { retryStrategy: () => 5 });
  await new Promise<void>((resolve) => void client.once('ready', resolve));
  await inSpan(name, () => sixty(client, proxy));
  if ('coalescer' in client) {
    const { observedCommands } = (client as import('ioredis-coalesce').Redis).coalescer.stats();
    console.log(JSON.stringify({ observedCommands }));
  }
  client.disconnect();
}
await proxy.close();
setTimeout(() => process.exit(0), 500);
