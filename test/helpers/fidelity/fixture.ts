import { connect as connectSocket, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import type { Place } from './variants.js';

export const BINARY = Buffer.from([0x00, 0xff, 0x0d, 0x0a, 0x80, 0xc3, 0x28]);
export const MULTIBYTE = 'héllo€😀';
export const RESP_LOOKALIKE = 'a\r\n$-1\r\n*1\r\nb';
export const BINARY_KEY = Buffer.from([0xff, 0x00, 0x0d, 0x0a]);

/**
 * Keys that look alike if bytes are taken for characters: a byte above ASCII, its Latin-1 character as UTF-8, and the
 * Latin-1 picture of that UTF-8.
 */
export const LOOKALIKE_KEYS: readonly (string | Buffer)[] = [Buffer.from([0xe9]), 'é', 'Ã©'];

type Write = readonly [command: string, key: string | Buffer, ...args: (string | Buffer)[]];

/** One key of every type, with members of every kind. */
const WRITES: readonly Write[] = [
  ['SET', 'str', 'hello'],
  ['SET', 'num', '10'],
  ['SET', 'big', '9007199254740993'],
  ['SET', 'max', '9223372036854775806'],
  ['SET', 'float', '10.5'],
  ['SET', 'empty', ''],
  ['SET', 'multi', MULTIBYTE],
  ['SET', 'bin', BINARY],
  ['SET', 'crlf', RESP_LOOKALIKE],
  ['SET', BINARY_KEY, 'under a binary key'],
  ...LOOKALIKE_KEYS.map((key, index): Write => ['SET', key, `under lookalike key ${index}`]),
  ['HSET', 'lookalikes', ...LOOKALIKE_KEYS.flatMap((field, index) => [field, `in lookalike field ${index}`])],
  ['SET', '__proto__', 'p'],
  ['SET', 'bits', Buffer.from([0xf0, 0x0f])],
  ['SET', 'expiring', 'v', 'EXAT', '33177117420'],
  ['HSET', 'hash', 'f', 'v', 'n', '5', 'e', '', 'ключ', MULTIBYTE, '__proto__', 'x', 'b', BINARY, '10', '1', '2', '3'],
  ['HSET', 'hash1', 'only', '9007199254740993'],
  ['RPUSH', 'list', 'a', 'b', 'c', 'a', '', MULTIBYTE, BINARY],
  ['SADD', 'set', 'a', 'b', 'c', MULTIBYTE, ''],
  ['SADD', 'intset', '1', '2', '3'],
  ['SADD', 'set1', 'only'],
  ['ZADD', 'zset', '1', 'a', '2.5', 'b', '3', 'c', 'inf', 'd', '-inf', 'e', '0.1', MULTIBYTE, '1e21', 'g'],
  ['ZADD', 'zset2', '10', 'a', '20', 'z'],
  ['ZADD', 'zset1', '1.5', 'only'],
  ['ZADD', 'lex', '0', 'a', '0', 'b', '0', 'c', '0', 'd'],
  ['GEOADD', 'geo', '13.361389', '38.115556', 'Palermo', '15.087269', '37.502669', 'Catania'],
  ['XADD', 'stream', '1-1', 'a', '1', 'b', ''],
  ['XADD', 'stream', '2-2', MULTIBYTE, BINARY],
  ['XADD', 'stream', '3-3', 'a', '3'],
  ['XGROUP', 'stream', 'g', '0'],
  ['PFADD', 'hll', 'a', 'b', 'c'],
  ['PFADD', 'hll2', 'c', 'd'],
];

// One round trip for all databases; a key's remaining time is left out, that it has one is not.
// A stream's DUMP has the times at which its consumers were seen, a set's the order of its hash table, which each read
// may change a little: shared reads are fewer.
const DUMP_LUA = `
local result = {}
local function flat(value)
  if type(value) ~= 'table' then return #tostring(value) .. ':' .. tostring(value) end
  local parts = {}
  for index, item in ipairs(value) do parts[index] = flat(item) end
  return '[' .. table.concat(parts, ',') .. ']'
end
local function contents(key)
  local type = redis.call('TYPE', key).ok
  if type == 'set' then
    local members = redis.call('SMEMBERS', key)
    table.sort(members)
    return flat({redis.call('OBJECT', 'ENCODING', key), members})
  end
  if type ~= 'stream' then return redis.call('DUMP', key) end
  return flat({redis.call('XRANGE', key, '-', '+'), redis.call('XINFO', 'GROUPS', key)})
end
for _, db in ipairs(ARGV) do
  redis.call('SELECT', db)
  local keys = redis.call('KEYS', '*')
  table.sort(keys)
  for _, key in ipairs(keys) do
    local expires = redis.call('PTTL', key) >= 0 and 'expires' or 'stays'
    result[#result + 1] = db .. ' ' .. expires
    result[#result + 1] = key
    result[#result + 1] = contents(key)
  end
end
return result`;

/** A request as it is on the wire. */
function encoded(parts: readonly (string | Buffer | number)[]): Buffer {
  const bytes: Buffer[] = [Buffer.from(`*${parts.length}\r\n`)];
  for (const part of parts) {
    const own = typeof part === 'number' ? Buffer.from(String(part)) : Buffer.from(part as string);
    bytes.push(Buffer.from(`$${own.length}\r\n`), own, Buffer.from('\r\n'));
  }
  return Buffer.concat(bytes);
}

function resetRequests(dbs: readonly number[], prefix: string, scripts: readonly string[]): Buffer {
  const requests: (string | Buffer | number)[][] = dbs.flatMap((db) => [['SELECT', db], ['FLUSHDB']]);
  requests.push(['SELECT', dbs[0] ?? 0], ['SCRIPT', 'FLUSH']);
  for (const script of scripts) requests.push(['SCRIPT', 'LOAD', script]);
  for (const [command, key, ...args] of WRITES) {
    const prefixed = Buffer.concat([Buffer.from(prefix), Buffer.from(key)]);
    requests.push(command === 'XGROUP' ? [command, 'CREATE', prefixed, ...args] : [command, prefixed, ...args]);
  }
  requests.push(['ECHO', 'reset']);
  return Buffer.concat(requests.map(encoded));
}

const RESET = '$5\r\nreset\r\n';

/** The suites' own connection to the server, with nothing of what is tested in it. */
export class Admin {
  readonly #redis: Redis;
  /** For resets: their bytes are the same thousands of times, and are made once. */
  readonly #socket: Socket;
  readonly #resets = new Map<string, Buffer>();
  #replies = '';
  #replied: (error?: Error) => void = () => {};

  constructor(place: Omit<Place, 'db'>) {
    this.#redis = new Redis({ host: place.host, port: place.port, protocol: 2 });
    this.#socket = connectSocket(place.port, place.host);
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (text) => {
      this.#replies += text;
      if (this.#replies.endsWith(RESET)) this.#replied();
    });
    this.#socket.on('error', (error) => this.#replied(error));
    this.#socket.on('close', () => this.#replied(new Error('the connection for resets was closed')));
  }

  /** Empties the databases, puts the fixture into the first one, and makes `scripts` the only ones in the cache. */
  async reset(dbs: readonly number[], prefix: string, scripts: readonly string[] = []): Promise<void> {
    const name = JSON.stringify([dbs, prefix, scripts]);
    let requests = this.#resets.get(name);
    if (requests === undefined) {
      requests = resetRequests(dbs, prefix, scripts);
      this.#resets.set(name, requests);
    }
    this.#replies = '';
    await new Promise<void>((resolve, reject) => {
      this.#replied = (error) => (error ? reject(error) : resolve());
      this.#socket.write(requests as Buffer);
    });
    const error = /(?:^|\n)-(.*)/.exec(this.#replies)?.[1];
    if (error !== undefined) throw new Error(`a reset of the fixture was answered: ${error}`);
  }

  /**
   * Every key of the databases with its serialized value. The databases' own numbers are replaced by their position.
   */
  async dump(dbs: readonly number[]): Promise<string[]> {
    const flat = (await this.#redis.callBuffer('EVAL', DUMP_LUA, 0, ...dbs)) as Buffer[];
    const keys: string[] = [];
    for (let index = 0; index < flat.length; index += 3) {
      const [db, expires] = String(flat[index]).split(' ');
      const key = JSON.stringify(flat[index + 1]?.toString('latin1'));
      keys.push(`db ${dbs.indexOf(Number(db))} ${key} ${expires} ${flat[index + 2]?.toString('hex')}`);
    }
    return keys;
  }

  async close(): Promise<void> {
    this.#socket.destroy();
    await this.#redis.quit();
  }
}
