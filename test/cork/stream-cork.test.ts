/** One stream's cork, on streams that know no Redis: what arrives, when, and that the stream's own rules hold. */
import { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import { setImmediate as immediate } from 'node:timers/promises';
import { CODES } from 'ioredis-coalesce';
import { type CorkFlushReason, cork, corkStream } from 'ioredis-coalesce/cork';
import { describe, expect, it, onTestFinished, vi } from 'vitest';

/** The cork's clock, which stands still: a busy machine would send sooner. */
const time = { ms: 0 };
vi.mock('../../src/util/clock.js', async (original) => ({ ...(await original<object>()), now: () => time.ms }));

type Chunk = { readonly chunk: Buffer | string };

/** A stream that notes each call of its `_write` and `_writev`, as a socket's are system calls. */
function noting({ listens = true, fails = false } = {}) {
  const writes: string[] = [];
  const note = (text: string, callback: (error?: Error) => void) => {
    if (fails) throw new Error('the stream has thrown');
    writes.push(text);
    callback();
  };
  const stream = new Duplex({
    decodeStrings: false,
    read() {},
    write: (chunk, _encoding, callback) => note(String(chunk), callback),
    writev: (chunks: Chunk[], callback) => note(chunks.map(({ chunk }) => String(chunk)).join(''), callback),
  });
  stream.on('error', () => {});
  if (listens) stream.on('data', () => {});
  return { stream, writes };
}

function observed() {
  const reasons: CorkFlushReason[] = [];
  const flushed = (_: Duplex, reason: CorkFlushReason) => void reasons.push(reason);
  return { reasons, observer: { polls: { polledTurns: 0, polledTurnsAnswered: 0 }, corked() {}, flushed } };
}

/** Longer than a cork is left in while its turn goes on. */
function compute(): void {
  time.ms += 0.5;
}

describe('the writes of a turn', () => {
  it('are one, in their order, with their callbacks', async () => {
    const { stream, writes } = noting();
    corkStream(stream);
    const called: string[] = [];
    stream.write('a', () => called.push('a'));
    stream.write(Buffer.from('b'));
    stream.write('c', 'latin1', () => called.push('c'));
    expect(writes).toEqual([]);
    await immediate();
    expect(writes).toEqual(['abc']);
    await immediate();
    expect(called).toEqual(['a', 'c']);
  });

  it("are one per tick with schedule: 'tick', and wait for a function that says when", async () => {
    const ticking = noting();
    corkStream(ticking.stream, { schedule: 'tick' });
    ticking.stream.write('a');
    await Promise.resolve().then(() => new Promise(process.nextTick));
    expect(ticking.writes).toEqual(['a']);
    const waiting = noting();
    let flush = () => {};
    const schedule = (given: () => void) => {
      flush = given;
    };
    corkStream(waiting.stream, { schedule });
    waiting.stream.write('a');
    await immediate();
    waiting.stream.write('b');
    expect(waiting.writes).toEqual([]);
    flush();
    expect(waiting.writes).toEqual(['ab']);
  });

  it('leave behind the first, which goes at once while no reply is awaited, unless the last turn was large', async () => {
    const { stream, writes } = noting();
    corkStream(stream);
    const turn = async (...texts: string[]) => {
      for (const text of texts) stream.write(text);
      await immediate();
      return writes.splice(0);
    };
    const reply = async () => {
      stream.push('reply');
      await immediate();
    };
    expect(await turn('a', 'b')).toEqual(['ab']);
    await reply();
    expect(await turn('c', 'd', 'e')).toEqual(['c', 'de']);
    expect(await turn('f', 'g')).toEqual(['fg']);
    await reply();
    expect(await turn(...'h'.repeat(40))).toEqual(['h', 'h'.repeat(39)]);
    await reply();
    expect(await turn('i', 'j')).toEqual(['ij']);
    await reply();
    expect(await turn('k')).toEqual(['k']);
  });

  it.each([
    ['near, as the reply to a lone one says: the loop looks for replies', 0.05, true, 1],
    ['far', 1, true, 0],
    ['near, with busyPoll: false', 0.05, false, 0],
  ])('to a server that is %s', async (_, replyMs, busyPoll, polledTurns) => {
    const { stream } = noting();
    const { observer } = observed();
    corkStream(stream, { busyPoll }, observer);
    const reply = async () => {
      time.ms += replyMs;
      stream.push('reply');
      await immediate();
    };
    stream.write('first');
    await immediate();
    await reply();
    stream.write('alone');
    await reply();
    for (const text of 'abcd') stream.write(text);
    await immediate();
    expect(observer.polls.polledTurns).toBe(polledTurns);
    await reply();
  });

  it('leave while it still goes on, once the first has waited for long', () => {
    const { stream, writes } = noting();
    const { reasons, observer } = observed();
    corkStream(stream, {}, observer);
    stream.write('a');
    compute();
    stream.write('b');
    expect(writes).toEqual(['ab']);
    stream.write('c');
    expect(writes).toEqual(['ab']);
    expect(reasons).toEqual(['age']);
  });

  it('leave at once when they have reached maxBatchBytes, and a larger one goes alone', () => {
    const { stream, writes } = noting();
    const { reasons, observer } = observed();
    corkStream(stream, { maxBatchBytes: 100 }, observer);
    const large = 'x'.repeat(200);
    stream.write('first');
    stream.write(large);
    expect(writes).toEqual(['first', large]);
    for (let index = 0; index < 3; index += 1) stream.write('x'.repeat(98));
    expect(writes.at(-1)).toBe('x'.repeat(3 * 98));
    expect(reasons).toEqual(['bytes', 'bytes', 'bytes']);
  });

  it('are counted when they leave, with their bytes', async () => {
    const { stream } = noting();
    const flushes: unknown[] = [];
    const flushed = (of: Duplex, ...counts: unknown[]) => void flushes.push([of === stream, ...counts.slice(0, 3)]);
    corkStream(stream, {}, { polls: { polledTurns: 0, polledTurnsAnswered: 0 }, corked() {}, flushed });
    stream.write('abc');
    stream.write(Buffer.from('de'));
    await immediate();
    expect(flushes).toEqual([[true, 'schedule', 2, 5]]);
  });
});

it('a schedule function is called once a turn, however many writes there are', async () => {
  const { stream, writes } = noting();
  const schedule = vi.fn();
  corkStream(stream, { schedule });
  for (const text of ['a', 'b', 'c']) stream.write(text);
  await immediate();
  expect(schedule).toHaveBeenCalledTimes(1);
  schedule.mock.calls[0]?.[0]();
  expect(writes).toEqual(['abc']);
});

describe('what is held leaves first', () => {
  it.each([
    ['end()', (stream: Duplex) => void stream.end()],
    ['end() with a last chunk', (stream: Duplex) => void stream.end('c')],
    ['destroy()', (stream: Duplex) => void stream.destroy()],
  ])('before %s', (name, end) => {
    const { stream, writes } = noting();
    corkStream(stream);
    stream.write('a');
    stream.write('b');
    end(stream);
    expect(writes).toEqual(name === 'end() with a last chunk' ? ['ab', 'c'] : ['ab']);
  });

  it('when the cork is taken off; then the stream is as it was found', async () => {
    const { stream, writes } = noting();
    const before = Reflect.ownKeys(stream).length;
    const listeners = stream.listenerCount('data') + stream.listenerCount('close');
    const corked = corkStream(stream);
    stream.write('a');
    corked.undo();
    corked.undo();
    expect(writes).toEqual(['a']);
    stream.write('b');
    expect(writes).toEqual(['a', 'b']);
    expect(Reflect.ownKeys(stream)).toHaveLength(before);
    expect(stream.listenerCount('data') + stream.listenerCount('close')).toBe(listeners);
    await immediate();
    expect(stream.writableCorked).toBe(0);
  });

  it('when it is requested', () => {
    const { stream, writes } = noting();
    const { flush } = corkStream(stream);
    stream.write('a');
    expect(typeof flush).toBe('function');
    corkStream(stream).flush();
    expect(writes).toEqual(['a']);
  });
});

describe('the stream keeps its own rules', () => {
  it('a stream that others cork waits for them, too', async () => {
    const { stream, writes } = noting();
    corkStream(stream);
    stream.cork();
    stream.write('a');
    await immediate();
    stream.write('b');
    expect(writes).toEqual([]);
    stream.uncork();
    expect(writes).toEqual([]);
    await immediate();
    expect(writes).toEqual(['ab']);
    expect(stream.writableCorked).toBe(0);
  });

  it('a stream that others uncork too often sends sooner, and all in order', async () => {
    const { stream, writes } = noting();
    corkStream(stream);
    stream.write('a');
    stream.uncork();
    expect(writes).toEqual(['a']);
    stream.write('b');
    await immediate();
    expect(writes.join('')).toBe('ab');
  });

  it('a write after end() or destroy() has the error that it has without a cork', async () => {
    const errorOf = async (isCorked: boolean, end: 'end' | 'destroy') => {
      const { stream } = noting();
      if (isCorked) corkStream(stream);
      stream[end]();
      return new Promise((resolve) => stream.write('late', (error) => resolve((error as NodeJS.ErrnoException)?.code)));
    };
    for (const end of ['end', 'destroy'] as const) expect(await errorOf(true, end)).toBe(await errorOf(false, end));
  });

  it('an invalid chunk throws as it does without a cork, and earlier writes arrive', async () => {
    const { stream, writes } = noting();
    corkStream(stream);
    stream.write('a');
    expect(() => stream.write(null)).toThrow(TypeError);
    expect(() => stream.write(5 as unknown as string)).toThrow(TypeError);
    await immediate();
    expect(writes).toEqual(['a']);
  });

  it('an error that it throws as it is uncorked destroys it, since no caller could catch it', async () => {
    const { stream } = noting({ fails: true });
    corkStream(stream);
    const error = new Promise((resolve) => stream.once('error', resolve));
    stream.write('a');
    expect(await error).toMatchObject({ message: 'the stream has thrown' });
  });

  it('one without a reader does not begin to flow', () => {
    const { stream } = noting({ listens: false });
    corkStream(stream);
    expect(stream.readableFlowing).toBe(null);
    expect(stream.listenerCount('data')).toBe(0);
  });

  it('a write() that is put in front of ours, or in its place, is used', async () => {
    const { stream, writes } = noting();
    const corked = corkStream(stream);
    const { write } = stream;
    stream.write = (chunk: string) => Boolean(write.call(stream, chunk, 'utf8')) && write.call(stream, '!', 'utf8');
    stream.write('a');
    await immediate();
    corked.undo();
    stream.write('b');
    expect(writes).toEqual(['a!', 'b', '!']);
  });

  type Methods = 'cork' | 'uncork';
  const DEPTHS = new WeakMap<Duplex, number>();
  /** What others do to `cork()` and `uncork()`: count, and pass on the outermost; nothing; later. */
  const REPLACED: Record<string, (stream: Duplex) => Partial<Record<Methods, () => void>>> = {
    'wrapped in balance': (stream) => {
      const { cork, uncork } = stream;
      const add = (by: number) => {
        const depth = (DEPTHS.get(stream) ?? 0) + by;
        DEPTHS.set(stream, depth);
        return depth;
      };
      return {
        cork: () => void (add(1) === 1 && cork.call(stream)),
        uncork: () => void (add(-1) === 0 && uncork.call(stream)),
      };
    },
    'replaced by nothing': () => ({ cork() {}, uncork() {} }),
    'uncork() replaced by nothing': () => ({ uncork() {} }),
    'cork() replaced by nothing': () => ({ cork() {} }),
    'uncorked later': (stream) => {
      const { uncork } = stream;
      return { uncork: () => void setImmediate(() => uncork.call(stream)) };
    },
  };

  describe.each(Object.keys(REPLACED))('one whose cork() and uncork() others have %s', (how) => {
    it.each(['before', 'afterwards', 'while writes are held'])('%s sends all that is written', async (when) => {
      const { stream, writes } = noting();
      const replace = () => void Object.assign(stream, REPLACED[how]?.(stream));
      if (when === 'before') replace();
      const corked = corkStream(stream);
      if (when === 'afterwards') replace();
      stream.write('a');
      if (when === 'while writes are held') replace();
      stream.write('b');
      await immediate();
      await immediate();
      expect(writes.join('')).toBe('ab');
      corked.undo();
      expect(stream.writableCorked).toBe(0);
    });
  });

  it('is corked once, whoever does it', () => {
    const { stream } = noting();
    expect(corkStream(stream)).toBe(corkStream(stream, { schedule: 'tick' }));
  });
});

it.each(['off', ' FALSE'])('with IOREDIS_COALESCE=%j a stream stays as it is', async (setting) => {
  vi.stubEnv('IOREDIS_COALESCE', setting);
  vi.resetModules();
  onTestFinished(() => void vi.unstubAllEnvs());
  const entry = await import('ioredis-coalesce/cork');
  const { stream, writes } = noting();
  entry.corkStream(stream);
  for (const text of ['a', 'b', 'c']) stream.write(text);
  expect(writes).toEqual(['a', 'b', 'c']);
});

describe('options are checked at once', () => {
  it.each([
    [
      { schedule: 'ticks' },
      `options.schedule must be 'immediate', 'tick' or a function that takes the flush, got "ticks" (string)`,
    ],
    [{ busyPoll: 1 }, 'options.busyPoll must be a boolean, got 1 (number)'],
    [{ maxBatchBytes: 0 }, 'options.maxBatchBytes must be a positive integer of at most 67108864, got 0 (number)'],
    [{ maxInFlight: 4 }, 'options.maxInFlight is not an option; the options are schedule, busyPoll, maxBatchBytes'],
    [null, 'options must be an object, got null'],
    [true, 'options must be an object, got true (boolean)'],
    ['a', 'options must be an object, got a string'],
  ])('%j', (options, message) => {
    const { stream } = noting();
    const client = Object.assign(new EventEmitter(), { stream });
    const expected = expect.objectContaining({ code: CODES.OPTION, message: `ioredis-coalesce: ${message}` });
    expect(() => corkStream(stream, options as never)).toThrow(expected);
    expect(() => cork(client, options as never)).toThrow(expected);
    expect(Object.hasOwn(stream, 'write')).toBe(false);
    expect(client.listenerCount('connect')).toBe(0);
  });

  it.each([undefined, {}, { schedule: undefined, busyPoll: undefined, maxBatchBytes: undefined }])('%j', (options) => {
    const { stream } = noting();
    corkStream(stream, options);
    expect(Object.hasOwn(stream, 'write')).toBe(true);
  });

  it.each([undefined, null, 'stream', {}])('and the stream: %j is none', (value) => {
    expect(() => corkStream(value as never)).toThrow(
      expect.objectContaining({
        code: CODES.CLIENT,
        message: expect.stringContaining('corkStream() expects a stream, got'),
      }),
    );
  });
});
