import { inspect } from 'node:util';
import { CallCounts } from './call-counts.js';
import { type Call, sorted } from './command-table.js';
import { type Normalise, Outcomes } from './outcomes.js';
import type { Gap, Program, Step, Wrapping } from './program.js';
import { type Client, invoke } from './variants.js';
import { wrapped } from './wrappers.js';

export const SCRIPTS: Readonly<Record<string, { lua: string; numberOfKeys?: number }>> = {
  bump: { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1] or 1)" },
  pair: { numberOfKeys: 2, lua: 'return {KEYS[2], KEYS[1], ARGV[1], #ARGV, {false, 1}}' },
  store: { numberOfKeys: 1, lua: "redis.call('SET', KEYS[1], ARGV[1]); return redis.call('GET', KEYS[1])" },
  loose: { lua: 'return {KEYS, ARGV}' },
  broken: { numberOfKeys: 1, lua: "return redis.call('LPUSH', KEYS[1])" },
};

/** Their text, for `Admin.reset`. */
export const LUA = Object.values(SCRIPTS).map(({ lua }) => lua);

// The order of a set's members is its hash table's, which each read may change a little: shared reads are fewer.
const UNORDERED = /^(smembers|sinter|sunion|sdiff)(Buffer)?$/;

const sortedDeep: Normalise = (value) => (Array.isArray(value) ? sorted(value.map(sortedDeep)) : value);

const normaliseOf = (calls: readonly Call[]): Normalise | undefined =>
  calls.some(([name]) => UNORDERED.test(name)) ? sortedDeep : undefined;

export function defineScripts(client: Client): Client {
  for (const [name, definition] of Object.entries(SCRIPTS)) {
    client.defineCommand(name, definition);
  }
  return client;
}

/**
 * Runs a program from the first database given; `other` in a `select` is the second.
 *
 * @param between - called before each step.
 */
export async function runProgram(
  client: Client,
  program: Program,
  dbs: readonly [home: number, other: number],
  settlesWithin = 3_000,
  between?: (outcomes: Outcomes) => void,
): Promise<Outcomes> {
  const outcomes = new Outcomes();
  const counts = new CallCounts();
  for (const step of program.steps) {
    between?.(outcomes);
    const settled = issue(client, step, dbs, outcomes, counts);
    // A script that the server does not know is sent a second time, after what followed it.
    const gap = step.kind === 'script' && !program.scriptsLoaded ? 'await' : step.gap;
    if (!(await wait(gap, settled))) {
      break;
    }
  }
  await outcomes.settled(settlesWithin);
  void outcomes.track('how often counted arguments were read', () => counts.reads);
  return outcomes;
}

/** Issues a step; the promise settles when all of it has. */
export function issue(
  itself: Client,
  step: Step,
  dbs: readonly [number, number],
  outcomes: Outcomes,
  counts: CallCounts,
): Promise<unknown> {
  const client = wrapped(itself, step.through);
  switch (step.kind) {
    case 'show':
      return outcomes.track('shown', () => show(client));
    case 'select': {
      const db = step.db === 'home' ? dbs[0] : step.db === 'other' ? dbs[1] : step.db;
      return outcomes.track(`select ${String(step.db)}`, () => invoke(client, 'select', [db]));
    }
    case 'script':
      return issueCall(client, step.call, 'method', outcomes, counts);
    case 'command': {
      const runs = Array.from({ length: step.times }, () => issueCall(client, step.call, step.how, outcomes, counts));
      return Promise.all(runs);
    }
    case 'batch':
      return issueBatch(client, madeStep(step, counts), outcomes);
  }
}

function issueCall(
  client: Client,
  call: Call,
  how: 'method' | 'callback' | 'call',
  outcomes: Outcomes,
  counts: CallCounts,
): Promise<unknown> {
  const [name, ...given] = call;
  const normalise = normaliseOf([call]);
  const args = given.map((arg) => (Buffer.isBuffer(arg) ? Buffer.from(arg) : counts.made(arg)));
  const settled = outcomes.track(
    name,
    () => {
      if (how === 'callback') {
        const called = outcomes.callback(`callback of ${name}`, normalise);
        return callOrNote(called, () => invoke(client, name, [...args, called]));
      }
      return how === 'call'
        ? invoke(client, 'call', [name.replace(/Buffer$/, ''), ...args])
        : invoke(client, name, args);
    },
    normalise,
  );
  reuse(args);
  return settled;
}

type BatchStep = Step & { kind: 'batch' };

function madeStep(step: BatchStep, counts: CallCounts): BatchStep {
  const calls = step.calls.map(([name, ...args]): Call => [name, ...args.map((arg) => counts.made(arg))]);
  return { ...step, calls };
}

/** A caller may put something else into its Buffers once the call has returned. */
function reuse(args: readonly unknown[]): void {
  for (const arg of args) {
    if (Buffer.isBuffer(arg)) {
      arg.fill('?');
    }
  }
}

/** A call that throws never calls back. */
function callOrNote(callback: (...args: unknown[]) => void, call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    callback('threw');
    throw error;
  }
}

function issueBatch(client: Client, step: BatchStep, outcomes: Outcomes): Promise<unknown> {
  const normalise = normaliseOf(step.calls);
  switch (step.form) {
    case 'pipeline':
    case 'multi':
      return outcomes.track(
        `${step.form} of ${names(step.calls)}`,
        () => {
          const { form, calls, wrapping } = step;
          let chain = invoke(client, form, []) as Client;
          const from = wrapping.midway && wrapping.wrapper !== 'derived' ? Math.ceil(calls.length / 2) : 0;
          for (const [index, [name, ...args]] of calls.entries()) {
            if (index === from) chain = hold(chain, wrapping, form === 'pipeline');
            invoke(chain, name, args);
          }
          if (from >= calls.length) chain = hold(chain, wrapping, form === 'pipeline');
          if (wrapping.shown) show(chain);
          return invoke(chain, 'exec', []);
        },
        normalise,
      );
    case 'pipeline array':
    case 'multi array':
      return outcomes.track(
        `${step.form} of ${names(step.calls)}`,
        () => {
          const method = step.form === 'multi array' ? 'multi' : 'pipeline';
          const chain = hold(invoke(client, method, [step.calls]) as Client, step.wrapping, false);
          if (step.wrapping.shown) show(chain);
          return invoke(chain, 'exec', []);
        },
        normalise,
      );
    case 'multi unpiped':
      void outcomes.track('multi', () => invoke(client, 'multi', [{ pipeline: false }]));
      break;
    case 'multi called':
      void outcomes.track('call MULTI', () => invoke(client, 'call', ['MULTI']));
      break;
    case 'multi called in a pipeline':
      void outcomes.track('a pipeline of call multi', () => {
        const chain = invoke(client, 'pipeline', []) as Client;
        invoke(chain, 'call', ['multi']);
        return invoke(chain, 'exec', []);
      });
      break;
  }
  for (const [name, ...args] of step.calls) {
    void outcomes.track(`${name} in ${step.form}`, () => invoke(client, name, args));
  }
  const end = step.discard ? 'discard' : 'exec';
  return outcomes.track(
    end,
    () => (step.form === 'multi unpiped' ? invoke(client, end, []) : invoke(client, 'call', [end])),
    normalise,
  );
}

function hold(chain: Client, { wrapper }: Wrapping, derivable: boolean): Client {
  if (wrapper !== 'derived') return wrapped(chain, wrapper);
  return derivable ? (Object.create(chain) as Client) : chain;
}

type QueuedItem = { readonly stream?: { readonly isPipeline?: boolean } };

/** What logs and error reports do. Host: an explicit pipeline of its own in flight cannot be shown as JSON. */
function show(value: Client): void {
  inspect(value, { depth: 4 });
  const { commandQueue } = (value.redis ?? value) as { commandQueue: { toArray(): QueuedItem[] } };
  const isHosts = (item: QueuedItem) => Object.getPrototypeOf(item) === Object.prototype && item.stream?.isPipeline;
  if (!commandQueue.toArray().some(isHosts)) JSON.stringify(value);
}

function names(calls: readonly Call[]): string {
  return calls.map(([name]) => name).join(', ');
}

/** False if what was to be awaited stays open. */
async function wait(gap: Gap, settled: Promise<unknown>): Promise<boolean> {
  switch (gap) {
    case 'nothing':
      break;
    case 'await':
      return within(settled, 3_000);
    case 'microtask':
      await Promise.resolve();
      break;
    case 'nextTick':
      await new Promise<void>((resolve) => process.nextTick(resolve));
      break;
    case 'immediate':
      await new Promise<void>((resolve) => setImmediate(resolve));
      break;
  }
  return true;
}

async function within(settled: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  const done = await Promise.race([settled.then(() => true), late]);
  clearTimeout(timer);
  return done;
}
