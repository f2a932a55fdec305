/** A list as a queue: many sources that each await their own RPUSH, and a consumer that takes a batch in one tick. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ioredisOf } from '../variants/operations.js';
import type { Measurements } from '../variants/protocol.js';
import { loopsFor, numberOption, Stopwatch, type TaskContext, textOption } from './context.js';

const IDLE_WAIT_SECONDS = 0.2;
const FILL_STEP = 1000;

/** Options: `connections`, `sources` for each of them, `bytes` of a message, `seconds`. */
export async function produce(context: TaskContext): Promise<Measurements> {
  const list = `${context.prefix}queue`;
  const message = 'x'.repeat(numberOption(context, 'bytes'));
  const more = await Promise.all(
    Array.from({ length: numberOption(context, 'connections') - 1 }, () => context.open()),
  );
  const clients = [context.client, ...more.map(({ client }) => client)].map(ioredisOf);
  const sources = numberOption(context, 'sources');
  const watch = new Stopwatch();
  const sent = await loopsFor(sources * clients.length, numberOption(context, 'seconds'), (source) =>
    (clients[source % clients.length] as Redis).rpush(list, message),
  );
  const figures = watch.figures(sent);
  const kept = await ioredisOf(context.client).llen(list);
  if (kept !== sent) throw new Error(`expected ${sent} messages in the queue, it holds ${kept}`);
  await ioredisOf(context.client).unlink(list);
  for (const { close } of more) close();
  return figures;
}

/** Takes `messages` of `bytes` in batches of `batch`: so many LPOPs but one, and a BLPOP that waits if there is none. */
export async function consume(context: TaskContext): Promise<Measurements> {
  const redis = ioredisOf(context.client);
  const list = `${context.prefix}queue`;
  const messages = await fill(context, list);
  const batch = numberOption(context, 'batch');
  const watch = new Stopwatch();
  let taken = 0;
  while (taken < messages) taken += (await takeBatch(redis, list, batch, 1)).length;
  return watch.figures(taken);
}

/** The same, losing nothing: LMOVE to a list of its own, and LREM from it once the message is done with. */
export async function consumeReliably(context: TaskContext): Promise<Measurements> {
  const redis = ioredisOf(context.client);
  const list = `${context.prefix}queue`;
  const processing = `${context.prefix}processing`;
  const messages = await fill(context, list);
  const batch = numberOption(context, 'batch');
  const watch = new Stopwatch();
  let taken = 0;
  while (taken < messages) {
    const got = await moveBatch(redis, list, processing, batch, 1);
    await Promise.all(got.map((message) => redis.lrem(processing, 1, message)));
    taken += got.length;
  }
  return watch.figures(taken);
}

/** What a consumer sends while the queue is empty. Options: `batch`, `seconds`, and `wait`: with the final BLPOP or not. */
export async function idleConsumer(context: TaskContext): Promise<Measurements> {
  const redis = ioredisOf(context.client);
  const list = `${context.prefix}no-queue`;
  const batch = numberOption(context, 'batch');
  const until = performance.now() + numberOption(context, 'seconds') * 1000;
  const watch = new Stopwatch();
  let commands = 0;
  while (performance.now() < until) {
    if (textOption(context, 'wait') === 'BLPOP') await takeBatch(redis, list, batch, IDLE_WAIT_SECONDS);
    else await Promise.all(Array.from({ length: batch }, () => redis.lpop(list)));
    commands += batch;
  }
  return watch.figures(commands);
}

/**
 * A consumer as it might be killed: takes batches, handles message by message (`handlingMs` and a SADD to `done`), and
 * ends when the queue is empty. With `reliable`, what an earlier one left half done is put back first.
 */
export async function work(context: TaskContext): Promise<Measurements> {
  const redis = ioredisOf(context.client);
  const [list, processing, done] = ['queue', 'processing', 'done'].map((name) => context.prefix + name) as [
    string,
    string,
    string,
  ];
  const reliable = textOption(context, 'consumer') === 'reliable';
  const batch = numberOption(context, 'batch');
  const handlingMs = numberOption(context, 'handlingMs');
  let recovered = 0;
  if (reliable) while ((await redis.lmove(processing, list, 'RIGHT', 'LEFT')) !== null) recovered += 1;
  let handled = 0;
  for (;;) {
    const got = reliable
      ? await moveBatch(redis, list, processing, batch, IDLE_WAIT_SECONDS)
      : await takeBatch(redis, list, batch, IDLE_WAIT_SECONDS);
    if (got.length === 0) return { handled, recovered };
    for (const message of got) {
      if (handlingMs > 0) await sleep(handlingMs);
      await redis.sadd(done, message);
      if (reliable) await redis.lrem(processing, 1, message);
      handled += 1;
    }
  }
}

async function takeBatch(redis: Redis, list: string, batch: number, wait: number): Promise<string[]> {
  const takes = Array.from({ length: batch - 1 }, () => redis.lpop(list));
  const last = redis.blpop(list, wait);
  return [...(await Promise.all(takes)), (await last)?.[1]].filter((message) => typeof message === 'string');
}

async function moveBatch(redis: Redis, from: string, to: string, batch: number, wait: number): Promise<string[]> {
  const moves = Array.from({ length: batch - 1 }, () => redis.lmove(from, to, 'LEFT', 'RIGHT'));
  const last = redis.blmove(from, to, 'LEFT', 'RIGHT', wait);
  return (await Promise.all([...moves, last])).filter((message) => typeof message === 'string');
}

async function fill(context: TaskContext, list: string): Promise<number> {
  const redis = ioredisOf(context.client);
  const messages = numberOption(context, 'messages');
  const bytes = numberOption(context, 'bytes');
  await redis.unlink(list);
  for (let first = 0; first < messages; first += FILL_STEP) {
    const count = Math.min(FILL_STEP, messages - first);
    await redis.rpush(list, ...Array.from({ length: count }, (_, index) => `${first + index}`.padEnd(bytes, 'x')));
  }
  return messages;
}
