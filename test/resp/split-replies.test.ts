import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { INCOMPLETE, LONGEST_ASSEMBLED, NOT_DECODED, ReplyDecoder } from '../../src/resp/decoder.js';
import { filled, inShort, UNITS } from '../helpers/cut-replies.js';
import { aggregate, bulk, cutAt } from '../helpers/resp.js';

const MODE = { resp3Types: true, replyMapping: 'legacy', stringNumbers: false } as const;

/** A decoder that has taken `first`, the beginning of a reply. */
function begun(first: Buffer, utf8 = true): ReplyDecoder {
  const decoder = new ReplyDecoder(MODE);
  expect(decoder.decode(first, 0, utf8)).toBe(INCOMPLETE);
  return decoder;
}

/** What the host gets of a reply that is left to it: the bytes so far, and the rest of the last chunk. */
function handedOver(decoder: ReplyDecoder, last: Buffer): Buffer {
  const rest = last.subarray(decoder.end);
  return Buffer.concat([...decoder.release(), rest]);
}

describe('a split reply', () => {
  const list = aggregate('*', [bulk('first'), ':12\r\n', bulk(filled('żółw ', 300)), '_\r\n', bulk('last one')]);

  it('gives the bytes back as they came, after any of them', () => {
    for (let length = '*5\r\n'.length; length < list.length; length += 1) {
      const [first = Buffer.alloc(0), ...rest] = cutAt(list.subarray(0, length), [4, 50, 51, 200]);
      const decoder = begun(first);
      const values = rest.map((chunk) => decoder.resume(chunk));
      const taken = values.includes(NOT_DECODED)
        ? handedOver(decoder, rest.at(-1) as Buffer)
        : Buffer.concat(decoder.release());
      expect(taken.equals(list.subarray(0, length)), `${length} bytes`).toBe(true);
      expect(decoder.release()).toEqual([]);
      const inLast = length > list.length - bulk('last one').length;
      expect(values.every((value) => value === INCOMPLETE) || inLast, `${length} bytes`).toBe(true);
    }
  });

  it.each([
    ['a string', true],
    ['a Buffer', false],
  ])('shares no memory between connections: %s of each, open at once, split and dropped in any order', (_, utf8) => {
    const reply = (letter: string) => bulk(letter.repeat(10_000));
    const halves = (letter: string) => cutAt(reply(letter), [5_000]) as [Buffer, Buffer];
    const value = (letter: string) => (utf8 ? letter.repeat(10_000) : Buffer.from(letter.repeat(10_000)));
    // So that memory of an earlier string is kept for the next one.
    expect(begun(halves('z')[0], utf8).resume(halves('z')[1])).toEqual(value('z'));
    const a = begun(halves('a')[0], utf8);
    const dropped = begun(halves('b')[0], utf8);
    dropped.discard();
    const c = begun(halves('c')[0], utf8);
    const d = begun(halves('d')[0], utf8);
    const values = [a.resume(halves('a')[1]), d.resume(halves('d')[1]), c.resume(halves('c')[1])];
    expect(values).toEqual([value('a'), value('d'), value('c')]);
    const reused = begun(halves('e')[0], utf8);
    expect(reused.resume(halves('e')[1])).toEqual(value('e'));
    expect(values).toEqual([value('a'), value('d'), value('c')]);
  });

  it('keeps nothing of the chunk before the reply, and nothing of a reply that is whole', () => {
    const chunk = Buffer.concat([Buffer.from(':1\r\n'), list.subarray(0, 30)]);
    const decoder = new ReplyDecoder(MODE);
    expect(decoder.decode(chunk, 4, true)).toBe(INCOMPLETE);
    expect(Buffer.concat(decoder.release())).toEqual(list.subarray(0, 30));
    const again = begun(list.subarray(0, 30));
    expect(again.resume(list.subarray(30))).toEqual(['first', 12, filled('żółw ', 300).toString(), null, 'last one']);
    expect(again.release()).toEqual([]);
  });

  it('hands a reply that it cannot decode to the host, with all bytes so far', () => {
    for (const element of [
      '-ERR inside\r\n',
      ':9223372036854775807\r\n',
      '(12\r\n',
      'x',
      '$x\r\n',
      '$2\r\nabc',
      '>0\r\n',
    ]) {
      const bytes = aggregate('*', [bulk('a'), element, bulk('b')]);
      const first = bytes.subarray(0, 9);
      const decoder = begun(first);
      expect(decoder.resume(bytes.subarray(9)), element).toBe(NOT_DECODED);
      expect(handedOver(decoder, bytes.subarray(9)).equals(bytes)).toBe(true);
    }
  });

  it.each(['xx', '\r\r', '\n\n', '\n\r', '\rx', 'x\n', '$1'])('leaves a string that ends in %j to the host', (end) => {
    const whole = Buffer.concat([bulk(filled('long ', 10_000)).subarray(0, -2), Buffer.from(end)]);
    for (const cut of ['$10000\r\n'.length, 5_000, whole.length - 2]) {
      const decoder = begun(whole.subarray(0, cut));
      expect(decoder.resume(whole.subarray(cut))).toBe(NOT_DECODED);
      expect(handedOver(decoder, whole.subarray(cut)).equals(whole)).toBe(true);
    }
  });

  it('leaves a reply over the limit to the host, as soon as its length is known', () => {
    const decoder = new ReplyDecoder(MODE);
    const begins = (header: string) => {
      const chunk = Buffer.from(`${header}\r\nxyz`);
      return decoder.decode(chunk, 0, true) === INCOMPLETE;
    };
    // What is kept is the header, the string and the line's end.
    const longest = LONGEST_ASSEMBLED - `$${LONGEST_ASSEMBLED}\r\n`.length - 2;
    expect(begins(`$${longest}`)).toBe(true);
    decoder.discard();
    expect(begins(`$${longest + 1}`)).toBe(false);
    expect(begins(`*2\r\n:1\r\n$${longest}`)).toBe(false);
    const grown = begun(Buffer.from('*3\r\n$3\r\nabc\r\n'));
    expect(grown.resume(Buffer.from('$2\r\nxy\r\n'))).toBe(INCOMPLETE);
    expect(grown.resume(Buffer.from(`$${longest}\r\n`))).toBe(NOT_DECODED);
    expect(Buffer.concat(grown.release()).toString()).toBe('*3\r\n$3\r\nabc\r\n$2\r\nxy\r\n');
  });

  it('leaves a reply to the host when it has grown over the limit', () => {
    const mebibyte = bulk(Buffer.alloc(2 ** 20));
    const decoder = begun(Buffer.from('*100\r\n'));
    let kept = 0;
    while (decoder.resume(mebibyte) === INCOMPLETE) kept += 1;
    expect(kept).toBe(63);
    expect(Buffer.concat(decoder.release()).length).toBe('*100\r\n'.length + 63 * mebibyte.length);
  });

  it('takes time in proportion to the bytes, not to their square', () => {
    const time = (elements: number) => {
      const chunk = Buffer.from(':1\r\n');
      const decoder = begun(Buffer.from(`*${elements + 1}\r\n`));
      // The processor's time: a busy machine lets this process wait.
      const from = process.cpuUsage();
      for (let index = 0; index < elements; index += 1) decoder.resume(chunk);
      const { user, system } = process.cpuUsage(from);
      return (user + system) / 1_000;
    };
    // The least of some: the collection of garbage only adds.
    const least = (elements: number) => Math.min(...Array.from({ length: 4 }, () => time(elements)));
    expect(least(200_000)).toBeLessThan(40 * Math.max(least(20_000), 2));
  });

  it('allocates no memory for a length that the server only announces', () => {
    const first = Buffer.from(`*1000000\r\n$${LONGEST_ASSEMBLED - 1000}\r\nx`);
    const before = process.memoryUsage();
    const decoders = Array.from({ length: 50 }, () => begun(first));
    const after = process.memoryUsage();
    expect(after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers).toBeLessThan(10e6);
    for (const decoder of decoders) decoder.discard();
  });

  it('reads text as `toString` does, however it is split', () => {
    const unit = fc.constantFrom(...Object.values(UNITS));
    const length = fc.oneof(fc.nat({ max: 60 }), fc.integer({ min: 60, max: 100_000 }));
    const cuts = fc.array(fc.nat({ max: 100_010 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(unit, length, cuts, fc.boolean(), (text, size, positions, utf8) => {
        const content = filled(text, size);
        const [first = Buffer.alloc(0), ...rest] = cutAt(bulk(content), [10, ...positions]);
        const last = rest.pop();
        const decoder = new ReplyDecoder(MODE);
        if (decoder.decode(first, 0, utf8) !== INCOMPLETE) return;
        for (const chunk of rest) if (decoder.resume(chunk) !== INCOMPLETE) return;
        const value = decoder.resume(last as Buffer) as string | Buffer;
        for (const chunk of [first, ...rest, last as Buffer]) chunk.fill('#');
        expect(utf8 ? value === content.toString('utf8') : content.equals(value as Buffer)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it('shares the memory in which it joins strings with others, but never at the same time', () => {
    // Any number of replies at once, in any order of beginnings, pieces, ends and hand-overs.
    const units = Object.values(UNITS);
    const replies = [500, 20_000, 300_000].flatMap((length) =>
      units.map((unit) => aggregate('*', [bulk('a'), bulk(filled(unit, length)), bulk('b')])),
    );
    const step = fc.record({
      who: fc.nat({ max: 3 }),
      act: fc.constantFrom('add', 'add', 'add', 'finish', 'finish', 'release'),
      reply: fc.nat({ max: replies.length - 1 }),
      size: fc.integer({ min: 1, max: 9_000 }),
      utf8: fc.boolean(),
    });
    const kept: { value: unknown; expected: unknown }[] = [];
    fc.assert(
      fc.property(fc.array(step, { minLength: 4, maxLength: 40 }), (steps) => {
        const open = new Map<number, { decoder: ReplyDecoder; reply: Buffer; fed: number; expected: unknown }>();
        for (const { who, act, reply: nth, size, utf8 } of steps) {
          const reply = replies[nth] as Buffer;
          const running = open.get(who);
          if (running === undefined) {
            const decoder = new ReplyDecoder(MODE);
            const first = Buffer.from(reply.subarray(0, Math.min(size, reply.length - 1)));
            if (decoder.decode(first, 0, utf8) !== INCOMPLETE) continue;
            const expected = new ReplyDecoder(MODE).decode(Buffer.from(reply), 0, utf8);
            open.set(who, { decoder, reply, fed: first.length, expected });
            continue;
          }
          const { decoder, reply: whole, fed, expected } = running;
          const end = act === 'finish' ? whole.length : Math.min(fed + size, whole.length - 1);
          const piece = Buffer.from(whole.subarray(fed, end));
          const value = decoder.resume(piece);
          if (value === INCOMPLETE) running.fed = end;
          if (value === INCOMPLETE && act === 'add') continue;
          open.delete(who);
          if (value === INCOMPLETE || value === NOT_DECODED) {
            const bytes = value === INCOMPLETE ? Buffer.concat(decoder.release()) : handedOver(decoder, piece);
            expect(bytes.equals(whole.subarray(0, end))).toBe(true);
          } else if (kept.length < 200) kept.push({ value, expected });
        }
      }),
      { numRuns: 60 },
    );
    expect(kept.length).toBeGreaterThan(20);
    for (const { value, expected } of kept) expect(inShort(value)).toStrictEqual(inShort(expected));
  });
});

describe('the memory in which split strings are joined', () => {
  const join = (length: number) => {
    const reply = bulk(filled('x', length));
    const value = begun(reply.subarray(0, 20)).resume(reply.subarray(20));
    expect((value as string).length).toBe(length);
  };

  it('is reused, in a buffer of at most 2 MiB', () => {
    const allocate = vi.spyOn(Buffer, 'allocUnsafeSlow');
    onTestFinished(() => allocate.mockRestore());
    const allocations = (...lengths: number[]) => {
      allocate.mockClear();
      for (const length of lengths) join(length);
      return allocate.mock.calls.length;
    };
    allocations(1_900_000);
    expect(allocations(1_900_000, 9_000, 1_000_000, 1_900_000)).toBe(0);
    // For a longer one it grows with what has arrived: here from 20 bytes to all of them.
    expect(allocations(3_000_000, 1_900_000, 3_000_000)).toBe(4);
    // The host may keep what it is handed over.
    begun(bulk(filled('x', 1_900_000)).subarray(0, 20)).release();
    expect(allocations(1_900_000)).toBe(1);
    expect(allocations(1_900_000)).toBe(0);
  });
});
