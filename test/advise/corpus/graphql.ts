/**
 * Resolvers that ask Redis one by one, and through a loader, which collects the keys of a tick as `dataloader` does.
 */
import { buildSchema, graphql as execute } from 'graphql';
import { type Given, RUNS } from './patterns.js';

const SCHEMA = buildSchema(`
  type Author { name: String }
  type Post { title: String, author: Author }
  type Query { post(run: Int): Post, summary(run: Int): String, posts(run: Int): [Post], settings(run: Int): String }
  type Mutation { rename(run: Int): String, publish(run: Int): String }`);

function loader(load: (keys: string[]) => Promise<(string | null)[]>): (key: string) => Promise<string | null> {
  let waiting: { key: string; resolve(value: string | null): void; reject(error: unknown): void }[] = [];
  const loadAll = async () => {
    const batch = waiting;
    waiting = [];
    try {
      const values = await load(batch.map(({ key }) => key));
      for (const [index, { resolve }] of batch.entries()) resolve(values[index] ?? null);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };
  return (key) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) process.nextTick(loadAll);
      waiting.push({ key, resolve, reject });
    });
}

function root({ redis, prefix }: Given) {
  const posts = loader((keys) => redis.mget(keys));
  // advice: argument
  const authors = loader((keys) => redis.mget(keys));
  return {
    async post({ run }: { run: number }) {
      const { title, author } = await redis.hgetall(`${prefix}post:${run}`);
      return {
        title,
        async author() {
          // advice: argument
          return redis.hgetall(`${prefix}${author}`);
        },
      };
    },
    async summary({ run }: { run: number }) {
      const name = await redis.hget(`${prefix}user:${run}`, 'name');
      // advice: together
      return `${name} ${await redis.llen(`${prefix}cart:${run}`)}`;
    },
    posts: ({ run }: { run: number }) =>
      [run, run + 1, run + 2].map(async (each) => {
        const author = await posts(`${prefix}author-of:${each}`);
        return { title: author, author: async () => ({ name: await authors(`${prefix}name-of:${author}`) }) };
      }),
    settings: ({ run }: { run: number }) => redis.get(`${prefix}session:${run}`),
    rename: ({ run }: { run: number }) => redis.hset(`${prefix}renamed:${run}`, 'name', 'Ada'),
    // Fields of a mutation are resolved in series.
    // advice: leave
    publish: ({ run }: { run: number }) => redis.publish(`${prefix}renamed`, `${run}`),
  };
}

const QUERIES = [
  'query ($run: Int) { post(run: $run) { title author { name } } }',
  'query ($run: Int) { summary(run: $run) }',
  'query ($run: Int) { posts(run: $run) { title author { name } } }',
  'query ($run: Int) { settings(run: $run) other: settings(run: $run) }',
  'mutation ($run: Int) { rename(run: $run) publish(run: $run) }',
];

export async function graphql(given: Given): Promise<void> {
  const rootValue = root(given);
  for (const source of QUERIES) {
    for (let run = 0; run < RUNS; run += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      const { errors } = await execute({ schema: SCHEMA, source, rootValue, variableValues: { run } });
      if (errors !== undefined) throw errors[0];
    }
  }
}
