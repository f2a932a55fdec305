import { describe, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { type Client, HOSTS } from '../helpers/hosts.js';
import { describeScenarios, type Scene, scenario, startServerOfScenes } from '../helpers/lifecycle/scene.js';
import { redisUrl } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';

startServerOfScenes();

// Host: `execBuffer` of a pipeline is deprecated.
expectWarnings('COALESCE_WARN_AUTO_PIPELINING', 'DeprecationWarning');

type Pipeline = ReturnType<Client['pipeline']>;
type Anything = (...args: unknown[]) => Pipeline;

/** A method of a pipeline that the types do not have. */
function method(pipeline: Pipeline, name: string): Anything {
  return (pipeline as unknown as Record<string, Anything>)[name]?.bind(pipeline) as Anything;
}

/** Follows a promise whose place among those that settle is compared too. */
function place(scene: Scene, name: string, promise: Promise<unknown>): void {
  void scene.track(name, promise);
}

type Sha = { sumOf(...args: unknown[]): Promise<unknown> };

describeScenarios('explicit pipelines', HOSTS, {
  'chained, of strings, numbers, Buffers and arrays': async ({ ready, track }) => {
    const client = await ready();
    await track(
      'p',
      client
        .pipeline()
        .set('a', 'é')
        .get('a')
        .getBuffer('a')
        .set(Buffer.from('b'), Buffer.from([0, 255, 13, 10]))
        .getBuffer('b')
        .get('b')
        .set('n', 1.5)
        .incrbyfloat('n', 2)
        .mget(['a', 'n', 'missing'])
        .mget('a', 'n')
        .rpush('list', ...['x', 'y', 'ü'])
        .lrange('list', 0, -1)
        .lrangeBuffer('list', 0, -1)
        .del('a', 'b')
        .exec(),
    );
  },

  'pipeline([[...]]) and addBatch': async ({ ready, track, note }) => {
    const client = await ready();
    await track(
      'batch',
      client
        .pipeline([
          ['set', 'k', 'v'],
          ['get', 'k'],
        ])
        // @ts-expect-error: works in the host, its types do not know it
        .addBatch([['getBuffer', 'k']])
        .exec(),
    );
    try {
      client.pipeline([['set', 'never', 'v'], ['nosuchcommand']]);
    } catch (error) {
      note('unknown', error);
    }
  },

  'callbacks of commands come before the pipeline, and in order': async ({ ready, note, track }) => {
    const client = await ready();
    const pipeline = client.pipeline();
    pipeline.set('k', 'v', (error, value) => note('set', [error, value]));
    pipeline.get('k');
    pipeline.incr('k', (error, value) => note('incr', [error, value]));
    pipeline.get('k', (error, value) => note('get', [error, value]));
    await track(
      'p',
      pipeline.exec((error, results) => note('exec', [error, results])),
    );
  },

  'exec(callback), empty and not': async ({ ready, note, track }) => {
    const client = await ready();
    await track(
      'empty',
      client.pipeline().exec((error, results) => note('empty', [error, results])),
    );
    await track(
      'one',
      client
        .pipeline()
        .set('k', 'v')
        .exec((error, results) => note('one', [error, results])),
    );
  },

  'length, and what the object is': async ({ ready, note, track }) => {
    const client = await ready();
    const pipeline = client.pipeline();
    note('none', pipeline.length);
    note('chain', pipeline.set('a', '1') === pipeline);
    method(pipeline, 'call')('get', 'a');
    note('two', pipeline.length);
    const other = client.pipeline([['get', 'k']]);
    note('same class', [other.constructor.name, other.constructor === pipeline.constructor]);
    note(
      'has',
      ['redis', 'isPipeline', 'options', 'promise', '_queue', '_result'].map((name) => name in pipeline),
    );
    note('client', (pipeline as unknown as { redis: unknown }).redis === client);
    await track('p', pipeline.exec());
    note('after', pipeline.length);
  },

  'exec() twice, at once, later, and with commands in between': async ({ ready, track, note }) => {
    const client = await ready();
    const twice = client.pipeline().incr('n').get('n');
    const promises = [twice.exec(), twice.exec()];
    note('same', promises[0] === promises[1]);
    await Promise.all(promises.map((promise, index) => track(`exec ${index}`, promise)));
    await track('again', twice.exec());
    const more = client.pipeline().incr('n');
    const first = more.exec();
    more.incr('n');
    await Promise.all([track('first', first), track('second', more.exec())]);
    await track('n', client.get('n'));
  },

  'errors, with all they carry': async ({ ready, track }) => {
    const client = await ready();
    const pipeline = client.pipeline().set('text', 'v').incr('text').get('text').lpush('text', Buffer.from('x'));
    method(pipeline, 'get')();
    await track('p', pipeline.exec());
  },

  'arguments of other types': async ({ ready, track }) => {
    const client = await ready();
    const pipeline = client.pipeline();
    for (const value of [null, undefined, true, 10n, 2 ** 60, -0, new Date(0), { a: 1 }, ['x', ['y']]]) {
      method(pipeline, 'set')('k', value);
      pipeline.get('k');
    }
    await track('p', pipeline.exec());
  },

  'objects, Maps and reply transformers': async ({ ready, track }) => {
    const client = await ready();
    await track(
      'p',
      client
        .pipeline()
        .hset('h', { a: 1, b: 'é', c: Buffer.from('c') })
        .hset('h', new Map([['d', '4']]))
        .hgetall('h')
        .hgetallBuffer('h')
        .mset({ x: 1, y: 2 })
        .mset('z', 3)
        .mget('x', 'y', 'z')
        .hset('h', { nothing: null } as never)
        .hgetall('missing')
        .zadd('z1', 1, 'a', 2.5, 'b')
        // @ts-expect-error: works in the host, its types do not know it
        .zrange('z1', 0, -1, 'WITHSCORES')
        .exec(),
    );
  },

  'arguments that change before exec()': async ({ ready, track }) => {
    const client = await ready();
    const list = ['a', 'b'];
    const hash = { field: 'before' };
    const bytes = Buffer.from('before');
    const pipeline = client
      .pipeline()
      .rpush('list', list as never)
      .hset('h', hash)
      .set('bytes', bytes);
    list.push('c');
    hash.field = 'after';
    bytes.write('after!');
    await track('p', pipeline.lrange('list', 0, -1).hgetall('h').get('bytes').exec());
  },

  'getters of arguments are read once': async ({ ready, track, note }) => {
    const client = await ready();
    let reads = 0;
    const counting = {
      get seq() {
        reads += 1;
        return reads;
      },
    };
    await track('fast', client.pipeline().hset('h', counting).hgetall('h').exec());
    await track('cold', client.pipeline().hset('h', counting).select(1).exec());
    await track(
      'odd',
      client
        .pipeline()
        .hset('h', { ...counting, flag: true } as never)
        .exec(),
    );
    note('reads', reads);
  },

  'a getter among the arguments that sends the pipeline': async ({ ready, track, note }) => {
    const client = await ready({ commandTimeout: 60_000 });
    const made = { pipeline: client.pipeline(), multi: client.multi() };
    for (const [name, pipeline] of Object.entries(made)) {
      let within: Promise<void> | undefined;
      const array = Object.defineProperty(['a', ''], 1, {
        get() {
          within ??= track(`${name} within`, pipeline.exec());
          return 'b';
        },
        enumerable: true,
      });
      method(pipeline.incr('n'), 'rpush')(`list of ${name}`, array);
      note(`${name} has`, pipeline.length);
      await within;
      note(`${name} had`, pipeline.length);
      method(pipeline.incr('n'), 'rpush')('n', 'x');
      await track(`${name} again`, pipeline.exec());
      await track(`${name} list`, client.lrange(`list of ${name}`, 0, -1));
      await track(`${name} n`, client.get('n'));
    }
  },

  'custom commands among others': async ({ ready, track }) => {
    const client = (await ready()) as Client & Sha;
    client.defineCommand('sumOf', { numberOfKeys: 1, lua: 'return redis.call("INCRBY", KEYS[1], ARGV[1])' });
    for (const run of ['first', 'second']) {
      const pipeline = client.pipeline().set('n', 1);
      method(pipeline, 'sumOf')('n', 5);
      method(pipeline, 'sumOfBuffer')('n', 5);
      await track(run, pipeline.get('n').exec());
    }
    await track('flush', client.script('FLUSH'));
    const unknown = client.pipeline().get('n');
    method(unknown, 'sumOf')('n', 5);
    await track('third', unknown.exec());
    client.defineCommand('sumOf', { numberOfKeys: 1, lua: 'return "again"' });
    await track('redefined', method(client.pipeline().get('n'), 'sumOf')('n', 5).exec());
  },

  'commands that are not fast, of every kind': async ({ ready, track }) => {
    const client = await ready();
    const pipeline = client.pipeline().set('k', 'v');
    method(pipeline, 'call')('GET', 'k');
    method(pipeline, 'callBuffer')('get', 'k');
    method(pipeline, 'client')('SETNAME', 'mine');
    method(pipeline, 'client')('GETNAME');
    method(pipeline, 'config')('GET', 'maxmemory');
    method(pipeline, 'object')('ENCODING', 'k');
    method(pipeline, 'xgroup')('CREATE', 's', 'g', '$', 'MKSTREAM');
    pipeline.get('k').watch('k').unwatch();
    await track('p', pipeline.exec());
  },

  'commands that say something to the client': async ({ ready, track }) => {
    const client = await ready();
    await track('select', client.pipeline().set('k', 'zero').select(3).set('k', 'three').exec());
    await track('there', client.get('k'));
    await track('blocking', client.pipeline().rpush('l', 'a').blpop('l', 0).get('k').exec());
    await track('back', client.pipeline().get('k').select(0).get('k').exec());
    await track('behind', client.get('k'));
    await track('quit', client.pipeline().set('k', 'last').quit().exec());
  },

  'multi within a pipeline': async ({ ready, track }) => {
    const client = await ready();
    // @ts-expect-error: works in the host, its types do not know it
    const one = client.pipeline().set('k', '1').multi().incr('k').getBuffer('k').hgetall('h');
    await track('p', (one.exec() as unknown as Pipeline).get('k').exec());
    const two = client.pipeline();
    // @ts-expect-error: works in the host, its types do not know it
    two.multi().incr('k');
    two.exec();
    // @ts-expect-error: works in the host, its types do not know it
    two.get('k').multi().get('k');
    two.exec();
    await track('two', two.exec());
    const open = client
      .pipeline()
      // @ts-expect-error: works in the host, its types do not know it
      .multi({ pipeline: false } as never)
      .set('k', 'x');
    open.exec();
    await track('with options', open.exec());
    // @ts-expect-error: works in the host, its types do not know it
    const wrong = client.pipeline().set('text', 't').multi().incr('text').get('text');
    wrong.exec();
    await track('error inside', wrong.exec());
    // @ts-expect-error: works in the host, its types do not know it
    const discarded = client.pipeline().multi().set('k', 'no').discard().get('k');
    discarded.exec();
    await track('discarded', discarded.exec());
  },

  'many commands, and texts that are not ASCII among them': async ({ ready, track }) => {
    const client = await ready();
    const pipeline = client.pipeline();
    for (let index = 0; index < 3_000; index += 1) {
      pipeline.set(`k${index}`, index % 7 === 0 ? `é${index}` : index).get(`k${index}`);
      if (index % 500 === 0)
        pipeline.set('large', 'ü'.repeat(9_000)).strlen('large').setrange('large', 5, 'x'.repeat(5_000));
    }
    await track('p', pipeline.exec());
  },

  'order: single commands, pipelines and transactions in one tick': async (scene) => {
    const client = await scene.ready();
    await scene.track('text', client.set('text', 'v'));
    place(scene, 'a', client.incr('n'));
    const executed = [client.pipeline().incr('n').get('n').exec()];
    place(scene, 'b', client.get('n'));
    executed.push(
      client.multi().incr('n').get('n').exec(),
      client.pipeline().incr('n').incr('text').exec(),
      client.pipeline().incr('text').incr('n').exec(),
    );
    place(scene, 'c', client.incr('n'));
    executed.push(client.multi().incr('text').incr('n').exec(), client.pipeline().call('incr', 'n').get('n').exec());
    await scene.track('last', client.incr('n'));
    // When they settle, seen from single commands, depends on the packets: docs/guarantees.md.
    scene.note('executed', await Promise.all(executed));
  },

  keyPrefix: async ({ ready, track }) => {
    const client = await ready({ keyPrefix: 'pre:' });
    await track(
      'p',
      client
        .pipeline()
        .set('k', 'v')
        .get('k')
        .mset({ a: 1, b: 2 })
        .mget('a', 'b')
        .rename('a', 'c')
        .eval('return KEYS[1]', 1, 'k')
        .get(Buffer.from('k'))
        .keys('*')
        .exec(),
    );
    await track('m', client.multi().set('k', 'w').get('k').mget('b', 'c').exec());
  },

  stringNumbers: async ({ ready, track }) => {
    const client = await ready({ stringNumbers: true });
    await track('p', client.pipeline().incr('n').zadd('z', 1.5, 'a').zscore('z', 'a').strlen('n').exec());
    await track('m', client.multi().incr('n').zscore('z', 'a').strlen('n').exec());
  },

  'replyMapping: resp3': scenario({ needs: 'socketTimeout' }, async ({ ready, track, host }) => {
    const client = await ready(host.name === 'ioredis 6' ? ({ replyMapping: 'resp3' } as never) : {});
    await track(
      'p',
      client.pipeline().hset('h', 'f', 'v').hgetall('h').zadd('z', 1, 'a').zscore('z', 'a').smembers('s').exec(),
    );
    await track('m', client.multi().hgetall('h').hgetallBuffer('h').zscore('z', 'a').smembers('s').exec());
  }),

  'showFriendlyErrorStack and enableAutoPipelining': scenario({ cold: true }, async ({ ready, track }) => {
    const friendly = await ready({ showFriendlyErrorStack: true });
    await track('friendly', friendly.pipeline().set('k', 'v').incr('k').exec());
    const auto = await ready({ enableAutoPipelining: true });
    await track('auto', auto.pipeline().set('k', 'v').get('k').exec());
    await track('single', auto.get('k'));
  }),

  'methods and properties that users put on pipelines': async ({ ready, track, note }) => {
    const client = await ready();
    const prototype = Object.getPrototypeOf(Object.getPrototypeOf(client.pipeline().set('a', '1'))) as object;
    note('prototype', typeof prototype);
    const pipeline = client.pipeline() as Pipeline & { mine?: string; twice?: (key: string) => Pipeline };
    pipeline.mine = 'kept';
    pipeline.twice = function (this: Pipeline, key: string) {
      return this.incr(key).incr(key);
    };
    pipeline.twice('n').get('n');
    pipeline.get = function (this: Pipeline, key: string) {
      note('get', key);
      return this.getBuffer(key);
    } as never;
    await track('p', pipeline.get('n').exec());
    note('mine', pipeline.mine);
    const client2 = await ready({}, { name: 'second' });
    (client2 as unknown as { pipeline: unknown }).pipeline = () => 'stubbed';
    note('stub', client2.pipeline());
  },
});

describeScenarios('transactions in a pipeline', HOSTS, {
  'transactions in a pipeline, in every form': async ({ ready, track, note }) => {
    const client = await ready();
    await track('chained', client.multi().set('k', '1').incr('k').get('k').getBuffer('k').exec());
    await track(
      'of a list',
      client
        .multi([
          ['set', 'k', 'é'],
          ['get', 'k'],
        ])
        .exec(),
    );
    await track(
      'callbacks',
      client
        .multi()
        .get('k', (error, value) => note('get', [error, value]))
        .set('k', 'v', (error, value) => note('set', [error, value]))
        .exec((error, results) => note('exec', [error, results])),
    );
    await track('empty', client.multi().exec());
    const length = client.multi().get('k');
    note('length', length.length);
    await track('length', length.exec());
    note('after', length.length);
    await track('again', length.exec());
    await track('with options', client.multi({ pipeline: true }).get('k').exec());
    // @ts-expect-error: works in the host, its types do not know it
    await track('with both', client.multi([['get', 'k']], { pipeline: true }).exec());
  },

  'multi within a transaction': async ({ ready, track, note }) => {
    const client = await ready();
    const nested = client.multi().get('k');
    method(nested, 'multi')();
    try {
      await track('executed', nested.set('k', 'v').exec());
    } catch (error) {
      note('thrown', String(error));
    }
    await track(
      'of a list',
      Promise.resolve().then(() => client.multi([['multi'], ['get', 'k'], ['exec']]).exec()),
    );
    await track('behind', client.get('k'));
  },

  'exec among the commands that multi() is given': async ({ ready, track, note }) => {
    const client = await ready();
    const forms = [[['exec']], [['set', 'k', 'v'], ['exec']], [['exec'], ['hmset', 'h', 'f', 'v']], [['execBuffer']]];
    for (const [index, commands] of forms.entries()) {
      const transaction = client.multi(commands as string[][]);
      await track(`exec ${index}`, transaction.exec());
      await track(`again ${index}`, transaction.exec());
    }
    const open = client.multi().set('k', 'v');
    // Recorded behind the exec() that has sent it.
    const replies = [track('sent', open.exec()), track('late', open.get('k').exec())];
    await Promise.all(replies);
    note('k', await client.get('k'));
  },

  execBuffer: async ({ ready, track }) => {
    const client = await ready();
    const transaction = client.multi().set('k', 'v').get('k').getBuffer('k');
    await track('m', (transaction as unknown as { execBuffer(): Promise<unknown> }).execBuffer());
    const again = client.multi().get('k') as unknown as { execBuffer(): Promise<unknown>; exec(): Promise<unknown> };
    await Promise.all([track('first', again.execBuffer()), track('second', again.exec())]);
    const outside = client.pipeline().get('k') as unknown as { execBuffer(): Pipeline };
    await track('outside', outside.execBuffer().exec());
  },

  'transformers of the commands inside': async ({ ready, track }) => {
    const client = await ready();
    await track(
      'm',
      client
        .multi()
        .hset('h', { a: 'é', b: 2 })
        .hgetall('h')
        .hgetallBuffer('h')
        .mset({ x: 1, y: 2 })
        .mget('x', 'y', 'z')
        .mgetBuffer('x', 'z')
        .zadd('z1', 1, 'a')
        // @ts-expect-error: works in the host, its types do not know it
        .zrange('z1', 0, -1, 'WITHSCORES')
        .xadd('s', '1-1', 'f', 'v')
        .xrange('s', '-', '+')
        .exec(),
    );
  },

  'errors: of the wrong type inside, refused when queued, and previousErrors': async ({ ready, track }) => {
    const client = await ready();
    await track('inside', client.multi().set('t', 'v').incr('t').lpush('t', 'x').get('t').exec());
    const refused = client.multi().set('k', 'v');
    method(refused, 'get')();
    method(refused, 'call')('NOSUCH');
    await track('refused', refused.get('k').exec());
    await track('behind', client.get('k'));
    await track(
      'in callback',
      client
        .multi()
        .get('t')
        .exec((error) => void error),
    );
  },

  'WATCH: null when it fails': async ({ ready, admin, track }) => {
    const client = await ready();
    const other = await admin();
    await track('watch', client.watch('k'));
    await other.set('k', 'theirs');
    await track('lost', client.multi().set('k', 'mine').get('k').exec());
    await track('unwatched', client.multi().set('k', 'mine').get('k').exec());
  },

  'commands that are not fast': async ({ ready, track }) => {
    const client = (await ready()) as Client & Sha;
    client.defineCommand('sumOf', { numberOfKeys: 1, lua: 'return redis.call("INCRBY", KEYS[1], ARGV[1])' });
    for (const run of ['first', 'second']) {
      const transaction = client.multi().set('n', 1);
      method(transaction, 'sumOf')('n', 5);
      method(transaction, 'callBuffer')('get', 'n');
      method(transaction, 'set')('null', null);
      await track(run, transaction.hgetall('h').get('null').exec());
    }
    await track('select', client.multi().set('k', 'v').select(2).set('k', 'w').exec());
    await track('selected', client.get('k'));
    await track('discard', client.multi().incr('n').discard().exec());
    await track('nothing left open', client.get('n'));
  },

  'within a transaction of single commands': async ({ ready, track, note }) => {
    const client = await ready();
    const replies = [
      track('multi', client.multi({ pipeline: false })),
      track('set', client.set('k', 'v')),
      track('p', client.pipeline().get('k').incr('n').exec()),
      track('nested', client.multi().get('k').exec()),
    ];
    // Whether it settles before the pipeline that its reply follows depends on the packets: docs/guarantees.md.
    const behind = client.get('k');
    await Promise.all(replies);
    note('behind', await behind);
    await track('exec', client.exec());
  },

  'without exec: nothing happens': async ({ ready, track }) => {
    const client = await ready();
    client.multi().set('never', '1');
    client.pipeline().set('never', '1').get('never');
    await track('get', client.get('never'));
  },

  'before the client is ready, while it connects, and offline': async ({ client, track }) => {
    const lazy = client({ lazyConnect: true });
    await track('lazy', lazy.pipeline().set('k', 'v').get('k').exec());
    const connecting = client({}, { name: 'connecting' });
    const recorded = connecting.multi().incr('n').get('n');
    await track('connecting', recorded.exec());
    const refusing = client({ enableOfflineQueue: false, lazyConnect: true }, { name: 'refusing' });
    await track('refused', refusing.pipeline().get('k').get('n').exec());
    await track('refused multi', refusing.multi().get('k').exec());
    await track('ready', connecting.pipeline().get('n').exec());
  },

  'recorded while ready, executed when the client is not': async ({ ready, track }) => {
    const client = await ready();
    const pipeline = client.pipeline().set('k', 'v').get('k');
    const transaction = client.multi().incr('n').get('n');
    const late = client.multi().incr('n').hgetall('h');
    client.disconnect();
    await track('pipeline', pipeline.exec());
    await track('transaction', transaction.exec());
    await client.connect();
    await track('late', late.exec());
    await track('twice', late.exec());
  },
});

describe.each(HOSTS)('$name: call() with a name that is not text', (host) => {
  it.each([123, null, undefined, ['get', 'k'], Symbol('name')])('%o fails as on a plain client', async (name) => {
    await expectAsPlain(async (kind) => {
      const errors: string[] = [];
      for (const made of ['pipeline', 'multi'] as const) {
        const client = await connectAs(kind, host, redisUrl());
        try {
          await (method(client[made]() as Pipeline, 'call')(name) as Pipeline).exec();
        } catch (error) {
          errors.push(String(error));
        }
      }
      return errors;
    });
  });
});
