import { once } from 'node:events';
import { Redis as Redis6, type RedisOptions } from 'ioredis';
import { type Coalesced, type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import Redis5 from 'ioredis5';
import { Redis as Valkey } from 'iovalkey';
import { onTestFinished } from 'vitest';

/** Every host's client, under the type of the newest; tests keep to what all have. */
export type Client = Redis6;
export type CoalescedClient = Client & Coalesced;
type ClientClass = { new (url: string, options: RedisOptions): Client; readonly prototype: Client };

/** A package whose clients can be coalesced. */
export interface Host {
  readonly name: 'ioredis 6' | 'ioredis 5' | 'iovalkey';
  readonly Redis: ClientClass;
  /** What earlier versions do not have; `npm run test:matrix` runs them too. */
  readonly features: { readonly socketTimeout: boolean; readonly tracing: boolean };
  /** A plain client that is disconnected when the running test ends. A `commandTimeout` holds once it is ready. */
  create(url: string, options?: RedisOptions): Client;
  /** The same, coalesced. */
  createCoalesced(url: string, options?: RedisOptions, coalesceOptions?: CoalesceOptions): CoalescedClient;
}

export const ioredis6 = host('ioredis 6', Redis6 as ClientClass);
export const ioredis5 = host('ioredis 5', Redis5 as unknown as ClientClass);
export const iovalkey = host('iovalkey', Valkey as unknown as ClientClass);

export const HOSTS: readonly Host[] = [ioredis6, ioredis5, iovalkey];

function host(name: Host['name'], Redis: ClientClass): Host {
  const create: Host['create'] = (url, { commandTimeout, ...options } = {}) => {
    const client = endWithTest(new Redis(url, options));
    if (commandTimeout !== undefined) {
      // Not for the handshake: its commands would have it too, and a busy machine may keep them waiting.
      client.prependOnceListener('ready', () => {
        client.options.commandTimeout = commandTimeout;
      });
    }
    return client;
  };
  return {
    name,
    Redis,
    features: {
      socketTimeout: 'setSocketTimeout' in Redis.prototype,
      tracing: /trac/i.test(String(Redis.prototype.sendCommand)),
    },
    create,
    createCoalesced: (url, options, coalesceOptions) => coalesce(create(url, options), coalesceOptions),
  };
}

/** Disconnects a client when the running test ends; its errors are the test's to look at, if it wants to. */
export function endWithTest<T extends Client>(client: T): T {
  client.on('error', () => {});
  onTestFinished(() => client.disconnect());
  return client;
}

export async function ready<T extends Client>(client: T): Promise<T> {
  if (client.status !== 'ready') await once(client, 'ready');
  return client;
}

/** What a promise came to, in a form that compares equal for equal outcomes of different clients. */
export type Outcome = { readonly value: unknown } | { readonly error: string; readonly command: unknown } | 'open';

export async function outcomes(promises: readonly Promise<unknown>[]): Promise<Outcome[]> {
  return (await Promise.allSettled(promises)).map(outcomeOf);
}

/**
 * The same for promises of which some may never settle: what they have come to once all are settled, or after `ms` of
 * this process's event loop: a time in which a busy machine does not let it run counts as little, however long it is.
 * Where all should settle, a long time costs nothing: see {@link LONG_ENOUGH}.
 */
export async function outcomesWithin(ms: number, promises: readonly Promise<unknown>[]): Promise<Outcome[]> {
  const found: Outcome[] = promises.map(() => 'open');
  const settled = promises.map((promise, index) =>
    promise.then(
      (value) => {
        found[index] = outcomeOf({ status: 'fulfilled', value });
      },
      (reason: unknown) => {
        found[index] = outcomeOf({ status: 'rejected', reason });
      },
    ),
  );
  let open = true;
  const all = Promise.all(settled).then(() => {
    open = false;
  });
  for (let waitedMs = 0; open && waitedMs < ms; waitedMs += TICK_MS) await Promise.race([all, sleep(TICK_MS)]);
  return found;
}

const TICK_MS = 5;

/** Milliseconds within which everything settles that ever will, on a machine that is slow at the moment. */
export const LONG_ENOUGH = 10_000;

function outcomeOf(result: PromiseSettledResult<unknown>): Outcome {
  if (result.status === 'fulfilled') return { value: result.value };
  const error = result.reason as Error & { command?: unknown };
  return { error: `${error.constructor.name}/${error.name}: ${error.message}`, command: error.command };
}

/** Timers as they were before any test replaced them. */
const { setTimeout } = globalThis;

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

/** Waits until a schedule function that was asked for a flush has been called. */
export const ticked = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

/** Waits until `condition` holds. */
export async function until(condition: () => boolean | Promise<boolean>, what: string, ms = 20_000): Promise<void> {
  const deadline = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`expected within ${ms} ms: ${what}`);
    await sleep(2);
  }
}
