/**
 * Programs that want a cork to fail: on streams of all kinds, writes, ends, others who cork and replace methods, and
 * corks put on and taken off amid all that, by two copies of the code. What arrives, and what writers are told, is as
 * without.
 */
import { Duplex } from 'node:stream';
import { setImmediate as immediate } from 'node:timers/promises';
import fc from 'fast-check';
import type { Corked, corkStream as CorkStream } from 'ioredis-coalesce/cork';
import { corkStream } from 'ioredis-coalesce/cork';
import { describe, expect, it, vi } from 'vitest';

/** `CORK_PROGRAMS` asks for more, `CORK_SEED` repeats a run. */
const PROGRAMS = Number(process.env.CORK_PROGRAMS ?? 1_000);
const SEED = Number(process.env.CORK_SEED ?? Date.now() % 2 ** 31);

vi.resetModules();
const copy = (await import('../../src/cork/cork.js')) as { corkStream: typeof CorkStream };

interface Kind {
  readonly joins: boolean;
  /** A write is done in a later turn. */
  readonly late: boolean;
  /** What is written is answered at once, within the write. */
  readonly echoes: boolean;
  /** The write of the stream's end, counted from one, that throws; none at 0. */
  readonly throwsAt: number;
}

const THROWN = 'thrown by the stream';

/** A stream that notes what reaches its end. */
class Sink {
  arrived = '';
  readonly events: string[] = [];
  readonly stream: Duplex;
  #writes = 0;
  hasThrown = false;

  constructor({ joins, late, echoes, throwsAt }: Kind) {
    const take = (text: string, callback: () => void) => {
      this.#writes += 1;
      if (this.#writes === throwsAt) {
        this.hasThrown = true;
        throw new Error(THROWN);
      }
      this.arrived += text;
      if (echoes && !late) this.stream.push(text);
      if (late) setImmediate(callback);
      else callback();
    };
    const text = ({ chunk }: { chunk: string | Buffer }) => String(chunk);
    this.stream = new Duplex({
      decodeStrings: false,
      read() {},
      write: (chunk, _encoding, callback) => take(String(chunk), callback),
      ...(joins && { writev: (chunks, callback) => take(chunks.map(text).join(''), callback) }),
    });
    for (const event of ['finish', 'close', 'end']) this.stream.on(event, () => this.events.push(event));
    this.stream.on('error', ({ message }) => this.events.push(`error ${message}`));
    this.stream.on('data', (chunk) => this.#received(chunk));
  }

  received = '';
  #answered = 0;
  #received(chunk: Buffer): void {
    this.received += chunk;
    // A reader that writes, within the write that it answers.
    while (this.received.split('again').length - 1 > this.#answered) {
      this.#answered += 1;
      this.stream.write('answer;');
    }
  }
}

type Step = (run: Run) => unknown;

interface Run extends Sink {
  readonly isCorked: boolean;
  readonly corks: Corked[];
  /** What callbacks were called with, and what was thrown at writers, each in order. */
  readonly told: string[];
  readonly thrown: string[];
  othersCorks: number;
}

const write =
  (chunk: unknown, withCallback: boolean): Step =>
  (run) => {
    const args = [chunk];
    const name = typeof chunk === 'string' ? chunk.slice(0, 8) : String(chunk);
    if (withCallback)
      args.push((error?: NodeJS.ErrnoException | null) =>
        run.told.push(`${name} ${error?.code ?? error?.message ?? 'ok'}`),
      );
    try {
      (run.stream.write as (...args: unknown[]) => boolean)(...args);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      run.thrown.push(`${name} throws ${code ?? message}`);
    }
  };

/**
 * Steps that only the run with corks has. Callbacks note and do not write: they are called once it is written, which is
 * later.
 */
const corked =
  (step: Step): Step =>
  (run) =>
    run.isCorked && step(run);

const chunks = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 9_999 }).map((number) => `c${number};`) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 999 }).map((number) => Buffer.from(`b${number};`)) },
  { weight: 1, arbitrary: fc.constant('x'.repeat(9_000)) },
  { weight: 1, arbitrary: fc.constant('again') },
  { weight: 1, arbitrary: fc.constantFrom('', null, 5, undefined, {}) },
);
const steps: fc.Arbitrary<readonly [name: string, step: Step]> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .tuple(chunks, fc.boolean())
      .map(([chunk, withCallback]) => [`write(${String(chunk).slice(0, 8)})`, write(chunk, withCallback)] as const),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom<readonly [string, Step]>(
      ['immediate', () => immediate()],
      ['tick', () => new Promise(process.nextTick)],
      ['microtask', () => Promise.resolve()],
      [
        'compute',
        () => {
          for (const end = performance.now() + 0.15; performance.now() < end; );
        },
      ],
    ),
  },
  {
    weight: 5,
    arbitrary: fc.constantFrom<readonly [string, Step]>(
      ['cork', corked(({ corks, stream }) => corks.push(corkStream(stream)))],
      [
        'cork by the other copy',
        corked(({ corks, stream }) => corks.push(copy.corkStream(stream, { schedule: 'tick' }))),
      ],
      [
        'cork small',
        corked(({ corks, stream }) => corks.push(corkStream(stream, { maxBatchBytes: 10, busyPoll: false }))),
      ],
      ['flush', corked(({ corks }) => corks.at(-1)?.flush())],
      ['undo', corked(({ corks }) => corks.at(-1)?.undo())],
      ['undo the first', corked(({ corks }) => corks[0]?.undo())],
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<readonly [string, Step]>(
      [
        'others cork',
        (run) => {
          run.othersCorks += 1;
          run.stream.cork();
        },
      ],
      [
        'others uncork',
        (run) => {
          if (run.othersCorks > 0) {
            run.othersCorks -= 1;
            run.stream.uncork();
          }
        },
      ],
      [
        'others wrap write',
        ({ stream }) => {
          const { write: inner } = stream;
          stream.write = ((...args: Parameters<typeof inner>) => inner.apply(stream, args)) as typeof inner;
        },
      ],
    ),
  },
);
const ends = fc.constantFrom<readonly [string, Step]>(
  ['nothing', () => {}],
  ['end', ({ stream }) => stream.end()],
  ['end with a chunk', ({ stream }) => stream.end('last;')],
  ['destroy', ({ stream }) => stream.destroy()],
  ['destroy with an error', ({ stream }) => stream.destroy(new Error('lost'))],
);
const kinds: fc.Arbitrary<Kind> = fc.record({
  joins: fc.boolean(),
  late: fc.boolean(),
  echoes: fc.boolean(),
  throwsAt: fc.constant(0),
});
const programs = fc.record({
  kind: kinds,
  body: fc.array(steps, { maxLength: 25 }),
  end: ends,
  after: fc.array(steps, { maxLength: 3 }),
});

async function runProgram(kind: Kind, program: readonly (readonly [string, Step])[], isCorked: boolean) {
  const run: Run = Object.assign(new Sink(kind), { isCorked, corks: [], told: [], thrown: [], othersCorks: 0 });
  const others = (error: Error) => {
    if (error.message !== THROWN) throw error;
    run.thrown.push(`others: ${THROWN}`);
  };
  for (const [, step] of program) await (async () => step(run))().catch(others);
  for (; run.othersCorks > 0; run.othersCorks -= 1) await (async () => run.stream.uncork())().catch(others);
  for (let turn = 0; turn < 8; turn += 1) await immediate();
  for (const { undo } of run.corks.map((each) => ({ undo: () => each.undo() }))) undo();
  for (let turn = 0; turn < 30; turn += 1) await immediate();
  const left = Reflect.ownKeys(run.stream).filter((key) =>
    ['end', 'destroy', 'cork', Symbol.for('ioredis-coalesce.corked-stream')].includes(key),
  );
  // Where an answer to what has arrived is among the other writes depends on when that was.
  const answers = run.arrived.split('answer;').length - 1;
  return { ...run, arrived: run.arrived.replaceAll('answer;', ''), answers, left, corkedBy: run.stream.writableCorked };
}

/**
 * What callbacks were called with, in order: of what was written and of what was lost by themselves, as Node calls
 * those of one write of many chunks sooner than those of as many writes.
 */
const told = (run: Pick<Run, 'told'>) => ({
  done: run.told.filter((text) => text.endsWith(' ok')),
  lost: run.told.filter((text) => !text.endsWith(' ok')),
});

const MARKS = ['exit'] as const;

describe('a corked stream', () => {
  it(`does in random programs what it does without a cork (CORK_SEED=${SEED})`, {
    timeout: 60_000 + 100 * PROGRAMS,
  }, async () => {
    const listeners = MARKS.map((event) => process.listenerCount(event));
    await fc.assert(
      fc.asyncProperty(programs, async ({ kind, body, end, after }) => {
        const program = [...body, end, ...after];
        const names = program.map(([name]) => name);
        const plain = await runProgram(kind, program, false);
        const run = await runProgram(kind, program, true);
        // Of what waits for a slow stream that is destroyed, as by a write behind its end, a part is lost, more or less
        // as the clock has it. What has arrived is the beginning all the same.
        const isCut =
          kind.late && [plain, run].some(({ events }) => events.includes('close') && !events.includes('finish'));
        // Node loses what is written amid the `uncork()` of others, and then never finishes; with our cork, less may be
        // left for that.
        const mayLose = kind.echoes && names.includes('others cork');
        const isUnfinished = mayLose && plain.answers < run.answers;
        const eventsOf = ({ events }: Pick<Sink, 'events'>) =>
          isCut || isUnfinished ? events.filter((event) => event !== 'finish') : events;
        if (isCut) {
          const [shorter, longer] = [run.arrived, plain.arrived].sort((one, other) => one.length - other.length);
          expect(longer?.startsWith(shorter as string)).toBe(true);
        } else {
          const answers = mayLose ? Math.max(run.answers, plain.answers) : plain.answers;
          expect({ names, arrived: run.arrived, answers: run.answers, ...told(run), thrown: run.thrown }).toEqual({
            names,
            arrived: plain.arrived,
            answers,
            ...told(plain),
            thrown: plain.thrown,
          });
        }
        expect(eventsOf(run)).toEqual(eventsOf(plain));
        expect({ left: run.left, corkedBy: run.corkedBy }).toEqual({ left: [], corkedBy: plain.corkedBy });
      }),
      { numRuns: PROGRAMS, seed: SEED },
    );
    expect(MARKS.map((event) => process.listenerCount(event))).toEqual(listeners);
  });
});

it(`an error that a stream throws is reported once, to its writer or by its error event (CORK_SEED=${SEED})`, {
  timeout: 60_000 + 100 * PROGRAMS,
}, async () => {
  // What is slow throws in callbacks of its own, and a reader who writes throws in the reader: at nobody of the
  // program.
  const throwing = fc.record({
    joins: fc.boolean(),
    late: fc.constant(false),
    echoes: fc.constant(false),
    throwsAt: fc.integer({ min: 1, max: 4 }),
  });
  let thrown = 0;
  await fc.assert(
    fc.asyncProperty(throwing, fc.array(steps, { maxLength: 25 }), ends, async (kind, body, end) => {
      const program = [...body, end];
      const whole = await runProgram({ ...kind, throwsAt: 0 }, program, false);
      const run = await runProgram(kind, program, true);
      const told = [...run.events, ...run.thrown].filter((text) => text.endsWith(THROWN));
      expect({ told, count: told.length }).toEqual({ told, count: Number(run.hasThrown) });
      expect(whole.arrived.startsWith(run.arrived)).toBe(true);
      expect({ left: run.left, corkedBy: run.corkedBy }).toEqual({ left: [], corkedBy: 0 });
      thrown += Number(run.hasThrown);
    }),
    { numRuns: PROGRAMS / 4, seed: SEED },
  );
  expect(thrown).toBeGreaterThan(PROGRAMS / 20);
});

describe('a stream that cannot be corked', () => {
  it('is left as it is: without cork()', () => {
    const { stream } = new Sink({ joins: true, late: false, echoes: false, throwsAt: 0 });
    Object.defineProperty(stream, 'cork', { value: undefined });
    const keys = Reflect.ownKeys(stream);
    const handle = corkStream(stream);
    handle.flush();
    handle.undo();
    expect(Reflect.ownKeys(stream)).toEqual(keys);
  });

  it('is left as it is: destroyed, for which nothing waits at exit', () => {
    const before = process.listenerCount('exit');
    const { stream } = new Sink({ joins: true, late: false, echoes: false, throwsAt: 0 });
    corkStream(stream.destroy());
    expect(Object.hasOwn(stream, 'write')).toBe(false);
    expect(process.listenerCount('exit')).toBe(before);
  });
});

it('the user’s schedule alone decides: no write of a slow turn sends before it says so', async () => {
  const sink = new Sink({ joins: true, late: false, echoes: false, throwsAt: 0 });
  let flush = () => {};
  corkStream(sink.stream, {
    schedule: (given) => {
      flush = given;
    },
  });
  sink.stream.write('a');
  for (const end = performance.now() + 1; performance.now() < end; );
  sink.stream.write('b');
  await immediate();
  expect(sink.arrived).toBe('');
  flush();
  expect(sink.arrived).toBe('ab');
});

it('a handle that was undone does nothing to the cork that came after it', () => {
  const { stream } = new Sink({ joins: true, late: false, echoes: false, throwsAt: 0 });
  const first = corkStream(stream);
  first.undo();
  const second = corkStream(stream);
  first.undo();
  expect(corkStream(stream)).toBe(second);
});
