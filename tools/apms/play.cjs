// What the application does with a client: everything twice, under requests of the agent's, then bursts for the
// figures.
const { performance } = require('node:perf_hooks');

const BURST = 200;
const ROUNDS = 30;

/** @param {{ Redis: new (url: string) => import('ioredis').Redis }} host */
exports.play = async ({ Redis }) => {
  const { apm } = globalThis;
  const { COALESCE, REDIS_URL } = process.env;
  let redis = new Redis(REDIS_URL);
  if (COALESCE !== undefined) redis = require(COALESCE).coalesce(redis);
  await redis.set('key', 'text');
  await redis.hset('hash', { field: '1' });
  await redis.echo('warm');
  const answers = [];
  const request = async () => {
    const burst = Array.from({ length: 20 }, () => redis.get('key'));
    const others = [redis.set('other', 1), redis.incr('other'), redis.hgetall('hash'), redis.call('STRLEN', 'key')];
    const failing = redis.incr('key').catch(({ message }) => message);
    answers.push(await Promise.all([...burst, ...others, failing]));
    answers.push(await redis.pipeline().get('key').incr('other').exec());
    answers.push(await redis.multi().set('other', 5).incr('other').exec());
    answers.push(await redis.eval('return ARGV[1]', 0, 'script'));
  };
  for (let index = 0; index < 5; index += 1) await apm.within(`request ${index}`, request);
  const spans = await apm.spans();
  const { commands, fastCommands } = redis.coalescer?.stats() ?? {};
  const micros = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await apm.within('burst', async () => {
      const before = process.cpuUsage();
      await Promise.all(Array.from({ length: BURST }, () => redis.get('key')));
      const { user, system } = process.cpuUsage(before);
      micros.push((user + system) / BURST);
    });
    apm.forget();
  }
  const after = redis.coalescer?.stats();
  console.log(
    `\n${JSON.stringify({
      answers,
      spans,
      // Of the second half, when all is compiled.
      micros: Math.min(...micros.slice(ROUNDS / 2)),
      fast: after && (after.fastCommands - fastCommands) / (after.commands - commands),
      unknown: after?.unknownClient,
      ms: performance.now(),
    })}`,
  );
  redis.disconnect();
  // What agents print when the process ends comes first.
  setTimeout(() => process.exit(), 500);
};
