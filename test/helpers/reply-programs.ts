import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import type { Redis as IORedis } from 'ioredis';
import type { Coalesced } from 'ioredis-coalesce';
import { connectFake, disconnectFake, type FakeOptions, type Seen, Witness } from './fake-connection.js';
import { anyReply2, anyReply3 } from './reply-cases.js';
import { aggregate, bulk, bytes } from './resp.js';

/** One command and its reply; without a command, a push that answers none. */
export type Step = { readonly command?: readonly [method: string, ...args: string[]]; readonly reply: string | Buffer };

export interface Outcome {
  readonly seen: Seen[];
  readonly written: string;
  /** Replies decoded by us; 0 for a plain client. */
  readonly fast: number;
}

export const PUSH: Step = {
  reply: aggregate('>', [bulk('message'), bulk('news'), bulk('it is late')]),
};

export const SUBSCRIBE: Step = {
  command: ['subscribe', 'news'],
  reply: aggregate('>', [bulk('subscribe'), bulk('news'), ':1\r\n']),
};

export const repliesOf = (steps: readonly Step[]): Buffer => Buffer.concat(steps.map(({ reply }) => bytes(reply)));

export function issue(client: IORedis, witness: Witness, steps: readonly Step[]): void {
  const methods = client as unknown as Record<string, (...args: string[]) => Promise<unknown>>;
  steps.forEach(({ command }, index) => {
    if (command === undefined) return;
    const [method, ...args] = command;
    witness.watch(
      `${index} ${method}`,
      (methods[method] as (...args: string[]) => Promise<unknown>).apply(client, args),
    );
  });
}

/** Issues every command in one tick, then feeds the chunks; what was not answered is rejected at the end. */
export async function runProgram(
  options: FakeOptions,
  steps: readonly Step[],
  chunks: readonly Buffer[],
  atOnce = false,
): Promise<Outcome> {
  const { client, socket } = await connectFake(options);
  const witness = new Witness(client);
  issue(client, witness, steps);
  await turn();
  for (const chunk of chunks) {
    socket.feed(chunk);
    // Callers see each chunk's replies before the next chunk comes, unless all come in one turn.
    if (!atOnce) await Promise.resolve();
  }
  await turn();
  const fast = options.coalesce === undefined ? 0 : (client as IORedis & Coalesced).coalescer.stats().replies.fast;
  await disconnectFake({ client, socket });
  return { seen: witness.seen, written: socket.written.toString('latin1'), fast };
}

/** Commands of every kind with any replies: what comes back need not be what the command would get. */
export function anyProgram(protocol: 2 | 3): fc.Arbitrary<Step[]> {
  const value = protocol === 3 ? anyReply3 : anyReply2;
  const reply = fc.oneof(
    { weight: 6, arbitrary: value },
    fc.constantFrom('-ERR failed\r\n', '-\r\n', '-NOSCRIPT none\r\n').map(bytes),
    fc.integer({ min: 1000, max: 20_000 }).map((length) => bulk('y'.repeat(length))),
    ...(protocol === 3 ? [fc.constant(bytes('!7\r\nERR bad\r\n'))] : []),
  );
  const command = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.constantFrom(
        ['get', 'k'] as const,
        ['getBuffer', 'k'] as const,
        ['incr', 'k'] as const,
        ['mget', 'a', 'b'] as const,
        ['lrangeBuffer', 'l', '0', '-1'] as const,
        ['hgetall', 'h'] as const,
        ['zrange', 'z', '0', '-1', 'WITHSCORES'] as const,
        ['set', 'k', 'żółw'] as const,
      ),
    },
    {
      weight: 3,
      arbitrary: fc.constantFrom(['call', 'foo', 'x'] as const, ['callBuffer', 'bar'] as const, ['info'] as const),
    },
  );
  const step: fc.Arbitrary<Step> = fc.record({ command, reply });
  return protocol === 3
    ? fc
        .array(fc.oneof({ weight: 5, arbitrary: step }, fc.constant(PUSH)), { minLength: 1, maxLength: 25 })
        .map(subscribed)
    : fc.array(step, { minLength: 1, maxLength: 25 });
}

/** Pushes reach listeners only on a client that has subscribed. */
function subscribed(steps: Step[]): Step[] {
  return steps.includes(PUSH) ? [SUBSCRIBE, ...steps] : steps;
}
