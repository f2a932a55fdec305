import fc from 'fast-check';
import { Command } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { commandHead, encodeAssumingAscii, encodeExactly, isAscii, type Part } from '../../src/resp/encoder.js';
import { anyString } from '../helpers/any-string.js';
import { cold } from '../helpers/cold.js';
import { connectFake, type FakeConnection } from '../helpers/fake-connection.js';

type Argument = string | number | Buffer;

function hostBytes(name: string, args: readonly Argument[]): Buffer {
  const writable = new Command(name, [...args]).toWritable({}) as string | Buffer;
  return Buffer.from(writable as string);
}

const joined = (parts: Part[] | undefined): Buffer | undefined =>
  parts && Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)));

/** What `Batch` makes of a command: text is checked once, and re-encoded if it was not ASCII. */
function encoded(name: string, args: readonly unknown[]): Buffer | undefined {
  const head = commandHead(name, args.length);
  const first = encodeAssumingAscii(head, args);
  if (typeof first !== 'string') return joined(first);
  return isAscii(first) ? Buffer.from(first) : joined(encodeExactly(head, args));
}

const CASES: readonly (readonly [title: string, args: readonly Argument[]])[] = [
  ['no argument', []],
  ['ASCII', ['key', 'value']],
  ['empty strings', ['', '']],
  ['Latin-1 text', ['café', 'ÿ\u0080']],
  ['multi-byte text', ['żółw', '龜🐢']],
  ['a lone high surrogate', ['a\ud83d']],
  ['a lone low surrogate', ['\udc22b']],
  ['surrogates in the wrong order', ['\udc22\ud83d']],
  ['control characters', ['\u0000\r\n$5\r\n']],
  ['numbers', [0, -0, 1, -1, 1.5, -0.1, 1e-7, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, Number.MIN_VALUE]],
  ['a Buffer', [Buffer.from('value')]],
  ['an empty Buffer', [Buffer.alloc(0), 'x']],
  ['a binary Buffer', [Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))]],
  ['Buffer, text, number', [Buffer.from([0xff]), 'żółw', 7, 'x']],
  ...[1022, 1023, 1024, 1025, 4095, 4096, 4097, 100_000].flatMap(
    (length) =>
      [
        [`a string of ${length}`, ['x'.repeat(length), 'y']],
        [`a string of ${length} beyond ASCII`, ['ż'.repeat(length), 'y']],
        [`a Buffer of ${length}`, [Buffer.alloc(length, 0xfe), 'y']],
      ] as const,
  ),
  ['many arguments', Array.from({ length: 2000 }, (_, index) => `argument ${index}`)],
  ['many arguments, more than a part takes', Array.from({ length: 5000 }, (_, index) => `argument ${index}`)],
  ['many multi-byte arguments, more than a part takes', Array.from({ length: 10_000 }, (_, index) => `żółw ${index}`)],
  ['many Buffers, more than a part takes', Array.from({ length: 50 }, (_, index) => Buffer.alloc(4000, index + 200))],
];

describe('encoder', () => {
  it.each(CASES)('%s has the bytes that the host writes', (_title, args) => {
    expect(encoded('rpush', args)).toStrictEqual(hostBytes('rpush', args));
    expect(joined(encodeExactly(commandHead('rpush', args.length), args))).toStrictEqual(hostBytes('rpush', args));
  });

  it.each<[string, Argument]>([
    ['text', 'x'.repeat(4096)],
    ['multi-byte text', 'ż'.repeat(2048)],
    ['Buffers', Buffer.alloc(4096, 0xfe)],
  ])('cuts a command of much %s into parts, far below the longest string of V8', (_title, argument) => {
    const args = new Array<Argument>(1000).fill(argument);
    const head = commandHead('rpush', args.length);
    for (const parts of [encodeExactly(head, args), encodeAssumingAscii(head, args)]) {
      // Text beyond ASCII that is taken for ASCII is cut too: it is joined with that of other commands.
      expect(Array.isArray(parts)).toBe(true);
      for (const part of parts as Part[]) expect(part.length).toBeLessThan(128 * 1024);
    }
  });

  it('any arguments have the bytes that the host writes', () => {
    const argument = fc.oneof(
      anyString(30),
      fc.string({ maxLength: 30 }),
      fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes)),
      fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }),
      fc.maxSafeInteger(),
      fc.uint8Array({ maxLength: 40 }).map((value) => Buffer.from(value)),
    );
    fc.assert(
      fc.property(fc.array(argument, { maxLength: 8 }), (args) => {
        expect(encoded('set', args)).toStrictEqual(hostBytes('set', args));
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ['null', null],
    ['undefined', undefined],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['an integer beyond 2^53, which hosts write differently', 2 ** 53],
    ['1e21', 1e21],
    ['a boolean', true],
    ['a bigint', 1n],
    ['a symbol', Symbol('s')],
    ['an array', ['a']],
    ['an object', {}],
    ['a Date', new Date(0)],
    ['a Uint8Array', new Uint8Array(2)],
    ['a String object', Object('text')],
    ['a function', () => {}],
  ])('has no bytes for %s, which the host encodes', (_title, argument) => {
    const head = commandHead('set', 2);
    expect(encodeAssumingAscii(head, ['key', argument])).toBeUndefined();
    expect(encodeExactly(head, ['key', argument])).toBeUndefined();
    expect(encodeAssumingAscii(head, ['x'.repeat(5000), argument])).toBeUndefined();
  });

  it.each([3, 5000])('copies a Buffer of %i bytes: its owner may change it at once', (length) => {
    const value = Buffer.alloc(length, 'a');
    const head = commandHead('set', 2);
    const parts = encodeAssumingAscii(head, ['key', value]) as Part[];
    value.fill('b');
    expect(joined(parts)).toStrictEqual(hostBytes('set', ['key', Buffer.alloc(length, 'a')]));
  });

  it('keeps large arguments out of the text', () => {
    const large = 'x'.repeat(5000);
    const head = '*3\r\n$3\r\nset\r\n$3\r\nkey\r\n$5000\r\n';
    expect(encodeExactly(commandHead('set', 2), ['key', large])).toEqual([head, large, '\r\n']);
    expect(encodeExactly(commandHead('set', 2), ['key', Buffer.from(large)])).toEqual([
      head,
      Buffer.from(large),
      '\r\n',
    ]);
  });
});

describe('encoding within a batch', () => {
  type Step = readonly ['fast' | 'cold' | 'pipeline', ...Argument[]];

  function issue({ client }: FakeConnection, steps: readonly Step[]): void {
    for (const [kind, ...args] of steps) {
      if (kind === 'fast') client.rpush('list', ...(args as string[])).catch(() => {});
      else if (kind === 'cold') cold(client, 'rpush', 'cold', ...(args as string[])).catch(() => {});
      else {
        client
          .pipeline()
          .rpush('p1', ...(args as string[]))
          .rpush('p2', ...(args as string[]))
          .exec()
          .catch(() => {});
      }
    }
  }

  async function bytesOf(coalesced: boolean, batches: readonly (readonly Step[])[], options = {}): Promise<string> {
    const connection = await connectFake(coalesced ? { coalesce: options } : {});
    for (const steps of batches) {
      issue(connection, steps);
      await new Promise(setImmediate);
    }
    const { written } = connection.socket;
    connection.client.disconnect();
    return written.toString('latin1');
  }

  it('puts ASCII, other text, Buffers and host writes on the wire like a plain client', async () => {
    const batches: Step[][] = [
      [
        ['fast', 'plain'],
        ['fast', 'żółw'],
        ['cold', 'cold ż'],
        ['fast', 'plain again'],
        ['pipeline', 'é'],
        ['fast', '🐢', 1.5],
        ['fast', Buffer.from([0xff, 0]), 'ż'],
        ['fast', 'x'.repeat(5000)],
        ['fast', 'ż'.repeat(5000)],
        ['cold', Buffer.from([0xfe])],
        ['fast', 'last'],
      ],
      // The batches after text that was not ASCII are encoded exactly from the start.
      ...Array.from({ length: 40 }, (_, index): Step[] => [
        ['fast', `batch ${index}`],
        ['fast', index % 3 === 0 ? 'ż' : 'z'],
      ]),
    ];
    expect(await bytesOf(true, batches)).toBe(await bytesOf(false, batches));
  });

  it('takes the entry of the right command when host commands are in between', async () => {
    const steps: Step[] = [];
    for (let index = 0; index < 50; index += 1) {
      steps.push(
        ['fast', `${index}`, index % 7 === 0 ? 'ż' : 'z'],
        [index % 5 === 0 ? 'pipeline' : 'cold', `${index} é`],
      );
    }
    expect(await bytesOf(true, [steps])).toBe(await bytesOf(false, [steps]));
  });

  const step: fc.Arbitrary<Step> = fc.tuple(
    fc.constantFrom('fast' as const, 'fast' as const, 'cold' as const, 'pipeline' as const),
    fc.oneof(
      fc.constantFrom<Argument>('a', 'ż', '🐢', '\ud800', 7, 'x'.repeat(4097)),
      anyString(5),
      fc.uint8Array({ maxLength: 5 }).map((value) => Buffer.from(value)),
    ),
  );

  it('any batches with any limits have the bytes of a plain client', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 10 }), { minLength: 1, maxLength: 3 }),
        fc.record({
          maxBatchSize: fc.constantFrom(1, 2, 3, 1000),
          maxBatchBytes: fc.constantFrom(1, 50, 8_000),
          schedule: fc.constantFrom('immediate' as const, 'tick' as const),
          fastPath: fc.boolean(),
        }),
        async (batches, options) => {
          const { maxBatchSize, ...ofCork } = options;
          expect(await bytesOf(true, batches, options.fastPath ? options : ofCork)).toBe(await bytesOf(false, batches));
        },
      ),
      { numRuns: 60 },
    );
  });
});
