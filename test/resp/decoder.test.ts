import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INCOMPLETE, NOT_DECODED, ReplyDecoder } from '../../src/resp/decoder.js';
import { decodeWithHost, REPLY_MODES } from '../helpers/host-decoder.js';
import { anyReply2, anyReply3, MALFORMED, REPLY_CASES } from '../helpers/reply-cases.js';
import { cutAt, everyCut } from '../helpers/resp.js';

const BEHIND = Buffer.from('$3\r\nabc\r\n');
const BEFORE = Buffer.from('+before\r\n');

/** What the reader makes of a reply that comes in pieces, as far as the decoder is concerned. */
function decodePieces(decoder: ReplyDecoder, chunks: readonly Buffer[], utf8: boolean): unknown {
  const [first = Buffer.alloc(0), ...rest] = chunks;
  let value = decoder.decode(first, 0, utf8);
  for (const chunk of rest) {
    if (value !== INCOMPLETE) return value;
    value = decoder.resume(chunk);
  }
  return value;
}

describe.each(REPLY_MODES)('decoder: $title', ({ host, mode }) => {
  const cases = REPLY_CASES.filter(({ resp3 }) => !resp3 || mode.resp3Types);

  describe.each([
    { utf8: true, title: 'strings' },
    { utf8: false, title: 'Buffers' },
  ])('$title', ({ utf8 }) => {
    it('each case has the value that the host decodes', () => {
      for (const { title, bytes, decodedBy } of cases) {
        const decoder = new ReplyDecoder(mode);
        const value = decoder.decode(bytes, 0, utf8);
        if (decodedBy === 'us') expect(value, title).not.toBe(NOT_DECODED);
        if (decodedBy === 'host') expect(value, title).toBe(NOT_DECODED);
        if (value === NOT_DECODED) continue;
        expect([{ value }], title).toStrictEqual(decodeWithHost(host, mode, utf8, [bytes]));
        expect(decoder.end, title).toBe(bytes.length);
      }
    });

    it('each case has the same value among other replies', () => {
      for (const { title, bytes } of cases) {
        const alone = new ReplyDecoder(mode).decode(bytes, 0, utf8);
        const decoder = new ReplyDecoder(mode);
        const value = decoder.decode(Buffer.concat([BEFORE, bytes, BEHIND]), BEFORE.length, utf8);
        expect(value, title).toStrictEqual(alone);
        if (value !== NOT_DECODED) expect(decoder.end, title).toBe(BEFORE.length + bytes.length);
      }
    });

    it('each case has the same value in any pieces, or is left to the host', () => {
      for (const { title, bytes } of cases) {
        const whole = new ReplyDecoder(mode).decode(bytes, 0, utf8);
        for (const { way, chunks } of everyCut(bytes)) {
          const decoder = new ReplyDecoder(mode);
          const value = decodePieces(decoder, chunks, utf8);
          expect([whole, NOT_DECODED], `${title}, ${way}`).toContainEqual(value);
          if (value !== NOT_DECODED) expect(decoder.end, `${title}, ${way}`).toBe(chunks.at(-1)?.length);
        }
      }
    });

    it('each case has no value while it is not whole', () => {
      for (const { title, bytes } of cases) {
        const decoder = new ReplyDecoder(mode);
        for (let length = 0; length < bytes.length; length += 1) {
          // What lies behind the chunk's end in memory is the rest of the reply.
          const value = decoder.decode(bytes.subarray(0, length), 0, utf8);
          expect([INCOMPLETE, NOT_DECODED], `${title}, first ${length} bytes`).toContain(value);
          decoder.discard();
        }
      }
    });

    it('any reply that is split anywhere has the value of the whole one, and so has the next reply', () => {
      let resumed = 0;
      fc.assert(
        fc.property(
          mode.resp3Types ? anyReply3 : anyReply2,
          fc.array(fc.nat({ max: 99 }), { minLength: 1, maxLength: 6 }),
          (bytes, percents) => {
            const whole = new ReplyDecoder(mode).decode(bytes, 0, utf8);
            const decoder = new ReplyDecoder(mode);
            const chunks = cutAt(
              bytes,
              percents.map((percent) => Math.floor((bytes.length * percent) / 100)),
            );
            const last = chunks.pop() as Buffer;
            const value = decodePieces(decoder, [...chunks, Buffer.concat([last, BEHIND])], utf8);
            if (value !== NOT_DECODED) {
              expect(value).toStrictEqual(whole);
              expect(decoder.end).toBe(last.length);
              if (chunks.length > 0) resumed += 1;
            }
            expect(decoder.decode(BEHIND, 0, true)).toBe('abc');
          },
        ),
        { numRuns: 1_000 },
      );
      // About 150 of them; no run by chance has so few.
      expect(resumed).toBeGreaterThan(60);
    });

    it('any reply has the value that the host decodes, or is left to the host', () => {
      let decoded = 0;
      fc.assert(
        fc.property(mode.resp3Types ? anyReply3 : anyReply2, (bytes) => {
          const decoder = new ReplyDecoder(mode);
          const value = decoder.decode(bytes, 0, utf8);
          if (value === NOT_DECODED) return;
          decoded += 1;
          expect([{ value }]).toStrictEqual(decodeWithHost(host, mode, utf8, [bytes]));
          expect(decoder.end).toBe(bytes.length);
        }),
        { numRuns: 300 },
      );
      expect(decoded).toBeGreaterThan(50);
    });
  });

  it('leaves each malformed reply to the host', () => {
    for (const [title, bytes] of MALFORMED)
      expect(new ReplyDecoder(mode).decode(Buffer.from(bytes), 0, true), title).toBe(NOT_DECODED);
  });

  it('gives objects whose keys reach no prototype', () => {
    if (mode.replyMapping !== 'resp3') return;
    const bytes = Buffer.from('%1\r\n$9\r\n__proto__\r\n%1\r\n$8\r\npolluted\r\n:1\r\n');
    const value = new ReplyDecoder(mode).decode(bytes, 0, true) as object;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(value)).toEqual(['__proto__']);
  });
});

describe('decoder', () => {
  const mode = { resp3Types: true, replyMapping: 'legacy', stringNumbers: false } as const;

  it.each(['*900000000', '*4294967296', '*99999999999999', '~99999999999999', '%99999999999999'])(
    'leaves %s to the host, and allocates nothing for it',
    (count) => {
      const before = process.memoryUsage().heapUsed;
      const chunk = Buffer.from(`${count}\r\n:1\r\n`);
      for (let round = 0; round < 100; round += 1)
        expect(new ReplyDecoder(mode).decode(chunk, 0, true)).toBe(NOT_DECODED);
      expect(process.memoryUsage().heapUsed - before).toBeLessThan(50e6);
    },
  );

  it.each(['*1000000', '~1000000', '%500000', `${'*1000\r\n'.repeat(15)}*1000`])('allocates little for %j', (count) => {
    const chunk = Buffer.from(`${count}\r\n:1\r\n`);
    const decoders = Array.from({ length: 200 }, () => new ReplyDecoder(mode));
    const before = process.memoryUsage().heapUsed;
    for (const decoder of decoders) expect(decoder.decode(chunk, 0, true)).toBe(INCOMPLETE);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(10e6);
  });

  it.each([
    ['elements that it has announced', `*1048575\r\n*2\r\n`],
    ['elements to each of its pairs', `%524289\r\n`],
    ['aggregates within each other', '*1\r\n'.repeat(17)],
    ['bytes of a line', `*2\r\n+${'x'.repeat(512)}`],
  ])('leaves a reply with too many %s to the host', (_title, bytes) => {
    const chunk = Buffer.from(bytes);
    const decoder = new ReplyDecoder(mode);
    expect(decodePieces(decoder, [chunk], true)).toBe(NOT_DECODED);
    expect(decodePieces(decoder, cutAt(chunk, [6, chunk.length - 3]), true)).toBe(NOT_DECODED);
    expect(decoder.decode(BEHIND, 0, true)).toBe('abc');
  });

  it('leaves a reply to the host if at most the line end, or one byte of its last element, is missing', () => {
    const reply = Buffer.from('*2\r\n:1\r\n%1\r\n$1\r\na\r\n$2\r\nbc\r\n');
    const almost: number[] = [];
    for (let length = '*2\r\n'.length; length < reply.length; length += 1) {
      const decoder = new ReplyDecoder({ ...mode, replyMapping: 'resp3' });
      const value = decoder.decode(reply.subarray(0, length), 0, true);
      if (value === NOT_DECODED) almost.push(length);
      else expect(value).toBe(INCOMPLETE);
    }
    const lastOfArray = [9, 10, 11];
    const lastOfMap = [20, 21, 22];
    expect(almost).toEqual([...lastOfArray, ...lastOfMap, reply.length - 1]);
  });

  it('hands out Buffers that share the memory of the chunk, as the host does', () => {
    const chunk = Buffer.from('$5\r\nhello\r\n');
    const value = new ReplyDecoder(mode).decode(chunk, 0, false) as Buffer;
    expect(value.buffer).toBe(chunk.buffer);
    expect(value).toBeInstanceOf(Buffer);
  });

  it('hands out Buffers with their own memory for a string that was split', () => {
    const decoder = new ReplyDecoder(mode);
    const texts = [1, 2, 3].map((nth) => Buffer.alloc(9_000, `${nth} `));
    const values = texts.map((text) => {
      const whole = Buffer.concat([Buffer.from(`*2\r\n$9000\r\n`), text, Buffer.from('\r\n$1\r\nx\r\n')]);
      const chunks = cutAt(whole, [20, 4_000]);
      const value = decodePieces(decoder, chunks, false) as [Buffer, Buffer];
      expect(value[1].buffer).toBe(chunks.at(-1)?.buffer);
      for (const chunk of chunks) chunk.fill('#');
      return value[0];
    });
    expect(values).toEqual(texts);
    expect(new Set(values.map(({ buffer }) => buffer)).size).toBe(3);
  });

  it('keeps long text in the heap, where it does not make the collector run more often', () => {
    const bytes = Buffer.from(`$${2 ** 20}\r\n${'x'.repeat(2 ** 20)}\r\n`);
    const decoder = new ReplyDecoder(mode);
    const before = process.memoryUsage().external;
    const values = Array.from({ length: 20 }, () =>
      decodePieces(decoder, [bytes.subarray(0, 1000), bytes.subarray(1000)], true),
    );
    expect(process.memoryUsage().external - before).toBeLessThan(4 * 2 ** 20);
    expect(new Set(values)).toEqual(new Set(['x'.repeat(2 ** 20)]));
  });

  it('decodes no type of RESP3 on a host that decodes none', () => {
    const decoder = new ReplyDecoder({ ...mode, resp3Types: false });
    for (const bytes of ['_\r\n', '#t\r\n', ',1.5\r\n', '~0\r\n', '%0\r\n', '*1\r\n_\r\n']) {
      expect(decoder.decode(Buffer.from(bytes), 0, true), bytes).toBe(NOT_DECODED);
    }
  });

  it('decodes in the requested encoding, whatever came before', () => {
    const decoder = new ReplyDecoder({ ...mode, replyMapping: 'resp3' });
    const map = Buffer.from('%1\r\n$1\r\na\r\n$1\r\nb\r\n');
    expect(decoder.decode(map, 0, false)).toStrictEqual({ a: Buffer.from('b') });
    expect(decoder.decode(map, 0, true)).toStrictEqual({ a: 'b' });
    expect(decoder.decode(Buffer.from('%1\r\n:1\r\n:2\r\n'), 0, false)).toBe(NOT_DECODED);
    expect(decoder.decode(Buffer.from('+x\r\n'), 0, false)).toStrictEqual(Buffer.from('x'));
  });
});
