import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Call, ENTRIES, NORMALISE } from '../helpers/fidelity/command-table.js';
import { Admin } from '../helpers/fidelity/fixture.js';
import { Outcomes } from '../helpers/fidelity/outcomes.js';
import { type Client, connect, describeVariant, invoke, type Variant, workOf } from '../helpers/fidelity/variants.js';
import { type RedisServer, startServer } from '../helpers/redis.js';

/**
 * A command that would leave its mark, in every disguise; `€` makes a length in characters differ from one in bytes.
 */
const MARK = 'SET injected yes';
const PAYLOADS: readonly unknown[] = [
  'x\r\n*3\r\n$3\r\nSET\r\n$8\r\ninjected\r\n$3\r\nyes\r\n',
  '€€€\r\n*3\r\n$3\r\nSET\r\n$8\r\ninjected\r\n$3\r\nyes\r\n',
  `\r\n${MARK}\r\n`,
  `\n${MARK}\n`,
  `$-1\r\n${MARK}\r\n`,
  `*0\r\n${MARK}\r\n`,
  '\ud800\r\n*3\r\n$3\r\nSET\r\n$8\r\ninjected\r\n$3\r\nyes\r\n',
  `0\r\n${'€'.repeat(300)}\r\n${MARK}\r\n`,
  Buffer.from('x\r\n*3\r\n$3\r\nSET\r\n$8\r\ninjected\r\n$3\r\nyes\r\n'),
  Buffer.concat([Buffer.from([0xff, 0x00]), Buffer.from(`\r\n${MARK}\r\n`)]),
];

const ROUND_TRIPS: readonly string[] = [
  ...PAYLOADS.filter((payload) => typeof payload === 'string' && !payload.includes('\ud800')).map(String),
  'x\r\n*1\r\n$8\r\nFLUSHALL\r\n',
  '\r',
  '\n',
  '\r\n',
  '\0',
  '+OK\r\n',
  '-ERR made up\r\n',
  ':1\r\n',
  '$3\r\nabc\r\n',
  '_\r\n',
  '>2\r\n+message\r\n',
  '|1\r\n+k\r\n+v\r\n',
  '$?\r\n',
];

const PLAIN_DB = 1;
const COALESCED_DB = 2;

const VARIANTS: readonly Variant[] = [
  { host: 'ioredis6', protocol: 3, stringNumbers: false, keyPrefix: '' },
  { host: 'ioredis6', protocol: 2, stringNumbers: false, keyPrefix: 'p:' },
  {
    host: 'ioredis6',
    protocol: 3,
    stringNumbers: false,
    keyPrefix: '',
    coalesce: { shareReads: true, maxBatchBytes: 64 },
  },
  { host: 'ioredis6', protocol: 3, stringNumbers: false, keyPrefix: 'x\r\nSET injected yes\r\n' },
  { host: 'ioredis5', stringNumbers: false, keyPrefix: '' },
  { host: 'iovalkey', stringNumbers: false, keyPrefix: '' },
];

let server: RedisServer;
let admin: Admin;

beforeAll(async () => {
  server = await startServer();
  admin = new Admin(server);
});

afterAll(async () => {
  await admin?.close();
  await server?.stop();
});

/** Each payload in each argument position of each command of the table. */
function attacks(payload: unknown): Call[] {
  const longest = new Map<string, Call>();
  for (const call of ENTRIES.flatMap(({ calls }) => calls)) {
    const plain = call.length < 20 && call.every((arg) => typeof arg !== 'object');
    if (plain && call.length > (longest.get(call[0])?.length ?? 1)) {
      longest.set(call[0], call);
    }
  }
  return [...longest.values()].flatMap(([name, ...args]) =>
    args.map((_, position): Call => [name, ...args.with(position, payload)]),
  );
}

async function attack(client: Client, calls: readonly Call[]): Promise<Outcomes> {
  const outcomes = new Outcomes();
  for (const [name, ...args] of calls) {
    void outcomes.track(
      () => `${name}(${JSON.stringify(args).slice(0, 120)})`,
      () => invoke(client, name, args),
      NORMALISE[name],
    );
  }
  await outcomes.settled();
  return outcomes;
}

describe.each(VARIANTS.map((variant) => [JSON.stringify(describeVariant(variant)), variant] as const))(
  '%s',
  (_, variant) => {
    let plain: Client;
    let coalesced: Client;

    beforeAll(async () => {
      plain = await connect(variant, { ...server, db: PLAIN_DB }, 'plain');
      coalesced = await connect(variant, { ...server, db: COALESCED_DB }, 'coalesced');
    });

    afterAll(() => {
      plain?.disconnect();
      coalesced?.disconnect();
    });

    it.each(PAYLOADS.map((payload, index) => [index, payload] as const))(
      'never takes payload %i for a command, in any position',
      async (_index, payload) => {
        const calls = attacks(payload);
        expect(calls.length).toBeGreaterThan(300);
        await admin.reset([PLAIN_DB], variant.keyPrefix);
        const expected = await attack(plain, calls);
        await admin.reset([COALESCED_DB], variant.keyPrefix);
        const actual = await attack(coalesced, calls);
        expect(actual.mismatches(expected).slice(0, 10).join('\n')).toBe('');
        const keys = await admin.dump([COALESCED_DB]);
        expect(keys.filter((key) => key.startsWith('db 0 "injected"'))).toEqual([]);
        expect(keys).toEqual(await admin.dump([PLAIN_DB]));
        await expect(invoke(coalesced, 'echo', ['still in step'])).resolves.toBe('still in step');
        expect(workOf(coalesced).fastShare).toBeGreaterThan(0.5);
      },
    );

    it('gives values back byte for byte, in one tick, as key, field, value and member', async () => {
      await admin.reset([COALESCED_DB], variant.keyPrefix);
      const send = (name: string, ...args: unknown[]) => invoke(coalesced, name, args) as Promise<unknown>;
      const replies = await Promise.all(
        ROUND_TRIPS.map((text) =>
          Promise.all([
            send('set', text, text),
            send('get', text),
            send('getBuffer', text),
            send('hset', `hash ${text}`, text, text),
            send('hget', `hash ${text}`, text),
            send('hgetall', `hash ${text}`),
            send('rpush', `list ${text}`, text, Buffer.from(text), ''),
            send('lrange', `list ${text}`, 0, -1),
            send('zadd', `zset ${text}`, 1, text),
            send('zrange', `zset ${text}`, 0, -1),
            send('echo', text),
            send('mget', text, 'missing', text),
          ]),
        ),
      );
      const expected = ROUND_TRIPS.map((text) => [
        'OK',
        text,
        Buffer.from(text),
        1,
        text,
        { [text]: text },
        3,
        [text, text, ''],
        1,
        [text],
        text,
        [text, null, text],
      ]);
      expect(replies).toEqual(expected);
    });
  },
);
