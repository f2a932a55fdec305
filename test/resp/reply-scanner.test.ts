import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { REPLY_LIMITS, ReplyScanner } from '../../src/resp/reply-scanner.js';
import { anyReply3, MALFORMED, REPLY_CASES } from '../helpers/reply-cases.js';
import { aggregate, bulk, cutAt, everyCut } from '../helpers/resp.js';

interface Scan {
  /** Where replies ended, counted from the first byte. */
  readonly ends: number[];
  readonly after: 'between replies' | 'in a reply' | 'malformed' | 'oversized';
}

/** Scans as the reader does: reply by reply, chunk by chunk. */
function scanAll(chunks: readonly Buffer[]): Scan {
  const scanner = new ReplyScanner();
  const ends: number[] = [];
  let base = 0;
  for (const chunk of chunks) {
    let position = 0;
    while (position < chunk.length) {
      const result = scanner.scan(chunk, position);
      if (result === 'malformed' || result === 'oversized') return { ends, after: result };
      if (result === 'more') break;
      expect(scanner.end).toBeGreaterThan(position - 1);
      position = scanner.end;
      ends.push(base + position);
    }
    base += chunk.length;
  }
  return { ends, after: scanner.outstanding > 0 ? 'in a reply' : 'between replies' };
}

const inHalves = (bytes: Buffer): Buffer[] => cutAt(bytes, [bytes.length >> 1]);

const PUSH = aggregate('>', ['$7\r\nmessage\r\n', '$1\r\nc\r\n', '$2\r\nhi\r\n']);
const CASES = [
  ...REPLY_CASES,
  { title: 'push', bytes: PUSH },
  { title: 'large bulk string', bytes: bulk('y'.repeat(300)) },
];

describe('reply scanner', () => {
  it.each(CASES)('finds the end of $title, however it is split', ({ bytes }) => {
    const three = Buffer.concat([bytes, Buffer.from('+OK\r\n'), bytes]);
    const ends = [bytes.length, bytes.length + 5, three.length];
    for (const { way, chunks } of everyCut(three)) {
      expect(scanAll(chunks), way).toEqual({ ends, after: 'between replies' });
    }
  });

  it.each(CASES)('is in the middle of $title until its last byte', ({ bytes }) => {
    for (let length = 1; length < bytes.length; length += 1) {
      expect(scanAll([bytes.subarray(0, length)]), `first ${length} bytes`).toEqual({ ends: [], after: 'in a reply' });
    }
  });

  it.each(MALFORMED)('gives up at %s, however it is split', (_title, bytes) => {
    const before = Buffer.from('+OK\r\n$2\r\nhi\r\n');
    const stream = Buffer.concat([before, Buffer.from(bytes), Buffer.from('+OK\r\n')]);
    for (const { way, chunks } of everyCut(stream)) {
      expect(scanAll(chunks), way).toEqual({ ends: [5, before.length], after: 'malformed' });
    }
  });

  describe('limits', () => {
    const { bulkBytes, lineBytes, elements, depth } = REPLY_LIMITS;
    const within: readonly [string, string][] = [
      ['the longest bulk string', `$${bulkBytes}\r\nx`],
      ['the largest array', `*${elements}\r\n:1\r\n`],
      ['the largest map', `%${elements / 2}\r\n:1\r\n`],
      ['the longest line', `+${'x'.repeat(lineBytes)}`],
      ['the deepest array', '*1\r\n'.repeat(depth)],
      ['the deepest array, nested in last elements', '*2\r\n:1\r\n'.repeat(depth)],
    ];
    const beyond: readonly [string, string, string][] = [
      ['a longer bulk string', `$${bulkBytes + 1}\r\n`, 'a bulk string of'],
      ['4 GB', '$4294967296\r\n', 'a bulk string of 4294967296 bytes'],
      ['a longer verbatim string', `=${bulkBytes + 1}\r\n`, 'a bulk string of'],
      ['a length of too many digits', `$${'9'.repeat(20)}`, 'a length of more than'],
      ['a count of too many digits', `*${'9'.repeat(20)}`, 'a length of more than'],
      ['a larger array', `*${elements + 1}\r\n`, 'an aggregate of'],
      ['a larger map', `%${elements / 2 + 1}\r\n`, 'an aggregate of'],
      ['arrays that are too large together', '*20000000\r\n*20000000\r\n', 'an aggregate of'],
      ['a longer line', `+${'x'.repeat(lineBytes + 1)}`, 'a line of more than'],
      ['a longer error', `-${'x'.repeat(lineBytes + 1)}`, 'a line of more than'],
      ['a deeper array', '*1\r\n'.repeat(depth + 1), 'aggregates within each other'],
      ['a deeper array, nested in last elements', '*2\r\n:1\r\n'.repeat(depth + 1), 'aggregates within each other'],
    ];

    it.each(within)('%s is awaited, and nothing is allocated for it', (_title, text) => {
      const before = process.memoryUsage().heapUsed;
      const bytes = Buffer.from(text);
      expect(scanAll(inHalves(bytes))).toEqual({ ends: [], after: 'in a reply' });
      expect(process.memoryUsage().heapUsed - before).toBeLessThan(10e6);
    });

    it.each(beyond)('%s is oversized', (_title, text, excess) => {
      const bytes = Buffer.from(text);
      expect(scanAll([bytes]).after).toBe('oversized');
      expect(scanAll(inHalves(bytes)).after).toBe('oversized');
      const scanner = new ReplyScanner();
      scanner.scan(bytes, 0);
      expect(scanner.excess).toContain(excess);
    });

    it('depth is counted down with each aggregate, and is zero after each reply', () => {
      const deep = Buffer.from(`${'*1\r\n'.repeat(depth)}:1\r\n`);
      const wide = Buffer.from(`*${depth * 3}\r\n${'*1\r\n*1\r\n:1\r\n'.repeat(depth * 3)}`);
      const bytes = Buffer.concat([deep, deep, wide, deep]);
      const ends = [deep.length, 2 * deep.length, 2 * deep.length + wide.length, bytes.length];
      expect(scanAll([bytes])).toEqual({ ends, after: 'between replies' });
    });
  });

  it('ignores empty chunks', () => {
    const bytes = Buffer.from('*2\r\n$1\r\na\r\n:1\r\n');
    const chunks = cutAt(bytes, [1, 5, 9]).flatMap((chunk) => [Buffer.alloc(0), chunk]);
    expect(scanAll(chunks)).toEqual({ ends: [bytes.length], after: 'between replies' });
  });

  it('finds the end of any replies, split anywhere', () => {
    fc.assert(
      fc.property(
        fc.array(anyReply3, { minLength: 1, maxLength: 8 }),
        fc.array(fc.nat({ max: 400 }), { maxLength: 12 }),
        (replies, positions) => {
          let end = 0;
          const ends = replies.map((reply) => {
            end += reply.length;
            return end;
          });
          expect(scanAll(cutAt(Buffer.concat(replies), positions))).toEqual({ ends, after: 'between replies' });
        },
      ),
      { numRuns: 500 },
    );
  });

  it('finds the same ends in garbage, split anywhere', () => {
    const letters = fc.constantFrom(...'+-:$*_,#(=!%~>|0123x\r\n', '\r\n', '$1\r\na\r\n', ':1\r\n', '*1\r\n');
    fc.assert(
      fc.property(
        fc.array(letters, { minLength: 1, maxLength: 30 }),
        fc.array(fc.nat({ max: 60 })),
        (parts, positions) => {
          const bytes = Buffer.from(parts.join(''));
          expect(scanAll(cutAt(bytes, positions))).toEqual(scanAll([bytes]));
        },
      ),
      { numRuns: 2000 },
    );
  });
});
