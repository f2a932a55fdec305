import type { Call, Entry } from './command-table.js';
import { BINARY, BINARY_KEY, MULTIBYTE, RESP_LOOKALIKE } from './fixture.js';

const KEYS = [
  'str',
  'num',
  'hash',
  'list',
  'set1',
  'zset',
  'stream',
  'missing',
  '',
  7,
  1e21,
  BINARY_KEY,
  MULTIBYTE,
  '__proto__',
];
const VALUES = [
  '',
  MULTIBYTE,
  BINARY,
  RESP_LOOKALIKE,
  42,
  -0,
  1.5,
  1e21,
  123456789012345680000,
  9007199254740993n,
  '9223372036854775807',
  '__proto__',
];

/**
 * An entry's calls and, made from its first one: every type of key in place of its own, every kind of value in place of
 * its last argument, too few and too many arguments, all arguments as one array.
 */
export function variations(entry: Entry): Call[] {
  const calls = [...entry.calls];
  const [first] = entry.calls;
  if (!entry.vary || first === undefined) {
    return calls;
  }
  const [name, ...args] = first;
  for (const key of KEYS) {
    calls.push([name, key, ...args.slice(1)]);
  }
  if (args.length > 1) {
    for (const value of VALUES) {
      calls.push([name, ...args.slice(0, -1), value]);
    }
  }
  calls.push([name, args], [name], [name, ...args.slice(0, -1)], [name, ...args, ...args, ...args]);
  return calls;
}
