import { SpanStatusCode, trace } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Client,
  type CoalescedClient,
  type Host,
  ioredis5,
  ioredis6,
  outcomes,
  ready,
  sleep,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { everyKind } from './helpers/every-kind.js';
import { type InstrumentationConfig, inSpan, instrument, takeSpans } from './helpers/open-telemetry.js';

const prefix = uniquePrefix('otel');
const REQUESTS = 200;

let restores: (() => void)[] = [];

/** Instrumented until the running test ends. */
function traced(host: Host, config?: InstrumentationConfig): { restore(): void } {
  const instrumented = instrument(host === ioredis6 ? 'ioredis' : 'ioredis5', config);
  restores.push(instrumented.restore);
  return instrumented;
}

beforeEach(() => {
  takeSpans();
});

afterEach(() => {
  for (const restore of restores) restore();
  restores = [];
});

/** Everything of a span that does not differ from one run to the next, for comparing. */
const described = (span: ReadableSpan): object => ({
  name: span.name,
  kind: span.kind,
  attributes: span.attributes,
  status: { ...span.status, code: SpanStatusCode[span.status.code] },
  errors: span.events.map(({ name, attributes }) => [name, attributes?.['exception.message']]),
});

async function spansOf(client: Client): Promise<{ spans: object[]; results: unknown; parents: unknown[] }> {
  takeSpans();
  const results = await inSpan('request', () => outcomes(everyKind(client, `${prefix}key`)));
  const { commands, requests } = takeSpans();
  expect(requests).toHaveLength(1);
  const request = requests[0]?.spanContext().spanId;
  const parents = commands.map((span) => (span.parentSpanContext?.spanId === request ? 'the request' : 'another'));
  return { spans: commands.map(described), results, parents };
}

describe.each([ioredis6, ioredis5])('$name, traced by @opentelemetry/instrumentation-ioredis', (host) => {
  it.each([
    ['between loading this package and coalesce()', 'between'],
    ['after coalesce(), in the middle of work', 'after'],
  ])('patched %s: the spans are those of a plain client', async (_, order) => {
    const plain = await ready(host.create(redisUrl()));
    const later = await ready(host.create(redisUrl()));
    if (order === 'after') {
      await coalesce(later).echo('the reply that shows where the next one begins');
      await Promise.all([later.echo('fast'), later.echo('fast')]);
    }
    traced(host);
    const client = coalesce(later);
    await client.echo('the reply that shows where the next one begins');
    const expected = await spansOf(plain);
    const found = await spansOf(client);
    expect(expected.spans.length).toBeGreaterThan(15);
    expect(found).toEqual(expected);
    expect(new Set(found.parents)).toEqual(new Set(['the request']));
    // Pipelines and transactions are left to the host.
    const { fallbacks, fastCommands, observedCommands } = client.coalescer.stats();
    expect(fallbacks.patched).toBe(2);
    expect(observedCommands).toBeGreaterThan(10);
    expect(fastCommands - observedCommands).toBe(order === 'after' ? 2 : 0);
  });

  it(`${REQUESTS} concurrent requests: each command under its own request`, async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { schedule: 'immediate' }));
    await client.echo('fast');
    const before = client.coalescer.stats();
    expect(before.fastCommands).toBe(1);
    traced(host, { dbStatementSerializer: (name, args) => [name, ...args].join(' ') });
    const active: boolean[] = [];
    const handle = (request: number) =>
      inSpan(`request ${request}`, async (own) => {
        const isActive = () => void active.push(trace.getActiveSpan() === own);
        await client.set(`${prefix}${request}`, request);
        isActive();
        await Promise.all([client.get(`${prefix}${request}`), client.strlen(`${prefix}${request}`)]);
        isActive();
        await inSpan(`part of ${request}`, () => client.expire(`${prefix}${request}`, 9));
        isActive();
        await client.unlink(`${prefix}${request}`);
        isActive();
      });
    await Promise.all(Array.from({ length: REQUESTS }, (_, request) => handle(request)));

    const { commands, requests } = takeSpans();
    const names = new Map(requests.map((span) => [span.spanContext().spanId, span.name]));
    const tree = commands.map(
      (span) => `${names.get(span.parentSpanContext?.spanId ?? '')}: ${span.attributes['db.query.text']}`,
    );
    const expected = Array.from({ length: REQUESTS }, (_, request) => {
      const key = `${prefix}${request}`;
      return [
        `request ${request}: set ${key} ${request}`,
        `request ${request}: get ${key}`,
        `request ${request}: strlen ${key}`,
        `part of ${request}: expire ${key} 9`,
        `request ${request}: unlink ${key}`,
      ];
    }).flat();
    expect(tree.toSorted()).toEqual(expected.toSorted());
    expect(active).toEqual(Array(4 * REQUESTS).fill(true));
    const { observedCommands, batches, ...counted } = client.coalescer.stats();
    expect(observedCommands).toBe(5 * REQUESTS);
    expect(counted.commands - before.commands).toBe(5 * REQUESTS);
    // Traced or not, the commands of all requests travel together.
    expect(batches - before.batches).toBeLessThan(REQUESTS);
  });

  it('sixty commands with errors, timeouts, a reconnect and aborts have the spans of a plain client', async () => {
    traced(host);
    const proxy = await startProxy(redisUrl());
    const run = async (create: Host['create']) => {
      const client = await ready(create(proxy.url, { retryStrategy: () => 5 }));
      await client.del(`${prefix}sixty`);
      takeSpans();
      const values = await inSpan('request', async () => {
        const k = `${prefix}sixty`;
        const kinds = [
          await outcomes(everyKind(client, `${prefix}key`)),
          await outcomes(everyKind(client, `${prefix}key`)),
          await outcomes(everyKind(client, `${prefix}key`)),
        ];
        const gone = new AbortController();
        const view =
          'coalescer' in client ? (client as CoalescedClient).coalescer.withOptions({ signal: gone.signal }) : client;
        const aborted = outcomes([view.get(k), view.incr(k), view.del(k)]);
        gone.abort();
        await aborted;
        await client.echo('after them');
        const called = await new Promise((settle) => {
          client.set(k, Buffer.from([0xff]), (error, value) => settle([error, value]));
        });
        const options = client.options as { commandTimeout: number | undefined };
        proxy.stall();
        options.commandTimeout = 30;
        const late = await outcomes([client.get(k), client.getBuffer(k), client.strlen(k), client.hgetall(k)]);
        options.commandTimeout = undefined;
        proxy.resume();
        await client.echo('after them');
        const resent = outcomes([client.getBuffer(k), client.strlen(k), client.hgetall(k), client.echo('resent')]);
        await proxy.loseReplies('resent');
        return [kinds, called, late, await resent];
      });
      client.disconnect();
      const { commands, requests } = takeSpans();
      const own = commands.filter(({ name }) => !['info', 'client', 'hello'].includes(name));
      const parents = new Set(own.map((span) => span.parentSpanContext?.spanId));
      expect(parents).toEqual(new Set([requests[0]?.spanContext().spanId]));
      const timedOut = own.filter(({ status }) => status.message?.includes('timed out'));
      expect(timedOut).toHaveLength(4);
      for (const { duration } of timedOut) expect(duration[0] * 1_000 + duration[1] / 1_000_000).toBeGreaterThan(25);
      // How spans of fast commands and others alternate depends on where chunks of replies end.
      return { values, spans: own.map((span) => JSON.stringify(described(span))).sort() };
    };
    const plain = await run(host.create);
    expect(plain.spans.length).toBeGreaterThanOrEqual(60);
    expect(await run(host.createCoalesced)).toEqual(plain);
  });

  it('a span lasts until its own reply', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.createCoalesced(proxy.url));
    traced(host);
    proxy.stall();
    const replies = inSpan('request', () => Promise.all([client.echo('a'), client.echo('b'), client.time()]));
    await sleep(60);
    expect(takeSpans().commands).toEqual([]);
    proxy.resume();
    await replies;
    const { commands } = takeSpans();
    expect(commands.map(({ name }) => name)).toEqual(['echo', 'echo', 'time']);
    for (const { duration } of commands) expect(duration[0] * 1_000 + duration[1] / 1_000_000).toBeGreaterThan(50);
  });

  it('a lost connection ends the spans with the error', async () => {
    const lose = async (create: Host['create']) => {
      const proxy = await startProxy(redisUrl());
      const client = await ready(create(proxy.url, { retryStrategy: () => null }));
      takeSpans();
      proxy.stall();
      const replies = inSpan('request', () => outcomes([client.get(prefix), client.echo('b')]));
      await sleep(20);
      proxy.reset();
      await replies;
      const { commands } = takeSpans();
      return commands.map((span) => ({ ...described(span), attributes: span.attributes['db.query.text'] }));
    };
    traced(host);
    const spans = await lose(host.create);
    expect(spans).toHaveLength(2);
    expect(spans[0]).toMatchObject({ status: { code: 'ERROR', message: 'Connection is closed.' } });
    expect(await lose(host.createCoalesced)).toEqual(spans);
  });

  it('commands are fast again when it is switched off, and traced again when it is switched on', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const unwatched = () => client.coalescer.stats().fastCommands - client.coalescer.stats().observedCommands;
    const fastOf = async (count: number) => {
      const before = unwatched();
      await inSpan('request', () => Promise.all(Array.from({ length: count }, () => client.echo('a'))));
      return unwatched() - before;
    };
    await client.echo('decoded by the host');
    for (const _ of ['once', 'and again']) {
      expect(await fastOf(10)).toBe(10);
      const inFlight = fastOf(4);
      const tracing = traced(host);
      try {
        await inFlight;
        takeSpans();
        expect(await fastOf(10)).toBe(0);
        expect(takeSpans().commands).toHaveLength(10);
      } finally {
        tracing.restore();
      }
      expect(await fastOf(10)).toBe(10);
      expect(takeSpans().commands).toEqual([]);
    }
  });

  it('makes no spans without a parent, unless configured; hooks see the same as with a plain client', async () => {
    const hooks: unknown[] = [];
    const run = async (client: Client) => {
      takeSpans();
      hooks.length = 0;
      await outcomes([client.echo('a'), client.echoBuffer('b'), client.incr(`${prefix}n`), client.del(`${prefix}n`)]);
      return { hooks: structuredClone(hooks), spans: takeSpans().commands.map(described) };
    };
    const client = await ready(host.createCoalesced(redisUrl()));
    const first = traced(host);
    expect((await run(client)).spans).toEqual([]);
    first.restore();
    traced(host, {
      requireParentSpan: false,
      requestHook: (_, { cmdName, cmdArgs }) => void hooks.push(['request', cmdName, cmdArgs]),
      responseHook: (_, name, args, reply) => void hooks.push(['response', name, args, reply]),
    });
    const plain = await run(await ready(host.create(redisUrl())));
    expect(plain.spans).toHaveLength(4);
    expect(plain.hooks).toHaveLength(8);
    expect(await run(client)).toEqual(plain);
  });
});

it('a command that is sent again after a reconnect stays under its own request', async () => {
  const proxy = await startProxy(redisUrl());
  const client: CoalescedClient = await ready(ioredis6.createCoalesced(proxy.url, { retryStrategy: () => 5 }));
  traced(ioredis6);
  proxy.stall();
  const replies = inSpan('request', () => Promise.all([client.echo('a'), client.echo('b')]));
  await until(() => proxy.received().includes('echo'), 'the commands to be on the wire');
  await sleep(10);
  proxy.reset();
  proxy.resume();
  expect(await replies).toEqual(['a', 'b']);
  const { commands, requests } = takeSpans();
  const parents = commands.filter(({ name }) => name === 'echo').map((span) => span.parentSpanContext?.spanId);
  expect(parents).toEqual([requests[0], requests[0]].map((span) => span?.spanContext().spanId));
});
