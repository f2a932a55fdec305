/** Identical reads are the same bytes on the wire. Text and Buffers that merely look alike are not. */
import { describe, expect, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { type Client, HOSTS } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('bytes-and-text');

/** Three keys: one byte above ASCII, its Latin-1 character as UTF-8, and the Latin-1 picture of that UTF-8. */
const BYTE = Buffer.concat([Buffer.from(prefix), Buffer.from([0xe9])]);
const TEXT = `${prefix}é`;
const PICTURE = `${prefix}Ã©`;

const SCENES: Record<string, (client: Client) => Promise<unknown>[]> = {
  'a Buffer, then text of the same character codes': (c) => [c.get(BYTE), c.get(TEXT)],
  'text, then a Buffer of the same character codes': (c) => [c.get(TEXT), c.get(BYTE)],
  "text that pictures another text's bytes": (c) => [c.get(PICTURE), c.strlen(Buffer.from('x')), c.get(TEXT)],
  'text, then text that pictures its bytes': (c) => [c.get(TEXT), c.strlen(Buffer.from('x')), c.get(PICTURE)],
  'a Buffer of the UTF-8 beside text and its picture': (c) => [
    c.get(Buffer.from(TEXT)),
    c.get(TEXT),
    c.get(PICTURE),
    c.get(BYTE),
  ],
  'the second of several arguments': (c) => [
    c.hget(`${prefix}hash`, Buffer.from([0xe9])),
    c.hget(`${prefix}hash`, 'é'),
    c.hget(`${prefix}hash`, 'Ã©'),
  ],
  'several keys': (c) => [c.mget(BYTE, TEXT), c.mget(TEXT, TEXT), c.mget(PICTURE, TEXT), c.mget(BYTE, BYTE)],
  'read as Buffers': (c) => [c.getBuffer(BYTE), c.getBuffer(TEXT), c.getBuffer(PICTURE)],
  'while text is encoded exactly, since earlier text was not ASCII': (c) => [
    c.set(`${prefix}other`, '€'),
    c.get(TEXT),
    c.get(PICTURE),
    c.get(BYTE),
    c.get(TEXT),
  ],
};

describe.each(HOSTS)('$name: shareReads', (host) => {
  it.each(Object.keys(SCENES))('%s: each caller gets the value of its own key', async (scene) => {
    const plain = await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), {}, { shareReads: true });
      await client.mset(BYTE, 'of the byte', TEXT, 'of the text', PICTURE, 'of the picture');
      await client.hset(
        `${prefix}hash`,
        Buffer.from([0xe9]),
        'of the byte',
        'é',
        'of the text',
        'Ã©',
        'of the picture',
      );
      // Twice: what the first batch found out about its text changes how the second one is encoded.
      const first = await Promise.all(SCENES[scene]?.(client) ?? []);
      return [first, await Promise.all(SCENES[scene]?.(client) ?? [])];
    });
    expect(plain[0]).toEqual(plain[1]);
    expect(new Set(plain[0]?.map(String)).size).toBeGreaterThan(1);
  });
});
