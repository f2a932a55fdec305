/**
 * A schedule function may forget flushes that it is given: a throttle all but the first, a debounce all but the last.
 */
import { describe, expect, it } from 'vitest';
import { endWithTest, HOSTS, LONG_ENOUGH, outcomesWithin, ready, sleep, ticked } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl } from '../helpers/redis.js';
import { collectUncaught } from '../helpers/uncaught.js';
import { MOMENTS, watchBatches } from '../helpers/watch-batches.js';

type Schedule = (flush: () => void) => void;

/** The first flush of a while is the one that runs. */
function throttle(ms: number): Schedule {
  let waits = false;
  return (flush) => {
    if (waits) return;
    waits = true;
    setTimeout(() => {
      waits = false;
      flush();
    }, ms);
  };
}

/** The same, but it waits until the flush has run. */
function throttleThrough(ms: number): Schedule {
  let waits = false;
  return (flush) => {
    if (waits) return;
    waits = true;
    setTimeout(() => {
      flush();
      waits = false;
    }, ms);
  };
}

/** Each flush waits for the next one, and takes its place. */
function debounce(ms: number): Schedule {
  let timer: NodeJS.Timeout | undefined;
  return (flush) => {
    clearTimeout(timer);
    timer = setTimeout(flush, ms);
  };
}

const FORGETFUL = { throttle, throttleThrough, debounce };
const NAMES = Object.keys(FORGETFUL) as (keyof typeof FORGETFUL)[];

describe.each(HOSTS)('$name: a schedule function that drops flushes', (host) => {
  it.each(['throttle', 'throttleThrough'] as const)('%s: the batches of a new connection are sent', async (kind) => {
    const proxy = await startProxy(redisUrl());
    const schedule = FORGETFUL[kind](150);
    const client = await ready(host.createCoalesced(proxy.url, { retryStrategy: () => 1 }, { schedule }));
    // Its flush is still to come when the connection is another one.
    client.echo('lost').catch(() => {});
    proxy.reset();
    await sleep(50);
    const replies = [client.echo('a')];
    await sleep(20);
    replies.push(client.echo('b'));
    expect(await outcomesWithin(LONG_ENOUGH, replies)).toEqual([{ value: 'a' }, { value: 'b' }]);
  });

  it.each(NAMES.flatMap((kind) => MOMENTS.map((moment) => [kind, moment] as const)))(
    '%s: what a subscriber sends at the %s of the flush leaves',
    async (kind, moment) => {
      const client = await ready(host.createCoalesced(redisUrl(), {}, { schedule: FORGETFUL[kind](20) }));
      const nested: Promise<unknown>[] = [];
      watchBatches(moment, () => {
        if (nested.length === 0) nested.push(client.echo('fast'), client.call('ECHO', 'cold'));
      });
      expect(await outcomesWithin(LONG_ENOUGH, [client.echo('a')])).toEqual([{ value: 'a' }]);
      expect(await outcomesWithin(LONG_ENOUGH, [...nested, client.echo('b')])).toEqual(
        ['fast', 'cold', 'b'].map((value) => ({ value })),
      );
    },
  );

  it.each(NAMES)('%s: the batches of a client and of its duplicates, which share it, are sent', async (kind) => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { schedule: FORGETFUL[kind](20) }));
    const copies = [client.duplicate(), client.duplicate()];
    const all = [client, ...(await Promise.all(copies.map((copy) => ready(endWithTest(copy)))))];
    for (let round = 0; round < 3; round += 1) {
      const replies = all.map((each, index) => each.echo(String(index)));
      expect(await outcomesWithin(LONG_ENOUGH, replies)).toEqual(['0', '1', '2'].map((value) => ({ value })));
    }
  });

  it('one that throws after it has taken a flush: the batches whose flushes it drops are sent', async () => {
    const uncaught = collectUncaught();
    const throttled = throttle(40);
    let throws = false;
    const schedule: Schedule = (flush) => {
      throttled(flush);
      if (throws) throw new Error('by the schedule function');
    };
    const client = await ready(host.createCoalesced(redisUrl(), {}, { schedule }));
    throws = true;
    const replies = [client.echo('a')];
    await ticked();
    throws = false;
    replies.push(client.echo('b'));
    expect(await outcomesWithin(LONG_ENOUGH, replies)).toEqual([{ value: 'a' }, { value: 'b' }]);
    expect(uncaught.map(String)).toEqual(['Error: by the schedule function']);
  });
});
