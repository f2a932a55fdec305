import fc from 'fast-check';
import { anyString } from './any-string.js';
import { aggregate, bulk } from './resp.js';

export interface ReplyCase {
  readonly title: string;
  readonly bytes: Buffer;
  /** Needs a host that knows RESP3. */
  readonly resp3: boolean;
  /** Who must decode it: us for speed, or the host, since it alone knows how. */
  readonly decodedBy: 'us' | 'host' | 'either';
}

const resp2 = (title: string, bytes: string | Buffer, decodedBy: ReplyCase['decodedBy'] = 'us'): ReplyCase => ({
  title,
  bytes: Buffer.from(bytes),
  resp3: false,
  decodedBy,
});

function resp3(title: string, bytes: string | Buffer, decodedBy: ReplyCase['decodedBy'] = 'us'): ReplyCase {
  return { title, bytes: Buffer.from(bytes), resp3: true, decodedBy };
}

/** One whole reply each: every type of RESP2 and RESP3, and what is odd about them. */
export const REPLY_CASES: readonly ReplyCase[] = [
  resp2('simple string', '+OK\r\n'),
  resp2('empty simple string', '+\r\n'),
  resp2('simple string beyond ASCII', '+żółw\r\n'),
  resp2('error', '-ERR wrong\r\n', 'host'),
  resp2('empty error', '-\r\n', 'host'),
  resp2('integer', ':1234567890\r\n'),
  resp2('zero', ':0\r\n'),
  resp2('negative integer', ':-42\r\n'),
  resp2('negative zero', ':-0\r\n', 'either'),
  resp2('leading zeros', ':007\r\n', 'either'),
  resp2('15 digits', ':999999999999999\r\n'),
  resp2('2^53 - 1', ':9007199254740991\r\n', 'either'),
  resp2('beyond 2^53', ':9223372036854775807\r\n', 'host'),
  resp2('the smallest integer', ':-9223372036854775808\r\n', 'host'),
  resp2('bulk string', '$5\r\nhello\r\n'),
  resp2('empty bulk string', '$0\r\n\r\n'),
  resp2('null bulk string', '$-1\r\n'),
  resp2('bulk string of CRLFs', '$6\r\n\r\n$-1\r\r\n'),
  resp2('bulk string that looks like a reply', bulk('*2\r\n$1\r\na\r\n$1\r\nb\r\n')),
  resp2('bulk string beyond ASCII', bulk('żółw 🐢 \u0000')),
  resp2('binary bulk string', bulk(Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)))),
  resp2('bulk string with a byte order mark', bulk('\uFEFFx')),
  resp2('bulk string of 1023 bytes', bulk('x'.repeat(1023))),
  resp2('array', '*2\r\n$1\r\na\r\n$1\r\nb\r\n'),
  resp2('empty array', '*0\r\n'),
  resp2('null array', '*-1\r\n'),
  resp2('array with nulls', '*3\r\n$-1\r\n*-1\r\n$1\r\na\r\n'),
  resp2('array of empty arrays', '*2\r\n*0\r\n*0\r\n'),
  resp2('array of all kinds', '*5\r\n+a\r\n:1\r\n$1\r\nb\r\n*1\r\n:2\r\n$-1\r\n'),
  resp2('nested arrays', '*2\r\n*1\r\n*1\r\n$1\r\na\r\n*2\r\n:1\r\n$0\r\n\r\n'),
  resp2('array with an error', '*2\r\n:1\r\n-ERR inside\r\n', 'host'),
  resp2('array with a huge integer', '*2\r\n:1\r\n:9223372036854775807\r\n', 'host'),
  resp2('arrays 30 deep', `${'*1\r\n'.repeat(30)}:1\r\n`, 'either'),
  resp3('null', '_\r\n'),
  resp3('true', '#t\r\n'),
  resp3('false', '#f\r\n'),
  resp3('double', ',3.25\r\n', 'either'),
  resp3('double with exponent', ',1.5e-7\r\n', 'either'),
  resp3('infinity', ',inf\r\n', 'either'),
  resp3('negative infinity', ',-inf\r\n', 'either'),
  resp3('not a number', ',nan\r\n', 'either'),
  resp3('big number', '(3492890328409238509324850943850943825024385\r\n', 'host'),
  resp3('verbatim string', '=8\r\ntxt:text\r\n', 'host'),
  resp3('blob error', '!9\r\nERR wrong\r\n', 'host'),
  resp3('set', '~3\r\n$1\r\na\r\n:1\r\n#t\r\n'),
  resp3('empty set', '~0\r\n'),
  resp3('map', '%2\r\n$1\r\na\r\n:1\r\n+b\r\n_\r\n'),
  resp3('empty map', '%0\r\n'),
  resp3('map with numbers as keys', '%1\r\n:1\r\n:2\r\n', 'either'),
  resp3('map with a double as key', '%1\r\n,1.5\r\n:2\r\n', 'either'),
  resp3('map with a null as key', '%1\r\n_\r\n:2\r\n', 'either'),
  resp3('map of maps', '%1\r\n$1\r\na\r\n%1\r\n$1\r\nb\r\n~1\r\n$1\r\nc\r\n'),
  resp3('map with keys of every object', '%2\r\n$9\r\n__proto__\r\n:1\r\n$11\r\nconstructor\r\n:2\r\n'),
  resp3('map with a key twice', '%2\r\n$1\r\na\r\n:1\r\n$1\r\na\r\n:2\r\n'),
  resp3('map with a key that is an index', '%2\r\n$1\r\nb\r\n:1\r\n$1\r\n0\r\n:2\r\n'),
  resp3('array with doubles', '*2\r\n$1\r\na\r\n,0.1\r\n', 'either'),
  resp3('array with a verbatim string', '*1\r\n=8\r\ntxt:text\r\n', 'host'),
  resp3('array with a blob error', '*1\r\n!3\r\nERR\r\n', 'host'),
];

/** Bytes in which no reply can be found, with what is wrong about them. */
export const MALFORMED: readonly (readonly [title: string, bytes: string])[] = [
  ['an unknown type', 'hello\r\n'],
  ['an attribute, which no host knows', '|1\r\n$1\r\na\r\n:1\r\n+OK\r\n'],
  ['a length that is no number', '$x\r\n'],
  ['no length', '$\r\n'],
  ['no count', '*\r\n'],
  ['a length of minus', '$-\r\n'],
  ['a length below -1', '$-2\r\n'],
  ['a length of -11', '$-11\r\n'],
  ['a minus behind a length', '$1-\r\n'],
  ['a signed length', '$+5\r\nhello\r\n'],
  ['a fraction', '*1.5\r\n'],
  ['a streamed string', '$?\r\n'],
  ['a streamed array', '*?\r\n'],
  ['a negative map', '%-1\r\n'],
  ['CR without LF', '+OK\rx'],
  ['a null that says something', '_x\r\n'],
  ['a null that says something, in an array', '*2\r\n:1\r\n_x\r\n'],
  ['a boolean of two letters', '#tt\r\n'],
  ['a boolean of none', '#\r\n'],
  ['an unknown type in an array', '*2\r\n:1\r\nx\r\n'],
];

const text = fc.oneof(anyString(12), fc.constantFrom('', '\r\n', '$-1\r\n', '__proto__'));
const line = fc.string({ maxLength: 12 }).map((value) => value.replaceAll(/[\r\n]/g, ' '));
const double = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 }).map((value) => `,${value}\r\n`);

const plain: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 4, arbitrary: text.map(bulk) },
  { weight: 2, arbitrary: fc.maxSafeInteger().map((value) => Buffer.from(`:${value}\r\n`)) },
  line.map((value) => Buffer.from(`+${value}\r\n`)),
  fc.constantFrom('$-1\r\n', '*-1\r\n', ':0\r\n', ':9223372036854775807\r\n').map((value) => Buffer.from(value)),
  fc.uint8Array({ maxLength: 40 }).map((value) => bulk(Buffer.from(value))),
);

const plain3: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 4, arbitrary: plain },
  double.map((value) => Buffer.from(value)),
  fc
    .constantFrom('_\r\n', '#t\r\n', '#f\r\n', '=6\r\ntxt:ab\r\n', '(99999999999999999999\r\n')
    .map((v) => Buffer.from(v)),
);

const tree = (leaf: fc.Arbitrary<Buffer>, markers: readonly ('*' | '~' | '%')[]): fc.Arbitrary<Buffer> =>
  fc.letrec<{ reply: Buffer }>((tie) => {
    const elements = fc.array(tie('reply'), { maxLength: 4 });
    const pairs = fc.array(fc.tuple(text.map(bulk), tie('reply')), { maxLength: 3 });
    return {
      reply: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        { weight: 4, arbitrary: leaf },
        ...markers.map((marker) =>
          marker === '%'
            ? pairs.map((entries) => aggregate('%', entries.flat()))
            : elements.map((values) => aggregate(marker, values)),
        ),
      ),
    };
  }).reply;

/** Any reply that is a value. */
export const anyReply2 = tree(plain, ['*']);
export const anyReply3 = tree(plain3, ['*', '~', '%']);
