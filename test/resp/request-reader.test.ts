import fc from 'fast-check';
import { Command } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { RequestReader } from '../../src/resp/request-reader.js';
import { anyString } from '../helpers/any-string.js';

function request(...args: (string | Buffer)[]): Buffer {
  const [name, ...rest] = args;
  return Buffer.from(new Command(String(name), rest).toWritable({}) as string);
}

/** The arguments of all commands that are read. */
function read(data: string | Uint8Array, single = false): string[][] {
  const requests = new RequestReader(data, single);
  const commands: string[][] = [];
  while (requests.next()) commands.push(Array.from({ length: requests.count }, (_, index) => requests.text(index)));
  return commands;
}

describe('request scanner', () => {
  it.each([
    ['one command', [['get', 'a']], 1],
    [
      'two commands',
      [
        ['get', 'a'],
        ['set', 'a', 'b'],
      ],
      2,
    ],
    ['a command without arguments', [['ping']], 1],
    ['empty arguments', [['set', '', '']], 1],
    [
      'a command behind empty arguments',
      [
        ['set', 'a', ''],
        ['get', 'a'],
      ],
      2,
    ],
    ['arguments of RESP', [['set', 'a', '*1\r\n$5\r\nmulti\r\n']], 1],
    [
      'multi-byte arguments',
      [
        ['set', 'żółw', '🐢'],
        ['get', 'a'],
      ],
      2,
    ],
    ['many commands', Array.from({ length: 500 }, (_, index) => ['get', `key ${index}`]), 500],
  ])('reads %s', (_title, commands, count) => {
    const bytes = Buffer.concat(commands.map((command) => request(...command)));
    expect(read(bytes)).toEqual(commands);
    expect(read(bytes.toString())).toEqual(commands);
    expect(read(bytes.toString(), true)).toEqual(commands.slice(0, 1));
    expect(commands.length).toBe(count);
  });

  it('reads only its own part of a larger buffer', () => {
    const whole = Buffer.concat([request('multi'), request('get', 'a'), request('exec')]);
    const start = request('multi').length;
    const piece = new Uint8Array(whole.buffer, whole.byteOffset + start, request('get', 'a').length);
    expect(read(piece)).toEqual([['get', 'a']]);
  });

  it('reads arguments of a single long command only when they are requested', () => {
    const long = 'żółw'.repeat(100_000);
    for (const data of [request('set', 'key', long, 'ex', '1'), request('set', 'key', long, 'ex', '1').toString()]) {
      const requests = new RequestReader(data, true);
      expect(requests.next()).toBe(true);
      expect([requests.text(0), requests.text(1), requests.count]).toEqual(['set', 'key', 5]);
      expect([requests.text(4), requests.text(2) === long, requests.text(5)]).toEqual(['1', true, '']);
      expect(requests.next()).toBe(false);
    }
  });

  it('reads a single long command whose head ends within a character', () => {
    for (let length = 470; length < 520; length += 1) {
      const args = ['set', 'x'.repeat(length), '🐢🐢🐢🐢🐢🐢🐢', 'last'];
      expect(read(request(...args).toString(), true)).toEqual([args]);
    }
  });

  it.each([
    '',
    'PING\r\n',
    '*',
    '*1',
    '*x\r\n',
    '*0\r\n',
    '*-1\r\n',
    '*1\r\n+OK\r\n',
    '*1\r\n$-1\r\n',
    '*1\r\n$x\r\nget\r\n',
  ])('takes %j for no command', (bytes) => {
    for (const single of [true, false]) {
      const requests = new RequestReader(bytes, single);
      expect([requests.next(), requests.malformed]).toEqual([false, bytes !== '']);
    }
  });

  it('reads the commands before bytes of another form', () => {
    const bytes = Buffer.concat([request('get', 'a'), request('multi'), Buffer.from('INLINE\r\n')]);
    expect(read(bytes)).toEqual([['get', 'a'], ['multi']]);
  });

  it('reads any commands', () => {
    const argument = fc.oneof(
      anyString(20),
      fc.uint8Array({ maxLength: 20 }).map((value) => Buffer.from(value)),
    );
    fc.assert(
      fc.property(fc.array(fc.array(argument, { maxLength: 5 }), { minLength: 1, maxLength: 20 }), (commands) => {
        const bytes = Buffer.concat(commands.map((args) => request('set', ...args)));
        const expected = commands.map((args) => ['set', ...args.map((argument) => Buffer.from(argument).toString())]);
        expect(read(bytes)).toEqual(expected);
        for (const [index, args] of commands.entries()) {
          expect(read(request('set', ...args), true)).toEqual([expected[index]]);
        }
      }),
    );
  });

  it('terminates on any bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('*', '$', '1', '2', '9', '-', '\r\n', 'get', 'multi')), (parts) => {
        for (const single of [true, false])
          expect(read(parts.join(''), single).length).toBeLessThanOrEqual(parts.length);
      }),
      { numRuns: 2000 },
    );
  });
});
