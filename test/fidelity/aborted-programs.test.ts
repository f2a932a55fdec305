import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { expect } from 'vitest';
import { cold } from '../helpers/cold.js';
import { describePrograms, SEED } from '../helpers/fidelity/profiles.js';
import { type CoalescedClient, HOSTS, ready } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { share } from '../helpers/share.js';

const CALLERS = 4;
/** Its own value, or the reason of its own signal. */
const RIGHT = 'right';
const REASONS = Array.from({ length: CALLERS }, (_, caller) => new Error(`caller ${caller} has gone`));
const prefix = uniquePrefix('aborted');

/** Each asks for a value that no other call of its program asks for. */
const KINDS: Readonly<Record<string, (client: CoalescedClient, text: string) => Promise<unknown>>> = {
  echo: (client, text) => client.echo(text),
  'echo of bytes': (client, text) => client.echo(Buffer.from(text) as never),
  'set and get': async (client, text) => {
    const [, value] = await Promise.all([client.set(`${prefix}${text}`, text), client.get(`${prefix}${text}`)]);
    return value;
  },
  cold: (client, text) => cold(client, 'ECHO', text),
  script: (client, text) => (client as CoalescedClient & { same(text: string): Promise<unknown> }).same(text),
  pipeline: async (client, text) => (await client.pipeline().echo(text).exec())?.[0]?.[1],
  transaction: async (client, text) => (await client.multi().echo(text).ping().exec())?.[0]?.[1],
  'several reads': async (client, text) => {
    const keys = [1, 2, 3].map((index) => `${prefix}${text}:${index}`);
    await client.mset(...keys.flatMap((key) => [key, key]));
    const values = await Promise.all(keys.map((key) => client.get(key)));
    return String(values) === String(keys) ? text : values;
  },
  'the same read': async (client, text) => `${text}${await client.get(`${prefix}nothing`)}`,
};

const call = fc.record({
  kind: fc.constantFrom(...Object.keys(KINDS)),
  text: fc.constantFrom('ascii', 'é', 'x'.repeat(5_000)),
  /** Undefined: a call of the client itself. */
  caller: fc.option(fc.nat(CALLERS - 1), { nil: undefined }),
});
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ call }) },
  { weight: 2, arbitrary: fc.record({ abort: fc.nat(CALLERS - 1) }) },
  { weight: 1, arbitrary: fc.record({ turns: fc.integer({ min: 1, max: 3 }) }) },
);
const programs = fc.array(step, { minLength: 5, maxLength: 40 });

const VARIANTS: readonly CoalesceOptions[] = [
  {},
  { shareReads: true },
  { fuseReads: true },
  { maxInFlight: 3 },
  { maxBatchSize: 2 },
];

// Each variant on one host, in turn: they differ in nothing that is tested here.
const cases = HOSTS.flatMap((host, index) =>
  share(VARIANTS, HOSTS.length, SEED + index).map(
    (options) => [`${host.name}, ${JSON.stringify(options)}`, { host, options }] as const,
  ),
);

describePrograms({
  name: 'aborted programs',
  expects: '%s: random aborts disturb nobody else',
  cases,
  programs,
  runs: 30,
  shrinks: true,
  start: async () => undefined,
  stop: async () => undefined,
  prepare: async (_, { host, options }) => {
    const proxy = await startProxy(redisUrl());
    proxy.cutRepliesInto(7);
    const client = await ready(host.createCoalesced(proxy.url, {}, options));
    client.defineCommand('same', { numberOfKeys: 0, lua: 'return ARGV[1]' });
    return [
      async (program) => {
        const controllers = Array.from({ length: CALLERS }, () => new AbortController());
        const views = controllers.map(({ signal }) => client.coalescer.withOptions({ signal }));
        const results: Promise<string>[] = [];
        for (const [index, part] of program.entries()) {
          if ('abort' in part) controllers[part.abort]?.abort(REASONS[part.abort]);
          else if ('turns' in part) for (let left = part.turns; left > 0; left -= 1) await turn();
          else {
            const { kind, text, caller } = part.call;
            const own = `${index}:${text}`;
            const expected = kind === 'the same read' ? `${own}null` : own;
            const promise = KINDS[kind]?.(caller === undefined ? client : (views[caller] as CoalescedClient), own);
            results.push(
              (promise as Promise<unknown>).then(
                (value) => (value === expected ? RIGHT : `${kind} of ${own}: got ${value}`),
                (error) => (caller !== undefined && error === REASONS[caller] ? RIGHT : `${kind} of ${own}: ${error}`),
              ),
            );
          }
        }
        expect((await Promise.all(results)).filter((result) => result !== RIGHT)).toEqual([]);
        expect(await client.echo('next')).toBe('next');
      },
      () => expect(client.coalescer.stats().inFlight).toBe(0),
    ];
  },
});
