import { FlowProducer } from 'bullmq';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createQueue } from './helpers/bullmq-queue.js';
import { CLIENT_KINDS, expectTookPart } from './helpers/clients.js';

const JOBS = 60;

describe.each(CLIENT_KINDS)('BullMQ with $name', (kind) => {
  it('processes each job of a burst once, and hands back its result', async () => {
    const { client, duplicates, queue, events, work } = await createQueue(kind);
    const seen: number[] = [];
    const jobs = await Promise.all(Array.from({ length: JOBS }, (_, n) => queue.add('double', { n, text: 'ünï ☕' })));
    work(
      async ({ data }) => {
        seen.push(data.n);
        return { doubled: data.n * 2, text: data.text };
      },
      { concurrency: 10 },
    );
    const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
    expect(results).toEqual(jobs.map((_, n) => ({ doubled: n * 2, text: 'ünï ☕' })));
    expect(seen.sort((a, b) => a - b)).toEqual(jobs.map((_, n) => n));
    expect(await queue.getJobCounts('completed', 'failed', 'wait', 'active')).toEqual({
      completed: JOBS,
      failed: 0,
      wait: 0,
      active: 0,
    });
    expectTookPart(kind, client, { batched: true, fast: true });
    expect(duplicates.length).toBeGreaterThan(1);
    for (const duplicate of duplicates) expectTookPart(kind, duplicate, { batched: false, fast: false });
  });

  it('retries a job that fails, and gives up with its reason', async () => {
    const { client, queue, events, work } = await createQueue(kind);
    work(async ({ name, attemptsMade }) => {
      if (name === 'hopeless' || attemptsMade < 2) throw new Error(`${name}, attempt ${attemptsMade + 1}`);
      return attemptsMade + 1;
    });
    const options = { attempts: 3, backoff: { type: 'fixed', delay: 10 } };
    const [flaky, hopeless] = await Promise.all([queue.add('flaky', {}, options), queue.add('hopeless', {}, options)]);
    expect(await flaky.waitUntilFinished(events)).toBe(3);
    await expect(hopeless.waitUntilFinished(events)).rejects.toThrow('hopeless, attempt 3');
    expect((await queue.getFailed()).map(({ failedReason, attemptsMade }) => [failedReason, attemptsMade])).toEqual([
      ['hopeless, attempt 3', 3],
    ]);
    expectTookPart(kind, client, { batched: true, fast: true });
  });

  it('starts a delayed job when its time has come', async () => {
    const { client, queue, events, work } = await createQueue(kind);
    const order: string[] = [];
    let startedAt = 0;
    work(async ({ name }) => {
      order.push(name);
      if (name === 'delayed') startedAt = Date.now();
    });
    const [delayed, atOnce] = await Promise.all([queue.add('delayed', {}, { delay: 300 }), queue.add('at once', {})]);
    await Promise.all([delayed, atOnce].map((job) => job.waitUntilFinished(events)));
    expect(order).toEqual(['at once', 'delayed']);
    expect(startedAt).toBeGreaterThanOrEqual(delayed.timestamp + 300);
    expectTookPart(kind, client, { batched: false, fast: true });
  });

  it('keeps to a rate limit', async () => {
    const { client, queue, events, work } = await createQueue(kind);
    const started: number[] = [];
    const jobs = await Promise.all(Array.from({ length: 5 }, (_, n) => queue.add('limited', { n })));
    const note = async () => void started.push(Date.now());
    work(note, { limiter: { max: 2, duration: 200 } });
    await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
    const { processedOn } = (await queue.getJob(jobs[0]!.id!))!;
    // Two in each window, so the fifth is in the third. Redis counts in whole milliseconds.
    expect(started[4]! - processedOn!).toBeGreaterThanOrEqual(2 * 200 - 2);
    expectTookPart(kind, client, { batched: true, fast: true });
  });

  it('processes jobs by priority, and repeats scheduled jobs', async () => {
    const { client, queue, events, work } = await createQueue(kind);
    const priorities = [3, 1, 2, 5, 4];
    const jobs = await Promise.all(priorities.map((priority) => queue.add('ranked', { priority }, { priority })));
    await queue.upsertJobScheduler('beat', { every: 50, limit: 3 }, { name: 'beat', opts: { priority: 9 } });
    const order: number[] = [];
    let beats = 0;
    const allBeats = new Promise<void>((resolve) => {
      work(async ({ name, data }) => {
        if (name === 'ranked') order.push(data.priority);
        else if (++beats === 3) resolve();
      });
    });
    await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
    expect(order).toEqual([1, 2, 3, 4, 5]);
    await allBeats;
    expectTookPart(kind, client, { batched: true, fast: true });
  });

  it('runs a flow: children first, then their parent with what they returned', async () => {
    const { client, queue, events, work } = await createQueue(kind);
    const order: string[] = [];
    work(
      async (job) => {
        order.push(job.name);
        if (job.name !== 'parent') return job.data.n ** 2;
        return Object.values(await job.getChildrenValues<number>()).sort((a, b) => a - b);
      },
      { concurrency: 3 },
    );
    const flows = new FlowProducer({ connection: client });
    onTestFinished(() => flows.close());
    const queueName = queue.name;
    const children = [1, 2, 3, 4].map((n) => ({ name: 'child', queueName, data: { n } }));
    const { job } = await flows.add({ name: 'parent', queueName, children });
    expect(await job.waitUntilFinished(events)).toEqual([1, 4, 9, 16]);
    expect(order).toEqual(['child', 'child', 'child', 'child', 'parent']);
    expectTookPart(kind, client, { batched: true, fast: true });
  });
});
