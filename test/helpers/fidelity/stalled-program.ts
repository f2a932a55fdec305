import fc from 'fast-check';
import type { Call } from './command-table.js';
import { type Client, invoke } from './variants.js';

/**
 * How long the connection is blocked, in milliseconds, and the time that each command has, on a machine that is quiet.
 */
const BLOCKED_MS = 600;
const COMMAND_TIMEOUT_MS = 120;
export const TOO_SLOW = 'the machine was too slow';
/** Node's timers count whole milliseconds. */
const EARLY = 3;
/**
 * Between the last timeout and the end of the blocking command; no turn may take longer, or their order is left to
 * chance.
 */
const MARGIN_MS = 150;
const PROBE_MS = 5;

/** Commands behind one that blocks the connection: those that are timed time out long before it ends. */
export interface StalledProgram {
  readonly steps: readonly {
    readonly call: Call;
    readonly timed: boolean;
    /** Milliseconds for which the turn is blocked after it, and then waits, unless it goes on. */
    readonly spin: number;
    readonly wait: number | undefined;
  }[];
}

/** The same few reads again and again, and now and then a write. */
const call = fc.constantFrom<Call>(
  ['get', 'str'],
  ['get', 'str'],
  ['get', 'é'],
  ['get', Buffer.from([0xe9])],
  ['getBuffer', 'str'],
  ['hgetall', 'hash'],
  ['set', 'k1', 'v'],
  ['call', 'GET', 'str'],
);

/** Together at most 270 ms. */
export const stalledPrograms: fc.Arbitrary<StalledProgram> = fc.record({
  steps: fc.array(
    fc.record({
      call,
      timed: fc.constantFrom(true, true, true, false),
      spin: fc.constantFrom(0, 0, 0, 5),
      wait: fc.constantFrom(undefined, undefined, 0, 0, 2, 20, 40),
    }),
    { minLength: 4, maxLength: 6 },
  ),
});

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * What became of each command: a timeout in its own time, or whatever else.
 *
 * @param patience - how many times as long as on a quiet machine the connection is blocked, and commands wait.
 */
export async function runStalled(client: Client, { steps }: StalledProgram, patience: number): Promise<string[]> {
  const blockedMs = BLOCKED_MS * patience;
  const timeoutMs = COMMAND_TIMEOUT_MS * patience;
  const options = client.options as { commandTimeout: number | undefined };
  const blocked = performance.now();
  const blocking = (invoke(client, 'blpop', ['nothing', blockedMs / 1_000]) as Promise<unknown>).catch(() => {});
  const fates: Promise<string>[] = [];
  let longestTurnMs = 0;
  let probed = performance.now();
  const probe = setInterval(() => {
    const now = performance.now();
    longestTurnMs = Math.max(longestTurnMs, now - probed - PROBE_MS);
    probed = now;
  }, PROBE_MS);
  for (const {
    call: [name, ...args],
    timed,
    spin,
    wait,
  } of steps) {
    options.commandTimeout = timed ? timeoutMs : undefined;
    const issued = performance.now();
    const reply = invoke(client, name, args) as Promise<unknown>;
    fates.push(
      reply.then(
        (value) => `${name} was answered with ${JSON.stringify(value)}`,
        ({ message }: Error) => {
          const after = performance.now() - issued;
          return `${name}: ${message}${after < timeoutMs - EARLY ? `, after ${after.toFixed(0)} ms` : ''}`;
        },
      ),
    );
    const spinning = performance.now() + spin;
    while (performance.now() < spinning);
    if (wait !== undefined) await sleep(wait);
  }
  options.commandTimeout = undefined;
  const marginMs = MARGIN_MS * patience;
  const issuedLate = performance.now() - blocked > blockedMs - timeoutMs - marginMs;
  const settled = await Promise.race([Promise.all(fates), sleep(4 * blockedMs).then(() => ['one of them stays open'])]);
  await blocking;
  clearInterval(probe);
  longestTurnMs = Math.max(longestTurnMs, performance.now() - probed - PROBE_MS);
  // Replies that come too late reach nobody; later commands get their own.
  const later = [invoke(client, 'get', ['str']), invoke(client, 'get', ['é'])];
  const values = (await Promise.all(later)).map((value) => `later: ${JSON.stringify(value)}`);
  return issuedLate || longestTurnMs > marginMs ? [TOO_SLOW] : [...settled, ...values];
}
