import fc from 'fast-check';
import { Command } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { scanRequests } from '../../src/resp/request-scanner.js';

function request(...args: (string | Buffer)[]): Buffer {
  const [name, ...rest] = args;
  return Buffer.from(new Command(String(name), rest).toWritable({}) as string);
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
  ])('counts %s', (_title, commands, count) => {
    const bytes = Buffer.concat(commands.map((command) => request(...command)));
    expect(scanRequests(bytes)).toEqual({ commands: count, transaction: undefined, repliesOff: false });
    expect(scanRequests(bytes.toString())).toEqual({ commands: count, transaction: undefined, repliesOff: false });
  });

  it('reads only its own part of a larger buffer', () => {
    const whole = Buffer.concat([request('multi'), request('get', 'a'), request('exec')]);
    const start = request('multi').length;
    const piece = new Uint8Array(whole.buffer, whole.byteOffset + start, request('get', 'a').length);
    expect(scanRequests(piece)).toEqual({ commands: 1, transaction: undefined, repliesOff: false });
  });

  it.each([
    [['multi'], 'open'],
    [['MULTI'], 'open'],
    [['multi', 'get'], 'open'],
    [['multi', 'get', 'exec'], 'closed'],
    [['exec'], 'closed'],
    [['discard'], 'closed'],
    [['reset'], 'closed'],
    [['exec', 'Multi'], 'open'],
    [['get', 'multiply', 'executor'], undefined],
  ])('after %j a transaction is %s', (names, transaction) => {
    expect(scanRequests(Buffer.concat(names.map((name) => request(name))))).toEqual({
      commands: names.length,
      transaction,
      repliesOff: false,
    });
  });

  it.each([
    [['client', 'reply', 'off'], true],
    [['CLIENT', 'REPLY', 'SKIP'], true],
    [['client', 'reply', 'on'], false],
    [['client', 'setname', 'off'], false],
    [['get', 'client reply off'], false],
  ] as const)('of %j, says that replies are off: %s', ([name, ...args], repliesOff) => {
    expect(scanRequests(request(name, ...args)).repliesOff).toBe(repliesOff);
  });

  it('does not take arguments for commands', () => {
    expect(scanRequests(request('set', 'multi', 'exec')).transaction).toBeUndefined();
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
  ])('takes %j for one command', (bytes) => {
    expect(scanRequests(bytes)).toEqual({ commands: 1, transaction: undefined, repliesOff: false });
  });

  it('counts the commands before bytes of another form', () => {
    const bytes = Buffer.concat([request('get', 'a'), request('multi'), Buffer.from('INLINE\r\n')]);
    expect(scanRequests(bytes)).toEqual({ commands: 2, transaction: 'open', repliesOff: false });
  });

  it('counts any commands', () => {
    const argument = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.uint8Array({ maxLength: 20 }).map((value) => Buffer.from(value)),
    );
    fc.assert(
      fc.property(fc.array(fc.array(argument, { maxLength: 5 }), { minLength: 1, maxLength: 20 }), (commands) => {
        const bytes = Buffer.concat(commands.map((args) => request('set', ...args)));
        expect(scanRequests(bytes)).toEqual({ commands: commands.length, transaction: undefined, repliesOff: false });
      }),
    );
  });

  it('terminates on any bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('*', '$', '1', '2', '9', '-', '\r\n', 'get', 'multi')), (parts) => {
        expect(scanRequests(parts.join('')).commands).toBeGreaterThanOrEqual(1);
      }),
      { numRuns: 2000 },
    );
  });
});
