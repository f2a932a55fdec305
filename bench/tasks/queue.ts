/** A list as a queue: many sources that each await their own RPUSH, and a consumer that takes a batch in one tick. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ioredisOf } from '../variants/operations.js';
import type { Measurements } from '../variants/protocol.js';
import { loopsFor, Stopwatch } from '../variants/timing.js';
import { type TaskContext, withClients } from './context.js';

const IDLE_WAIT_SECONDS = 0.2;
const FILL_STEP = 1000;

/** Takes a batch; if there is nothing, the last of its commands waits for `wait` seconds. */
type Take = (batch: number, wait: number) => Promise<string[]>;

/** `sources` for each of the connections send messages of `bytes`. */
export function produce(
  context: TaskContext,
  { connections, sources, bytes, seconds }: { connections: number; sources: number; bytes: number; seconds: number },
): Promise<Measurements> {
  const list = `${context.prefix}queue`;
  const message = 'x'.repeat(bytes);
  return withClients(context, connections, async (all) => {
    const clients = all.map(ioredisOf);
    const watch = new Stopwatch();
    const sent = await loopsFor(sources * connections, seconds, (source) =>
      clients[source % connections]!.rpush(list, message),
    );
    const figures = watch.figures(sent);
    const kept = await clients[0]!.llen(list);
    if (kept !== sent) throw new Error(`expected ${sent} messages in the queue, it holds ${kept}`);
    await clients[0]!.unlink(list);
    return figures;
  });
}

/** Takes `messages` of `bytes` in batches of `batch`; `reliable` removes each once it is done with, and loses nothing. */
export async function consume(
  { client, prefix }: TaskContext,
  { messages, bytes, batch, reliable }: { messages: number; bytes: number; batch: number; reliable: boolean },
): Promise<Measurements> {
  const redis = ioredisOf(client);
  const queue = queueOf(redis, prefix, reliable);
  await redis.unlink(queue.list);
  for (let first = 0; first < messages; first += FILL_STEP) {
    const step = Array.from({ length: Math.min(FILL_STEP, messages - first) }, (_, index) => first + index);
    await redis.rpush(queue.list, ...step.map((number) => `${number}`.padEnd(bytes, 'x')));
  }
  const watch = new Stopwatch();
  let taken = 0;
  while (taken < messages) {
    const got = await queue.take(batch, 1);
    if (reliable) await Promise.all(got.map(queue.done));
    taken += got.length;
  }
  return watch.figures(taken);
}

/** What a consumer sends while the queue is empty, with a final BLPOP or without. */
export async function idleConsumer(
  { client, prefix }: TaskContext,
  { batch, seconds, waits }: { batch: number; seconds: number; waits: boolean },
): Promise<Measurements> {
  const redis = ioredisOf(client);
  const list = `${prefix}no-queue`;
  const watch = new Stopwatch();
  const batches = await loopsFor(1, seconds, () =>
    waits
      ? popFrom(redis, list)(batch, IDLE_WAIT_SECONDS)
      : Promise.all(Array.from({ length: batch }, () => redis.lpop(list))),
  );
  return watch.figures(batches * batch);
}

/**
 * A consumer as it might be killed: takes batches, handles message by message (`handlingMs` and a SADD to `done`), and
 * ends when the queue is empty. With `reliable`, what an earlier one left half done is put back first.
 */
export async function work(
  { client, prefix }: TaskContext,
  { reliable, batch, handlingMs }: { reliable: boolean; batch: number; handlingMs: number },
): Promise<Measurements> {
  const redis = ioredisOf(client);
  const queue = queueOf(redis, prefix, reliable);
  let recovered = 0;
  while (reliable && (await redis.lmove(queue.processing, queue.list, 'RIGHT', 'LEFT')) !== null) recovered += 1;
  let handled = 0;
  for (;;) {
    const got = await queue.take(batch, IDLE_WAIT_SECONDS);
    if (got.length === 0) return { handled, recovered };
    for (const message of got) {
      if (handlingMs > 0) await sleep(handlingMs);
      await redis.sadd(`${prefix}done`, message);
      await queue.done(message);
      handled += 1;
    }
  }
}

/** The reliable consumer: LMOVE to a list of its own, and LREM from it once a message is done with. */
function queueOf(redis: Redis, prefix: string, reliable: boolean) {
  const list = `${prefix}queue`;
  const processing = `${prefix}processing`;
  return {
    list,
    processing,
    take: reliable
      ? taking(
          () => redis.lmove(list, processing, 'LEFT', 'RIGHT'),
          (wait) => redis.blmove(list, processing, 'LEFT', 'RIGHT', wait),
        )
      : popFrom(redis, list),
    done: async (message: string) => {
      if (reliable) await redis.lrem(processing, 1, message);
    },
  };
}

function popFrom(redis: Redis, list: string): Take {
  return taking(
    () => redis.lpop(list),
    (wait) => redis.blpop(list, wait).then((popped) => popped?.[1]),
  );
}

/** A batch in one tick: its last command is the one that waits. */
function taking(one: () => Promise<string | null>, last: (wait: number) => Promise<string | null | undefined>): Take {
  return async (batch, wait) => {
    const takes = Array.from({ length: batch - 1 }, one);
    return (await Promise.all([...takes, last(wait)])).filter((message) => typeof message === 'string');
  };
}
