import { describe, expect, it } from 'vitest';
import { parseBenchArguments } from '../../cli/arguments.js';
import { runCli } from './helpers.js';

describe('options of bench', () => {
  it('have defaults', () => {
    expect(parseBenchArguments([], {})).toEqual({
      target: { url: 'redis://127.0.0.1:6379', cluster: false, tls: false, name: '127.0.0.1:6379' },
      concurrency: 100,
      valueBytes: 100,
      keys: 1000,
      seconds: 5,
      fuse: false,
      json: false,
    });
  });

  it('take the URL from --url before REDIS_URL', () => {
    const env = { REDIS_URL: 'redis://from-env' };
    expect(parseBenchArguments([], env)).toMatchObject({ target: { name: 'from-env:6379' } });
    expect(parseBenchArguments(['--url', 'rediss://u:p@from-flag:1/2'], env)).toMatchObject({
      target: { name: 'from-flag:1' },
    });
  });

  it.each([
    ['127.0.0.1:6380', { url: 'redis://127.0.0.1:6380', name: '127.0.0.1:6380' }],
    ['redis.internal:6379/2', { url: 'redis://redis.internal:6379/2', name: 'redis.internal:6379' }],
    ['[::1]:6379', { url: 'redis://[::1]:6379', name: '[::1]:6379' }],
    ['/run/redis.sock', { url: '/run/redis.sock', name: '/run/redis.sock' }],
  ])('take the address %s', (url, target) => {
    expect(parseBenchArguments(['--url', url], {})).toMatchObject({ target });
  });

  it.each([
    [['--foo'], "Unknown option '--foo'"],
    [['--url'], "Option '--url <value>' argument missing"],
    [['--keys', '-5'], '--keys must be a whole number from 1 to 10000000, got "-5"'],
    [['--value-size', '-5'], '--value-size must be a whole number from 1 to 67108864, got "-5"'],
    [['--keys', '0'], '--keys must be a whole number from 1 to 10000000, got "0"'],
    [['--concurrency', '1e3'], '--concurrency must be a whole number from 1 to 100000, got "1e3"'],
    [['--concurrency=-5'], '--concurrency must be a whole number from 1 to 100000, got "-5"'],
    [['--seconds=-.5'], '--seconds must be a number from 0.1 to 3600, got "-.5"'],
    [['--url', '/run/redis.sock', '--cluster'], '--cluster needs a URL with a host, not a unix socket'],
    [['--value-size', 'big'], '--value-size must be a whole number from 1 to 67108864, got "big"'],
    [['--seconds', '0'], '--seconds must be a number from 0.1 to 3600, got "0"'],
    [['--keys', '1000000', '--value-size', '1000'], '--keys × --value-size must be at most 268435456 bytes'],
    [['redis://:s3cret@127.0.0.1'], 'expected options only; a URL follows --url'],
    [
      ['--url', 'http://:s3cret@127.0.0.1'],
      'the URL of Redis must look like redis://host:port, rediss://host:port, host:port or /path.sock',
    ],
    [
      ['--url', 's3cret'],
      'the URL of Redis must look like redis://host:port, rediss://host:port, host:port or /path.sock',
    ],
  ])('%o are refused in one line', (args, message) => {
    let error = new Error('not refused');
    try {
      parseBenchArguments(args, {});
    } catch (thrown) {
      error = thrown as Error;
    }
    expect(error.message).toContain(message);
    expect(error.message).toMatch(/^[^\n]* \(see ioredis-coalesce --help\)$/);
    expect(error.message).not.toContain('s3cret');
  });
});

describe('the command', () => {
  it.each([
    [[], 'Usage: ioredis-coalesce bench [options]'],
    [['--help'], 'Usage: ioredis-coalesce bench [options]'],
    [['help'], 'Usage: ioredis-coalesce bench [options]'],
    [['help', 'bench'], 'Usage: ioredis-coalesce bench [options]'],
    [['bench', '--help'], 'Usage: ioredis-coalesce bench [options]'],
  ])('%o prints help', async (args, text) => {
    const { code, stdout, stderr } = await runCli(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(text);
  });

  it('prints its version', async () => {
    const { stdout, code } = await runCli(['--version']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
  });

  it.each([
    [['bench', '--foo'], "Unknown option '--foo' (see ioredis-coalesce --help)"],
    [['benhc'], 'expected the command "bench" (see ioredis-coalesce --help)'],
  ])('%o is one line and exit code 2', async (args, message) => {
    expect(await runCli(args)).toEqual({ code: 2, stdout: '', stderr: `ioredis-coalesce: ${message}\n` });
  });
});
