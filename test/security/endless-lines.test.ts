/** A server that never ends a line is cut off before memory ends, whatever the line is made of. */
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { REPLY_LIMITS, ReplyScanner } from '../../src/resp/reply-scanner.js';
import { coalescedFake, plainError } from '../helpers/fake-connection.js';

/** The beginning of a reply, and what then comes again and again. */
const ENDLESS: readonly (readonly [begin: string, again: string])[] = [
  ['$', '0'],
  ['*', '0'],
  ['%', '0'],
  ['~', '0'],
  ['>', '0'],
  ['=', '0'],
  ['!', '0'],
  ['$000', '0'],
  [':', '0'],
  [':-', '0'],
  [',', '0'],
  ['(', '0'],
  ['#', 't'],
  ['+', 'x'],
  ['-', 'x'],
  ['*1\r\n$', '0'],
  ['*2\r\n:1\r\n#', 't'],
];

const CHUNK = 64 * 1024;
/** Twice what a line may have. */
const CHUNKS = (2 * REPLY_LIMITS.lineBytes) / CHUNK;

describe.each(ENDLESS)('%j, then %j without end', (begin, again) => {
  it('the scanner finds it oversized', () => {
    const scanner = new ReplyScanner();
    let result = scanner.scan(Buffer.from(begin), 0);
    const chunk = Buffer.alloc(CHUNK, again);
    for (let count = 0; count < CHUNKS && result === 'more'; count += 1) result = scanner.scan(chunk, 0);
    expect(['oversized', 'malformed']).toContain(result);
  });

  it.each(['fast', 'cold', 'none'] as const)('the connection ends: its next reply is for %s command', async (next) => {
    const { client, socket } = await coalescedFake({}, { protocol: 3 });
    const errors: unknown[] = [];
    client.on('error', (error) => errors.push(plainError(error)));
    if (next === 'fast') client.get('k').catch(() => {});
    if (next === 'cold') client.call('GET', 'k').catch(() => {});
    await turn();
    socket.feed(Buffer.from(begin));
    const chunk = Buffer.alloc(CHUNK, again);
    for (let count = 0; count < CHUNKS && !socket.destroyed; count += 1) socket.feed(chunk);
    await turn();
    expect(socket.destroyed).toBe(true);
    expect(errors.length).toBeGreaterThan(0);
    client.disconnect();
  });
});

describe('lengths that begin with zeros', () => {
  it.each(['$0000000005\r\nhello\r\n', '*0001\r\n$5\r\nhello\r\n'])('%j is a reply all the same', async (reply) => {
    const { client, socket } = await coalescedFake({}, { protocol: 3 });
    const value = client.get('k');
    await turn();
    socket.feed(reply);
    expect([await value].flat()).toEqual(['hello']);
    client.disconnect();
  });
});
