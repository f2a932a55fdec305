import fc from 'fast-check';
import { anyString } from '../any-string.js';
import type { Call } from './command-table.js';
import { LOOKALIKE_KEYS } from './fixture.js';
import { TEMPLATES } from './program-templates.js';
import {
  FIELDS,
  FLAT_HOSTILE,
  HOSTILE,
  INTEGERS,
  KEYS,
  LARGE_VALUES,
  PAIRS,
  SCORES,
  TIMES,
  VALUES,
  WIDTHS,
} from './program-values.js';
import { WRAPPER_NAMES, type Wrapper } from './wrappers.js';

/** What happens between one step and the next. */
export type Gap = 'nothing' | 'await' | 'microtask' | 'nextTick' | 'immediate';

/** Transactions whose commands are issued one by one. */
const ONE_BY_ONE = ['multi unpiped', 'multi called', 'multi called in a pipeline'] as const;

export type BatchForm = 'pipeline' | 'pipeline array' | 'multi' | 'multi array' | (typeof ONE_BY_ONE)[number];

export type Step = {
  readonly gap: Gap;
  /** What the client is behind, if anything. */
  readonly through: Wrapper | undefined;
} & (
  | {
      readonly kind: 'command';
      readonly how: 'method' | 'callback' | 'call';
      readonly call: Call;
      readonly times: number;
    }
  | { readonly kind: 'script'; readonly call: Call }
  | {
      readonly kind: 'batch';
      readonly form: BatchForm;
      readonly discard: boolean;
      readonly calls: readonly Call[];
      readonly wrapping: Wrapping;
    }
  /** Shows the client as text. */
  | { readonly kind: 'show' }
  | { readonly kind: 'select'; readonly db: unknown }
);

/** How the object is held that `pipeline()` or `multi()` gives. */
export interface Wrapping {
  /** What it is behind; `derived` from it by `Object.create`, which a host's transaction does not bear. */
  readonly wrapper: Wrapper | 'derived' | undefined;
  /** Begun on the object, continued behind the wrapper. */
  readonly midway: boolean;
  /** Shown as text before it is executed. */
  readonly shown: boolean;
}

export interface Program {
  /** Whether the server knows the defined scripts already. */
  readonly scriptsLoaded: boolean;
  /** Whether argument transformers that count are registered with the host. */
  readonly transformed: boolean;
  readonly steps: readonly Step[];
}

/** How many commands a program issues. */
export function commandCount(program: Program): number {
  const counts = program.steps.map((step) =>
    step.kind === 'batch' ? step.calls.length + 2 : step.kind === 'command' ? step.times : step.kind === 'show' ? 0 : 1,
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** About how many bytes of values a program sends. */
export function byteCount(program: Program): number {
  const size = (value: unknown): number =>
    typeof value === 'string' || Buffer.isBuffer(value)
      ? Buffer.byteLength(value)
      : Array.isArray(value)
        ? value.reduce((sum: number, item) => sum + size(item), 0)
        : 16;
  return program.steps.reduce((sum, step) => {
    if (step.kind === 'select' || step.kind === 'show') return sum + 32;
    const calls = step.kind === 'batch' ? step.calls : [step.call];
    const times = step.kind === 'command' ? step.times : 1;
    return sum + times * calls.reduce((bytes, call) => bytes + 32 + size(call), 0);
  }, 0);
}

const POOLS: Record<string, readonly unknown[]> = {
  k: KEYS,
  v: VALUES,
  f: FIELDS,
  i: INTEGERS,
  s: SCORES,
  t: TIMES,
  m: PAIRS,
};

const placeholder = (token: string, hostile: readonly unknown[]): fc.Arbitrary<unknown> => {
  const pool = POOLS[token];
  if (pool === undefined) {
    return fc.constant(token);
  }
  // A wild value as a time could be a short one, and the outcome a matter of luck.
  if (token === 't') {
    return fc.constantFrom(...pool);
  }
  const wild = { weight: 1, arbitrary: fc.constantFrom(...hostile) };
  const usual = { weight: 24, arbitrary: fc.constantFrom(...pool) };
  return token === 'v'
    ? fc.oneof(
        usual,
        wild,
        { weight: 4, arbitrary: anyString(12) },
        { weight: 3, arbitrary: bytes },
        { weight: 1, arbitrary: fc.constantFrom(...LARGE_VALUES) },
      )
    : fc.oneof(usual, wild);
};

const bytes = fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array));

const callOf = (template: string, hostile: readonly unknown[]): fc.Arbitrary<Call> => {
  const [name = '', ...tokens] = template.split(' ');
  const args = fc.tuple(...tokens.map((token) => placeholder(token, hostile)));
  const timed = name.startsWith('b') && tokens.at(-1) === '0.001';
  // The host's `exec` takes its first argument for the callback, and then no other one is called.
  const exact = timed || name === 'exec';
  const arity = exact ? fc.constant('right') : fc.constantFrom(...Array(30).fill('right'), 'fewer', 'more', 'array');
  const suffix = name === 'exec' ? fc.constant('') : fc.constantFrom('', '', '', 'Buffer');
  return fc.tuple(args, arity, suffix, fc.constantFrom(...VALUES)).map(([list, kind, ending, extra]): Call => {
    const full = `${name}${ending}`;
    switch (kind) {
      case 'fewer':
        return withFewFields([full, ...list.slice(0, -1)]);
      case 'more':
        return withFewFields([full, ...list, extra]);
      case 'array':
        return withFewFields([full, list]);
      default:
        return withFewFields([full, ...list]);
    }
  });
};

const MOST_FIELDS = 4_096;

/**
 * Host: `hset(key, buffer)` sends a field for each byte. A hash that stays a list takes Redis time that grows with the
 * square of their number: with 262,144 of them, minutes.
 */
function withFewFields([name, ...args]: Call): Call {
  if (!/^hm?set/.test(name)) return [name, ...args];
  const cut = (arg: unknown): unknown => {
    if (Buffer.isBuffer(arg)) return arg.subarray(0, MOST_FIELDS);
    return Array.isArray(arg) ? arg.map(cut) : arg;
  };
  return [name, ...args.map(cut)];
}

const lookalikeReads: readonly Call[] = [
  ...LOOKALIKE_KEYS.flatMap((key): Call[] => [
    ['get', key],
    ['get', key],
    ['getBuffer', key],
    ['hget', 'lookalikes', key],
  ]),
  // Encoded exactly, and shareable: what follows is joined to it.
  ['strlen', Buffer.from('str')],
];

/** Reads that a program is likely to make more than once: what `shareReads` is about. */
const popular: readonly Call[] = [
  ['get', 'str'],
  ['get', 'num'],
  ['getBuffer', 'str'],
  ['hgetall', 'hash'],
  ['hgetallBuffer', 'hash'],
  ['mgetBuffer', 'str', 'missing'],
  ['lrangeBuffer', 'list', 0, -1],
  ['incr', 'list'],
  ['hget', 'list', 'f'],
];

/** More arguments than most commands have. */
const wide: fc.Arbitrary<Call> = fc
  .tuple(
    fc.constantFrom('mget', 'del', 'exists', 'sadd', 'rpush'),
    fc.constantFrom(...WIDTHS),
    fc.constantFrom(...KEYS, ...VALUES),
  )
  .map(([name, width, value]) => [name, 'k1', ...Array<unknown>(width - 1).fill(value)]);

const anyCall = (hostile: readonly unknown[]): fc.Arbitrary<Call> =>
  fc.oneof(
    { weight: 60, arbitrary: fc.oneof(...TEMPLATES.map((template) => callOf(template, hostile))) },
    { weight: 12, arbitrary: fc.constantFrom(...popular) },
    { weight: 1, arbitrary: wide },
  );

const gap = fc.constantFrom<Gap>(
  ...Array<Gap>(12).fill('nothing'),
  'await',
  'await',
  'microtask',
  'nextTick',
  'immediate',
);

/** The same read twice in a row is what `shareReads` is about. */
const times = fc.constantFrom(...Array<number>(10).fill(1), 2, 3);

// ioredis itself loses count of its replies when an argument throws inside a pipeline that is being written.
const batched = fc
  .tuple(anyCall(FLAT_HOSTILE), times)
  .map(([call, count]) => Array<Call>(count).fill(call.map((arg) => (hasText(arg) ? arg : 'x')) as unknown as Call));

/**
 * What begins and ends transactions is refused with an argument, and they stay as they are; then reads that would be
 * put together.
 */
const refusedEnds = fc
  .constantFrom<Call>(['discard', 'x'], ['unwatch', 'x'], ['call', 'Discard', 'x'], ['call', 'multi', 'x'])
  .map((refused): Call[] => [refused, ['get', 'str'], ['get', 'num']]);

function hasText(value: unknown): boolean {
  try {
    String(value);
    return true;
  } catch {
    return false;
  }
}

/** Commands of a client that is behind a wrapper are not fast. */
const through = fc.constantFrom<Wrapper | undefined>(
  ...Array<undefined>(20 * WRAPPER_NAMES.length).fill(undefined),
  ...WRAPPER_NAMES,
);

const wrapping = fc.record<Wrapping>({
  wrapper: fc.constantFrom(...Array<undefined>(12).fill(undefined), 'derived', ...WRAPPER_NAMES),
  midway: fc.boolean(),
  shown: fc.constantFrom(false, false, false, true),
});

const command = fc.record<Step & { kind: 'command' }>({
  kind: fc.constant('command'),
  gap,
  through,
  how: fc.constantFrom('method', 'method', 'method', 'method', 'method', 'method', 'callback', 'call'),
  call: anyCall(HOSTILE),
  times,
});

/** As many commands as `maxBatchSize` allows, and one more. */
const burst = fc.record<Step & { kind: 'command' }>({
  kind: fc.constant('command'),
  gap,
  through,
  how: fc.constantFrom('method', 'method', 'callback'),
  call: fc.constantFrom<Call>(['get', 'é'], ['set', 'k1', 'é'], ['append', 'k2', 'x'], ['incr', 'k3']),
  times: fc.constantFrom(1_000, 1_001),
});

const batch = fc.record<Step & { kind: 'batch' }>({
  kind: fc.constant('batch'),
  gap,
  through,
  wrapping,
  form: fc.constantFrom<BatchForm>('pipeline', 'pipeline array', 'multi', 'multi array', ...ONE_BY_ONE),
  discard: fc.constantFrom(false, false, false, true),
  calls: fc
    .array(fc.oneof({ weight: 8, arbitrary: batched }, { weight: 1, arbitrary: refusedEnds }), { maxLength: 6 })
    .map((runs) => runs.flat()),
});

const script = fc.record<Step & { kind: 'script' }>({
  kind: fc.constant('script'),
  gap,
  through,
  call: fc.oneof(
    ...['bump k i', 'bump k', 'pair k k v v', 'store k v', 'loose 1 k v', 'loose 0', 'broken k'].map((template) =>
      callOf(template, FLAT_HOSTILE),
    ),
  ),
});

const select = fc.record<Step & { kind: 'select' }>({
  kind: fc.constant('select'),
  gap,
  through,
  db: fc.constantFrom<unknown>('home', 'other', 'home', 'other', 'home', 99, -1, 'x', null),
});

const show = fc.constant<Step>({ kind: 'show', gap: 'nothing', through: undefined });

export const asCommand = (call: Call): Step => ({
  kind: 'command',
  gap: 'nothing',
  through: undefined,
  how: 'method',
  call,
  times: 1,
});

/** Reads of keys that look alike, in one batch. */
const lookalikes = fc
  .array(fc.constantFrom(...lookalikeReads), { minLength: 2, maxLength: 4 })
  .map((calls) => calls.map(asCommand));

const one = (step: fc.Arbitrary<Step>): fc.Arbitrary<Step[]> => step.map((each) => [each]);

const programsOf = (batches: fc.Arbitrary<Step>): fc.Arbitrary<Program> =>
  fc.record({
    scriptsLoaded: fc.boolean(),
    transformed: fc.boolean(),
    steps: fc
      .array(
        fc.oneof(
          { weight: 400, arbitrary: one(command) },
          { weight: 1, arbitrary: one(burst) },
          { weight: 20, arbitrary: one(batches) },
          { weight: 20, arbitrary: one(script) },
          { weight: 10, arbitrary: one(select) },
          { weight: 10, arbitrary: lookalikes },
          { weight: 10, arbitrary: one(show) },
        ),
        { minLength: 1, maxLength: 80, size: 'max' },
      )
      .map((runs) => runs.flat()),
  });

export const programs = programsOf(batch);

/** What is sent in between joins no transaction: there it would be answered with QUEUED. */
export const meddledPrograms = programsOf(batch.filter(({ form }) => !ONE_BY_ONE.some((each) => each === form)));

/**
 * For a connection of its own: once text beyond ASCII was sent, a connection encodes all text exactly for a while, and
 * what goes wrong with text that was taken for ASCII shows no more.
 */
export const firstPrograms: fc.Arbitrary<Program> = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: lookalikes },
      { weight: 1, arbitrary: fc.constantFrom(...popular).map((call): Step[] => [asCommand(call)]) },
      { weight: 1, arbitrary: fc.constant<Step[]>([asCommand(['set', 'str', 'w'])]) },
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((runs) => ({ scriptsLoaded: false, transformed: false, steps: runs.flat() }));
