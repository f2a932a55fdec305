import { BINARY, BINARY_KEY, LOOKALIKE_KEYS, MULTIBYTE, RESP_LOOKALIKE } from './fixture.js';

/** Few enough that the commands of one program meet. */
export const KEYS: readonly unknown[] = [
  'str',
  'str',
  'num',
  'num',
  'list',
  'list',
  'hash',
  'hash',
  'set',
  'intset',
  'zset',
  'zset',
  'stream',
  'k1',
  'k2',
  'k3',
  'missing',
  'max',
  'bits',
  'hll',
  'geo',
  '',
  '__proto__',
  'ключ',
  'x\r\n$-1\r\n',
  '\ud800',
  7,
  BINARY_KEY,
  ...LOOKALIKE_KEYS,
];

export const VALUES: readonly unknown[] = [
  'v',
  'w',
  'a',
  'b',
  '',
  MULTIBYTE,
  RESP_LOOKALIKE,
  '$-1\r\n',
  '*0\r\n',
  '+OK\r\n',
  ':1\r\n',
  '\r\n*1\r\n$7\r\nFLUSHDB\r\n',
  'lone \ud83d high',
  '\udc00',
  '__proto__',
  'constructor',
  '9007199254740993',
  'x'.repeat(300),
  '€'.repeat(9_000),
  0,
  -0,
  1.5,
  42,
  -7,
  Number.MAX_SAFE_INTEGER,
  BINARY,
  Buffer.alloc(6_000, 0xfe),
  Buffer.alloc(0),
  Buffer.from('*1\r\n$4\r\nPING\r\n'),
  'naïve café',
  Buffer.from('naïve café', 'latin1'),
  'naÃ¯ve cafÃ©',
];

/** The sizes at which a value is treated differently on its way out or back, and one more. */
const THRESHOLDS = [1_023, 4_096, 8_000, 8_192, 16_384, 65_536, 262_144];
export const LARGE_VALUES: readonly unknown[] = THRESHOLDS.flatMap((size) =>
  [size, size + 1].flatMap((length) => ['x'.repeat(length), 'é'.repeat(length >> 1), Buffer.alloc(length, 'b')]),
);

/** As many arguments as a kept head has, and one more. */
export const WIDTHS: readonly number[] = [31, 32, 33];

/** Stands for an object or array whose first member is read through a getter, which counts; made anew for each call. */
export class Counted {
  constructor(
    readonly form: 'object' | 'text',
    /** Whether the fast path can take what the object holds. */
    readonly plain: boolean,
  ) {}
}
const COUNTED: readonly Counted[] = [
  new Counted('object', true),
  new Counted('object', false),
  new Counted('text', false),
];

export const FIELDS: readonly unknown[] = [
  'f',
  'n',
  'e',
  'ключ',
  '__proto__',
  'toString',
  10,
  '',
  'a\r\nb',
  Buffer.from('b'),
];
export const INTEGERS: readonly unknown[] = [0, 1, -1, 2, 3, '1', '-2', 100, 'x', '9007199254740993', 2 ** 53, 1.5];
export const SCORES: readonly unknown[] = [1, 2.5, -0, '0.1', 'inf', '-inf', '(1', '1e21', 3, 'x', 1e-7];
/** Far away, past, or no time at all. */
export const TIMES: readonly unknown[] = [5_000_000, '7000000', 0, -1, 'soon', 1.5e300];

export const PAIRS: readonly unknown[] = [
  { a: 1, ключ: MULTIBYTE },
  { __proto__: null, b: '' },
  JSON.parse('{"__proto__": "own", "10": "x", "2": "y"}'),
  {},
  new Map<unknown, unknown>([
    ['m', 1],
    [7, BINARY],
  ]),
  new Map(),
  ['p', 'q'],
  [],
  ...COUNTED,
  ...COUNTED,
];

const THROWING = {
  toString(): string {
    throw new RangeError('toString of a test value');
  },
};

/** What a pipeline or script is given at most. */
export const FLAT_HOSTILE: readonly unknown[] = [
  null,
  undefined,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  true,
  false,
  123456789012345678901234567890n,
  5n,
  new Date(0),
  new Date(Number.NaN),
  1e21,
  123456789012345680000,
  2 ** 53 + 2,
  Symbol.for('a test symbol'),
  () => 'never called',
  /re/,
  new Uint8Array([1, 2, 3]),
  new String('boxed'),
  new Number(5),
  THROWING,
];

export const HOSTILE: readonly unknown[] = [
  ...FLAT_HOSTILE,
  THROWING,
  { __proto__: null },
  { toString: () => 'from toString' },
  { toString: () => 7 },
  [],
  ['a'],
  ['a', 'b'],
  [['nested', ['deep']]],
  [null, undefined],
  [BINARY, 'a'],
  new Map([['m', '1']]),
  new Set(['s']),
  { a: 1 },
];
