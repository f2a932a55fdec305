import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NOT_DECODED, ReplyDecoder } from '../../src/resp/decoder.js';
import { decodeWithHost, REPLY_MODES } from '../helpers/host-decoder.js';
import { anyReply2, anyReply3, MALFORMED, REPLY_CASES } from '../helpers/reply-cases.js';

const BEHIND = Buffer.from('$3\r\nabc\r\n');
const BEFORE = Buffer.from('+before\r\n');

describe.each(REPLY_MODES)('decoder: $title', ({ host, mode }) => {
  const cases = REPLY_CASES.filter(({ resp3 }) => !resp3 || mode.resp3Types);

  describe.each([
    { utf8: true, title: 'strings' },
    { utf8: false, title: 'Buffers' },
  ])('$title', ({ utf8 }) => {
    it.each(cases)('$title: as the host has it', ({ bytes, decodedBy }) => {
      const decoder = new ReplyDecoder(mode);
      const value = decoder.decode(bytes, 0, utf8);
      if (decodedBy === 'us') expect(value).not.toBe(NOT_DECODED);
      if (decodedBy === 'host') expect(value).toBe(NOT_DECODED);
      if (value === NOT_DECODED) return;
      expect([{ value }]).toStrictEqual(decodeWithHost(host, mode, utf8, [bytes]));
      expect(decoder.end).toBe(bytes.length);
    });

    it.each(cases)('$title: the same among other replies', ({ bytes }) => {
      const alone = new ReplyDecoder(mode).decode(bytes, 0, utf8);
      const decoder = new ReplyDecoder(mode);
      const value = decoder.decode(Buffer.concat([BEFORE, bytes, BEHIND]), BEFORE.length, utf8);
      expect(value).toStrictEqual(alone);
      if (value !== NOT_DECODED) expect(decoder.end).toBe(BEFORE.length + bytes.length);
    });

    it.each(cases)('$title: left to the host while it is not whole', ({ bytes }) => {
      const decoder = new ReplyDecoder(mode);
      for (let length = 0; length < bytes.length; length += 1) {
        // What lies behind the chunk's end in memory is the rest of the reply.
        expect(decoder.decode(bytes.subarray(0, length), 0, utf8), `first ${length} bytes`).toBe(NOT_DECODED);
      }
    });

    it('any reply: as the host has it, or left', () => {
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

  it.each(MALFORMED)('leaves %s to the host', (_title, bytes) => {
    expect(new ReplyDecoder(mode).decode(Buffer.from(bytes), 0, true)).toBe(NOT_DECODED);
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
    'reserves nothing for %s, which the chunk cannot hold',
    (count) => {
      const before = process.memoryUsage().heapUsed;
      const chunk = Buffer.from(`${count}\r\n:1\r\n`);
      for (let round = 0; round < 100; round += 1)
        expect(new ReplyDecoder(mode).decode(chunk, 0, true)).toBe(NOT_DECODED);
      expect(process.memoryUsage().heapUsed - before).toBeLessThan(50e6);
    },
  );

  it('hands out Buffers that share the memory of the chunk, as the host does', () => {
    const chunk = Buffer.from('$5\r\nhello\r\n');
    const value = new ReplyDecoder(mode).decode(chunk, 0, false) as Buffer;
    expect(value.buffer).toBe(chunk.buffer);
    expect(value).toBeInstanceOf(Buffer);
  });

  it('knows no type of RESP3 on a host that knows none', () => {
    const decoder = new ReplyDecoder({ ...mode, resp3Types: false });
    for (const bytes of ['_\r\n', '#t\r\n', ',1.5\r\n', '~0\r\n', '%0\r\n', '*1\r\n_\r\n']) {
      expect(decoder.decode(Buffer.from(bytes), 0, true), bytes).toBe(NOT_DECODED);
    }
  });

  it('decodes in the encoding asked for, whatever came before', () => {
    const decoder = new ReplyDecoder({ ...mode, replyMapping: 'resp3' });
    const map = Buffer.from('%1\r\n$1\r\na\r\n$1\r\nb\r\n');
    expect(decoder.decode(map, 0, false)).toStrictEqual({ a: Buffer.from('b') });
    expect(decoder.decode(map, 0, true)).toStrictEqual({ a: 'b' });
    expect(decoder.decode(Buffer.from('%1\r\n:1\r\n:2\r\n'), 0, false)).toBe(NOT_DECODED);
    expect(decoder.decode(Buffer.from('+x\r\n'), 0, false)).toStrictEqual(Buffer.from('x'));
  });
});
