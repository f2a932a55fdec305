/** Pipelines and transactions that users hold through a wrapper, or of which they replace methods. */
import { coalesce } from 'ioredis-coalesce';
import { describe, expect, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { UnhandledRejections } from '../helpers/fidelity/unhandled.js';
import { type Wrapper, wrapped } from '../helpers/fidelity/wrappers.js';
import { type Client, endWithTest, HOSTS, outcomes, outcomesWithin, ready } from '../helpers/hosts.js';
import { describeScenarios, scenario, startServerOfScenes } from '../helpers/lifecycle/scene.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';

startServerOfScenes();

// Host: `execBuffer` of a pipeline is deprecated.
expectWarnings('DeprecationWarning');

type Pipeline = ReturnType<Client['pipeline']>;
/** The host's own method, which a pipeline inherits. */
function inherited(pipeline: Pipeline, owner: string, name: string): (...args: unknown[]) => unknown {
  let prototype = Object.getPrototypeOf(pipeline) as object;
  while (!Object.hasOwn(prototype, owner)) prototype = Object.getPrototypeOf(prototype) as object;
  return Reflect.get(prototype, name) as never;
}

function method(pipeline: Pipeline, name: string): (...args: unknown[]) => unknown {
  return (Reflect.get(pipeline, name) as (...args: unknown[]) => unknown).bind(pipeline);
}

/**
 * Through these a pipeline's commands are the host's; a wrapper that calls methods on the object itself changes
 * nothing.
 */
const WRAPPERS: readonly Wrapper[] = ['a Proxy', 'a Proxy that passes on names, and no symbols'];

for (const title of WRAPPERS) {
  const wrap = (pipeline: Pipeline) => wrapped(pipeline, title);
  describeScenarios(`pipelines behind ${title}`, HOSTS, {
    'a transaction, and a pipeline that holds one': async ({ ready, track, note }) => {
      const client = await ready({ keyPrefix: 'pre:' });
      await track('fast', client.get('a'));
      const transaction = wrap(client.multi());
      note('returns itself', transaction.set('a', '1').incr('n') === transaction);
      await track(
        'm',
        transaction.hgetall('h').exec((error, results) => note('callback', [error, results])),
      );
      await track('again', transaction.exec());
      const buffers = wrap(client.multi()).get('a');
      await track('buffers', method(buffers, 'execBuffer')() as Promise<unknown>);
      const pipeline = wrap(client.pipeline().set('a', '1'));
      method(pipeline, 'multi')();
      pipeline.incr('a').exec();
      note('length', pipeline.length);
      await track('p', pipeline.getBuffer('a').exec());
    },

    'begun on the object, continued behind the wrapper, executed on either': async ({ ready, track }) => {
      const client = await ready();
      for (const kind of ['pipeline', 'multi'] as const) {
        const inside = client[kind]().set('a', '1');
        wrap(inside).incr('n');
        await track(`${kind}, inside`, inside.get('a').exec());
        const outside = client[kind]().set('a', '1');
        const behind = wrap(outside);
        behind.incr('n');
        outside.get('n');
        await track(`${kind}, outside`, behind.exec());
        await track(`${kind}, again`, outside.exec());
      }
    },

    'with select behind the wrapper: the client knows its database': async ({ ready, track }) => {
      const client = await ready();
      await track('fast', client.get('k'));
      const inside = client.pipeline().set('k', 'v');
      wrap(inside).select(1);
      await track('p', inside.set('k', 'w').exec());
      await track('selected', client.get('k'));
      client.disconnect(true);
      await track('on the next connection', client.get('k'));
    },

    'recorded while ready, executed when the client is not': async ({ ready, track }) => {
      const client = await ready();
      await track('fast', client.get('k'));
      const pipeline = wrap(client.pipeline().set('k', 'v')).get('k');
      const transaction = wrap(client.multi().incr('n')).get('n');
      client.disconnect();
      const executed = [track('pipeline', pipeline.exec()), track('transaction', transaction.exec())];
      await client.connect().catch(() => {});
      await Promise.all(executed);
      await track('twice', transaction.exec());
    },
  });
}

describeScenarios('objects derived from pipelines', HOSTS, {
  'a pipeline': async ({ ready, track }) => {
    const client = await ready();
    await track('fast', client.get('a'));
    const pipeline = Object.create(client.pipeline()) as Pipeline;
    await track('p', pipeline.set('a', '1').incr('a').get('a').exec());
  },

  // Their results go to the object that was derived; the host's transaction awaits them itself.
  'a transaction: stored, and its promise stays open': scenario({ open: 1 }, async ({ ready, track }) => {
    const client = await ready();
    const transaction = Object.create(client.multi()) as Pipeline;
    void track('m', transaction.set('a', '1').incr('a').exec());
    await track('a', client.get('a'));
  }),
});

describeScenarios('pipelines whose methods are replaced or called past', HOSTS, {
  'exec() wrapped by the user, of a client that is not ready': async ({ ready, track, note }) => {
    const client = await ready();
    for (const kind of ['pipeline', 'multi'] as const) {
      const pipeline = client[kind]().incr('n');
      const { exec } = pipeline;
      pipeline.exec = function (this: Pipeline, ...args: []) {
        note('wrapped');
        return exec.apply(this, args);
      } as never;
      client.disconnect();
      const first = track(`${kind} first`, pipeline.exec());
      await client.connect().catch(() => {});
      await first;
      await track(`${kind} second`, pipeline.exec());
    }
    await track('behind', client.get('n'));
  },

  "the host's exec() called past that of the object": async ({ ready, track }) => {
    const client = await ready();
    const pipeline = client.pipeline().set('a', 'é').hset('h', 'f', 'v').hgetall('h').incr('a').getBuffer('a');
    await track('p', inherited(pipeline, 'fillResult', 'exec').call(pipeline) as Promise<unknown>);
    await track('behind', client.get('a'));
  },

  'many arguments of a command that falls back': async ({ ready, track }) => {
    const client = await ready();
    const members = Array.from({ length: 100_000 }, (_, index) => String(index));
    const pipeline = client.pipeline().get('k');
    pipeline.sadd('s', null as never, ...members);
    await track('p', pipeline.exec());
  },

  'exec(callback) of a pipeline that was executed empty': async ({ ready, track, note }) => {
    const client = await ready();
    const pipeline = client.pipeline();
    await track('empty', pipeline.exec());
    await track(
      'p',
      pipeline.set('d', 1).exec(() => note('called back')),
    );
    await track('behind', client.get('d'));
  },

  'for … in finds the methods': async ({ ready, note, track }) => {
    const client = await ready();
    client.defineCommand('mine', { lua: 'return 1', numberOfKeys: 0 });
    for (const kind of ['pipeline', 'multi'] as const) {
      const names: string[] = [];
      for (const name in client[kind]()) names.push(name);
      note(kind, names.sort());
    }
    await track('fast', client.get('k'));
  },
});

/** What `fillResult` is replaced by, given the host's. */
const FILLS: Readonly<Record<string, (fill: (...args: unknown[]) => unknown) => (...args: unknown[]) => unknown>> = {
  'throws once, instead of filling': (fill) => {
    let thrown = false;
    return function (this: unknown, ...args) {
      if (thrown) return fill.apply(this, args);
      thrown = true;
      throw new Error('thrown once');
    };
  },
  'throws once, after it has filled': (fill) => {
    let thrown = false;
    return function (this: unknown, ...args) {
      fill.apply(this, args);
      if (thrown) return;
      thrown = true;
      throw new Error('thrown once');
    };
  },
  'always throws': () => () => {
    throw new Error('thrown always');
  },
  'counts, and sends': (fill) =>
    function (this: unknown, ...args) {
      void (this as { redis: Client }).redis.incr(`${prefix}filled`);
      return fill.apply(this, args);
    },
};

const prefix = uniquePrefix('wrapped-pipelines');

describe.each(HOSTS)('$name: a pipeline whose fillResult', (host) => {
  it.each(Object.keys(FILLS))('%s: every other caller gets its own reply', async (title) => {
    const plain = await play('plain');
    expect(await play('coalesced')).toEqual(plain);
    expect(plain.others).toEqual(['A', 'B', 'C', 'D', 'A', 'B'].map((value) => ({ value })));

    async function play(kind: 'plain' | 'coalesced') {
      const rejections = new UnhandledRejections();
      rejections.start();
      const client = await connectAs(kind, host, redisUrl());
      const keys = ['a', 'b', 'c', 'd'];
      await Promise.all(keys.map((key) => client.set(`${prefix}${key}`, key.toUpperCase())));
      await client.del(`${prefix}filled`);
      const get = (key: string) => client.get(`${prefix}${key}`);
      const pipeline = client.pipeline();
      for (const key of keys) pipeline.get(`${prefix}${key}`);
      const target = pipeline as unknown as { fillResult: (...args: unknown[]) => unknown };
      target.fillResult = (FILLS[title] as (typeof FILLS)[string])(target.fillResult);
      const executed = pipeline.exec();
      const now = await outcomes(keys.map(get));
      const later = await outcomes([get('a'), get('b'), get('filled')]);
      const [result] = await outcomesWithin(100, [executed]);
      const unhandled = await rejections.take();
      rejections.stop();
      return { others: [...now, ...later.slice(0, 2)], filled: later[2], result, unhandled };
    }
  });
});

describe.each(HOSTS)('$name: user code that runs between two replies of a chunk', (host) => {
  it('calls exec() again: the pipeline settles, and others get their own replies', async () => {
    const { Command } = host.Redis as unknown as { Command: TransformerSettings };
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      await client.mset(`${prefix}1`, 'A', `${prefix}2`, 'B', `${prefix}3`, 'C');
      const pipeline = client.pipeline();
      for (const key of [1, 2, 3]) pipeline.getdel(`${prefix}${key}`);
      let runs = 0;
      Command.setReplyTransformer('getdel', (reply) => {
        runs += 1;
        if (runs === 2) void pipeline.exec();
        return reply;
      });
      const settled = await outcomesWithin(2_000, [pipeline.exec(), client.echo('x')]);
      const later = await outcomes([client.echo('y'), client.get(`${prefix}1`)]);
      delete Command._transformer.reply.getdel;
      return { settled, later };
    });
  });

  it.each(['then', 'thrown then', 'thrown once', 'not a function'])(
    'as a getter (%s) of what a transformer returns',
    async (form) => {
      const { Command } = host.Redis as unknown as { Command: TransformerSettings };
      await expectAsPlain(async (kind) => {
        const client = await connectAs(kind, host, redisUrl());
        let reads = 0;
        Command.setReplyTransformer('getdel', () => ({
          // biome-ignore lint/suspicious/noThenProperty: what promises do with it is the question.
          get then() {
            reads += 1;
            if (form === 'then') return (resolve: (value: unknown) => void) => resolve('from then');
            if (form === 'not a function' || (form === 'thrown once' && reads > 1)) return undefined;
            throw new Error('thrown by then');
          },
        }));
        const pipeline = client.pipeline().getdel(`${prefix}1`).getdel(`${prefix}2`);
        const settled = await outcomes([pipeline.exec(), client.echo('x'), client.echo('y')]);
        delete Command._transformer.reply.getdel;
        return [reads, JSON.stringify(settled, (key, value) => (key === 'then' ? undefined : value))];
      });
    },
  );
});

it.each(HOSTS)('$name: a subclass with its own pipeline() has it called once per call', async (host) => {
  let calls = 0;
  class Counting extends host.Redis {
    override pipeline(...args: unknown[]): ReturnType<Client['pipeline']> {
      calls += 1;
      return super.pipeline(...(args as []));
    }
  }
  const client = await ready(coalesce(endWithTest(new Counting(redisUrl(), {}))));
  await client.ping();
  expect(await client.pipeline().echo('a').exec()).toEqual([[null, 'a']]);
  expect(calls).toBe(1);
});

interface TransformerSettings {
  setReplyTransformer(name: string, transform: (reply: unknown) => unknown): void;
  _transformer: { reply: Record<string, unknown> };
}
