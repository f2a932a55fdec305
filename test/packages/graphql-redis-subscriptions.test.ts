import { once } from 'node:events';
import { buildSchema, type ExecutionResult, parse, subscribe } from 'graphql';
import { type PubSubRedisOptions, RedisPubSub } from 'graphql-redis-subscriptions';
import { Redis } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Client, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { CLIENT_KINDS, type ClientKind, expectTookPart } from './helpers/clients.js';

const EVENTS = 50;
const schema = buildSchema(`
  type Message { id: Int!, text: String! }
  type Query { none: Int }
  type Subscription { message(room: String!): Message! }
`);

describe.each(CLIENT_KINDS)('graphql-redis-subscriptions with $name', (kind) => {
  it('delivers published messages to a GraphQL subscription, in order', async () => {
    const { pubsub, publisher } = await connect(kind);
    const prefix = uniquePrefix('graphql');
    const rootValue = {
      message: ({ room }: { room: string }) => pubsub.asyncIterableIterator<unknown>(`${prefix}${room}`) as unknown,
    };
    const document = parse('subscription { message(room: "blue") { id text } }');
    const results = (await subscribe({ schema, document, rootValue })) as AsyncGenerator<ExecutionResult>;
    const first = results.next();
    await pubsub.subscribe(`${prefix}ready`, () => {});

    const messages = Array.from({ length: EVENTS }, (_, id) => ({ id, text: `message ${id} ☕` }));
    await Promise.all([
      pubsub.publish(`${prefix}red`, { message: { id: -1, text: 'to another room' } }),
      ...messages.map((message) => pubsub.publish(`${prefix}blue`, { message })),
    ]);
    const received = [(await first).value];
    while (received.length < EVENTS) received.push((await results.next()).value);
    await results.return(undefined);
    expect(received).toEqual(messages.map((message) => ({ data: { message } })));
    expectTookPart(kind, publisher, { batched: true, fast: true });
  });

  it('delivers by pattern, until unsubscribed', async () => {
    const { pubsub, publisher } = await connect(kind);
    const prefix = uniquePrefix('graphql');
    const received: unknown[] = [];
    const fence: unknown[] = [];
    const id = await pubsub.subscribe(`${prefix}room:*`, (message) => received.push(message), { pattern: true });
    const iterator = pubsub.asyncIterator<string>(`${prefix}fence`);
    const crossed = async (name: string) => {
      const next = iterator.next();
      await pubsub.subscribe(`${prefix}${name}`, () => {});
      await pubsub.publish(`${prefix}fence`, name);
      fence.push((await next).value);
    };
    await Promise.all([
      pubsub.publish(`${prefix}room:blue`, { room: 'blue' }),
      pubsub.publish(`${prefix}room:red`, { room: 'red' }),
      pubsub.publish(`${prefix}hall`, { room: 'none' }),
    ]);
    await crossed('first');
    pubsub.unsubscribe(id);
    await crossed('second');
    await pubsub.publish(`${prefix}room:blue`, { room: 'too late' });
    await crossed('third');
    expect(received).toEqual([{ room: 'blue' }, { room: 'red' }]);
    expect(fence).toEqual(['first', 'second', 'third']);
    expectTookPart(kind, publisher, { batched: true, fast: true });
  });
});

it('takes the clients that graphql-redis-subscriptions made of its own copy of ioredis', async () => {
  const pubsub = new RedisPubSub({ connection: redisUrl() });
  onTestFinished(async () => {
    await pubsub.close();
  });
  const publisher = coalesce(pubsub.getPublisher());
  const subscriber = coalesce(pubsub.getSubscriber());
  // What is sent before goes through the host's offline queue, or out with the handshake, and is not counted.
  for (const client of [publisher, subscriber]) if (client.status !== 'ready') await once(client, 'ready');
  expect(publisher).not.toBeInstanceOf(Redis);
  const channel = `${uniquePrefix('graphql')}channel`;
  const received: unknown[] = [];
  await new Promise<void>((resolve) => {
    void pubsub
      .subscribe(channel, (message) => {
        received.push(message);
        if (received.length === EVENTS) resolve();
      })
      .then(() => Promise.all(Array.from({ length: EVENTS }, (_, id) => pubsub.publish(channel, { id }))));
  });
  expect(received).toEqual(Array.from({ length: EVENTS }, (_, id) => ({ id })));
  expect(publisher.coalescer.stats().fastCommands).toBeGreaterThan(0);
  expect(subscriber.coalescer.stats().commands).toBeGreaterThan(0);
});

async function connect(kind: ClientKind): Promise<{ pubsub: RedisPubSub; publisher: Client }> {
  const publisher = await ready(kind.create());
  const subscriber = await ready(kind.create());
  // Its types are those of the copy of ioredis that it brings, an older one.
  const pubsub = new RedisPubSub({ publisher, subscriber } as unknown as PubSubRedisOptions);
  onTestFinished(async () => {
    await pubsub.close();
  });
  return { pubsub, publisher };
}
