import { deepStrictEqual } from 'node:assert';
import fc from 'fast-check';
import { describe, it } from 'vitest';
import { INCOMPLETE, ReplyDecoder } from '../../src/resp/decoder.js';
import { decodeWithHost, REPLY_MODES } from '../helpers/host-decoder.js';
import { aggregate, bulk, bytes, cutAt } from '../helpers/resp.js';

/** Names that look alike: as text, as bytes, or in Latin-1. */
const NAMES = [
  ...['name', 'nam', 'names', 'game', 'n', '', 'née', 'n\u00c3\u00a9e', '\ufffd', '__proto__', 'constructor', '日本'],
  ...['x'.repeat(64), 'x'.repeat(65), `${'x'.repeat(64)}y`],
  ...[bytes('n\xe9e'), bytes('\xe9'), bytes('na\xffe'), bytes('\xef\xbf'), bytes('n\xc3e')],
].map(bulk);

const pairs = fc.array(fc.tuple(fc.constantFrom(...NAMES), fc.nat({ max: 99 })), { maxLength: 5 });
/** Hashes, of which some have the same fields, or almost; and where the chunks of the replies end. */
const replies = fc.array(
  fc.record({ pairs, repeated: fc.nat({ max: 3 }), cuts: fc.array(fc.nat({ max: 99 }), { maxLength: 2 }) }),
  { minLength: 2, maxLength: 8 },
);

describe.each(REPLY_MODES)('names of fields: $title', ({ host, mode }) => {
  it.each([
    { title: 'strings', utf8: true },
    { title: 'Buffers', utf8: false },
  ])('hashes with like and unlike names have the fields that the host decodes, as $title', ({ utf8 }) => {
    fc.assert(
      fc.property(replies, (hashes) => {
        const decoder = new ReplyDecoder(mode);
        for (const { pairs, repeated, cuts } of hashes) {
          const elements = pairs.flatMap(([name, value]) => [name, bulk(`value ${value}`)]);
          const reply = aggregate(mode.resp3Types ? '%' : '*', elements);
          const places = cuts.map((percent) => Math.floor((reply.length * percent) / 100));
          const expected = decodeWithHost(host, mode, utf8, [reply]);
          for (let times = 0; times <= repeated; times += 1) {
            const [first, ...rest] = cutAt(reply, places) as [Buffer, ...Buffer[]];
            let value = decoder.decode(first, 0, utf8, true);
            for (const chunk of rest) value = value === INCOMPLETE ? decoder.resume(chunk) : value;
            if (typeof value === 'symbol') decoder.discard();
            else deepStrictEqual([{ value }], expected);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
