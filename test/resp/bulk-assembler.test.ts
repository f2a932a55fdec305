import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { BulkAssembler } from '../../src/resp/bulk-assembler.js';
import { coalescedFake, connectFake, type FakeOptions, type FakeSocket } from '../helpers/fake-connection.js';
import { HOSTS, ready } from '../helpers/hosts.js';
import {
  EACH_HOST,
  END,
  filled,
  HEADER,
  LONG,
  LONGEST,
  playBoth,
  SHORTEST,
  STEPS,
  UNITS,
} from '../helpers/long-replies.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { repliesOf, type Step } from '../helpers/reply-programs.js';
import { bulk, cutAt } from '../helpers/resp.js';

function begun(content: Buffer, cut: number): { assembler: BulkAssembler; rest: Buffer } {
  const assembler = new BulkAssembler();
  const whole = bulk(content);
  expect(assembler.begin(whole.subarray(0, cut), 0)).toBe(true);
  return { assembler, rest: whole.subarray(cut) };
}

describe('BulkAssembler', () => {
  const long = filled('long ', 10_000);
  const header = '$10000\r\n'.length;

  it('begins with a header that is whole, at whichever position, and not before', () => {
    const whole = bulk(long);
    for (const position of [0, 1, 77]) {
      const chunk = Buffer.concat([Buffer.alloc(position, ':1\r\n$9000\r\n'), whole]);
      for (let length = 0; length < whole.length; length += length < 20 || length > 9_990 ? 1 : 997) {
        const assembler = new BulkAssembler();
        expect(assembler.begin(chunk.subarray(0, position + length), position), `${length} at ${position}`).toBe(
          length >= header,
        );
        expect(assembler.open).toBe(length >= header);
      }
    }
  });

  it('leaves a reply that is whole: the decoder had a reason to leave it', () => {
    for (const chunk of [bulk(long), Buffer.concat([bulk(long), Buffer.from(':1\r\n')])]) {
      const assembler = new BulkAssembler();
      expect(assembler.begin(chunk, 0)).toBe(false);
      expect(assembler.open).toBe(false);
    }
  });

  it('leaves a reply that lacks its line feed alone, and says so when one has come to that', () => {
    const whole = bulk(long);
    expect(new BulkAssembler().begin(whole.subarray(0, -1), 0)).toBe(false);
    const { assembler } = begun(long, 5_000);
    assembler.add(whole.subarray(5_000, -2), 0);
    expect(assembler.onlyLacksLineFeed).toBe(false);
    assembler.add(whole.subarray(-2, -1), 0);
    expect(assembler.onlyLacksLineFeed).toBe(true);
    expect(assembler.whole).toBe(false);
  });

  it.each([
    ['$8191', false],
    ['$8192', true],
    [`$${LONGEST}`, true],
    [`$${LONGEST + 1}`, false],
    ['$99999999', false],
    ['$00008192', true],
    ['$000008192', false],
    ['$100000000', false],
    [`$${'9'.repeat(30)}`, false],
    ['$', false],
    ['$-1', false],
    ['$-8192', false],
    ['$+8192', false],
    ['$8192 ', false],
    ['$81x2', false],
    ['$8192\n', false],
    ['=8192', false],
    ['!8192', false],
    [':8192', false],
    ['*8192', false],
  ])('%s…: %s', (line, expected) => {
    expect(new BulkAssembler().begin(Buffer.from(`${line}\r\nxyz`), 0)).toBe(expected);
    expect(new BulkAssembler().begin(Buffer.from(`${line}\rxyz`), 0)).toBe(false);
    expect(new BulkAssembler().begin(Buffer.from(`${line}xyz`), 0)).toBe(false);
    expect(new BulkAssembler().begin(Buffer.from(`${line}\r`), 0)).toBe(false);
    expect(new BulkAssembler().begin(Buffer.from(line), 0)).toBe(false);
  });

  it('gives the bytes back as they came, after any of them, and they stay as they are', () => {
    const whole = bulk(filled(UNITS.broken as Buffer, SHORTEST));
    const kept: { bytes: Buffer; cut: number }[] = [];
    for (let cut = '$8192\r\n'.length; cut < whole.length; cut += 401) {
      const { assembler, rest } = begun(filled(UNITS.broken as Buffer, SHORTEST), cut);
      kept.push({ bytes: assembler.release(), cut });
      expect(assembler.open).toBe(false);
      // The next one is another reply, in the same memory maybe.
      const next = begun(filled('next', SHORTEST + 1), 20);
      next.assembler.add(rest, 0);
      next.assembler.release();
    }
    for (const { bytes, cut } of kept) expect(bytes.equals(whole.subarray(0, cut)), `cut at ${cut}`).toBe(true);
  });

  it.each(['xx', '\r\r', '\n\n', '\n\r', '\rx', 'x\n', '$1'])(
    'refuses an end of %j, and still has all bytes',
    (end) => {
      const whole = Buffer.concat([bulk(long).subarray(0, -2), Buffer.from(end)]);
      for (const cut of [header, 5_000, whole.length - 2]) {
        const assembler = new BulkAssembler();
        expect(assembler.begin(whole.subarray(0, cut), 0)).toBe(true);
        assembler.add(whole.subarray(cut), 0);
        expect(assembler.whole).toBe(true);
        expect(assembler.take()).toBeUndefined();
        expect(assembler.open).toBe(true);
        expect(assembler.release().equals(whole)).toBe(true);
        expect(assembler.open).toBe(false);
      }
    },
  );

  it('reads text as `toString` does, in whatever pieces it comes', () => {
    const unit = fc.constantFrom(...Object.values(UNITS));
    const length = fc.oneof(fc.integer({ min: SHORTEST, max: 9_000 }), fc.integer({ min: SHORTEST, max: 100_000 }));
    const cuts = fc.array(fc.nat({ max: 100_010 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(unit, length, cuts, (text, size, positions) => {
        const content = filled(text, size);
        const [first = Buffer.alloc(0), ...rest] = cutAt(bulk(content), [12, ...positions]);
        const assembler = new BulkAssembler();
        expect(assembler.begin(first, 0)).toBe(first.length >= `$${size}\r\n`.length);
        if (!assembler.open) return;
        first.fill('#');
        for (const [index, chunk] of rest.entries()) {
          expect(assembler.add(chunk, 0)).toBe(chunk.length);
          chunk.fill('#');
          expect(assembler.whole).toBe(index === rest.length - 1);
        }
        expect(assembler.take() === content.toString('utf8')).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it('shares its spare memory with others, but never at the same time', () => {
    // Any number of replies at once, in any order of beginnings, pieces, ends and hand-overs.
    const step = fc.record({
      who: fc.nat({ max: 3 }),
      act: fc.constantFrom('add', 'add', 'add', 'finish', 'finish', 'release'),
      length: fc.oneof(fc.integer({ min: SHORTEST, max: 20_000 }), fc.constantFrom(SHORTEST, 300_000, 2_200_000)),
      unit: fc.constantFrom(...Object.values(UNITS)),
      piece: fc.integer({ min: 1, max: 9_000 }),
    });
    const kept: { text: string; content: Buffer }[] = [];
    fc.assert(
      fc.property(fc.array(step, { minLength: 4, maxLength: 40 }), (steps) => {
        const open = new Map<number, { assembler: BulkAssembler; content: Buffer; fed: number }>();
        steps.forEach(({ who, act, length, unit, piece }, index) => {
          const running = open.get(who);
          if (running === undefined) {
            const content = filled(unit, length);
            content.write(`reply ${index} of ${who} `);
            const fed = Math.min(12 + piece, length);
            open.set(who, { ...begun(content, fed), content, fed });
            return;
          }
          const { assembler, content, fed } = running;
          const whole = bulk(content);
          const end = act === 'finish' ? whole.length : Math.min(fed + piece, whole.length - 1);
          assembler.add(whole.subarray(fed, end), 0);
          running.fed = end;
          if (act === 'add') return;
          open.delete(who);
          if (act === 'release') {
            expect(assembler.release().equals(whole.subarray(0, end))).toBe(true);
            return;
          }
          const text = assembler.take() as string;
          expect(text === content.toString()).toBe(true);
          if (kept.length < 200) kept.push({ text, content });
        });
        for (const { assembler, content, fed } of open.values()) {
          expect(assembler.release().equals(bulk(content).subarray(0, fed))).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
    expect(kept.length).toBeGreaterThan(50);
    for (const { text, content } of kept) expect(text === content.toString()).toBe(true);
  });
});

describe('the spare memory', () => {
  const content = (length: number) => filled('x', length);
  const finish = ({ assembler, rest }: ReturnType<typeof begun>) => {
    assembler.add(rest, 0);
    expect(assembler.take()?.length).toBeGreaterThan(0);
  };

  it('is used again, the largest that is no more than 2 MiB', () => {
    const allocate = vi.spyOn(Buffer, 'allocUnsafeSlow');
    onTestFinished(() => allocate.mockRestore());
    const allocations = (...lengths: number[]) => {
      allocate.mockClear();
      for (const length of lengths) finish(begun(content(length), 20));
      return allocate.mock.calls.length;
    };
    allocations(1_900_000);
    expect(allocations(1_900_000, 9_000, 1_000_000, 1_900_000)).toBe(0);
    expect(allocations(3_000_000, 1_900_000, 3_000_000)).toBe(2);
    // Two at once: the smaller one ends last, and the larger stays.
    allocate.mockClear();
    const large = begun(content(1_900_000), 20);
    const small = begun(content(9_000), 20);
    finish(large);
    finish(small);
    expect(allocate).toHaveBeenCalledTimes(1);
    expect(allocations(1_900_000)).toBe(0);
    // What is handed over leaves its memory behind.
    begun(content(1_900_000), 20).assembler.release();
    expect(allocations(1_900_000)).toBe(0);
  });
});

describe('the long replies of several connections at once', () => {
  it('each gets its own, and what was given out stays as it is', async () => {
    const options = [{ protocol: 3 }, {}, { hostName: 'ioredis5' }, { hostName: 'iovalkey' }] as const;
    const connections = await Promise.all(options.map((each) => coalescedFake({}, each)));
    const given: { readonly value: Promise<unknown>; readonly expected: string }[] = [];
    const lengths = [9_000, 30_000, 70_000, 8_192, 1_500_000, 2_500_000, 20_000, 8_193, 70_001];
    for (const [round, length] of lengths.entries()) {
      const pieces: [FakeSocket, Buffer[]][] = [];
      for (const [index, { client, socket }] of connections.entries()) {
        const texts = [0, 1].map((nth) => filled(`${index}/${round}/${nth} ${index % 2 ? 'żółw' : ''}`, length + nth));
        for (const text of texts) given.push({ value: client.get('k'), expected: text.toString() });
        const replies = Buffer.concat(texts.map((text) => bulk(text)));
        pieces.push([socket, cutAt(replies, [100 + index, length - 3_000 * index, length + 100, length * 2 - index])]);
      }
      await turn();
      for (let nth = 0; pieces.some(([, chunks]) => nth < chunks.length); nth += 1) {
        for (const [socket, chunks] of pieces) {
          const chunk = chunks[nth];
          if (chunk === undefined) continue;
          socket.feed(chunk);
          // Whole replies are strings by now, cut ones are in memory that is not the socket's.
          chunk.fill('#');
        }
      }
    }
    const values = await Promise.all(given.map(({ value }) => value));
    expect(values.map((value, index) => value === given[index]?.expected)).toEqual(values.map(() => true));
    for (const { client } of connections) {
      expect(client.coalescer.stats().replies.hot).toBe(lengths.length * 2);
      client.disconnect();
    }
  });

  it('one that is given up in mid-reply keeps its memory to itself', async () => {
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => coalescedFake({})));
    if (a === undefined || b === undefined || c === undefined) throw new Error('three connections expected');
    const texts = ['aaa ', 'bbb ', 'ccc '].map((unit) => filled(unit, 30_000));
    const values = [a, b, c].map(({ client }) => client.get('k'));
    await turn();
    const halves = texts.map((text) => cutAt(bulk(text), [12_000]) as [Buffer, Buffer]);
    a.socket.feed(halves[0]?.[0] as Buffer);
    a.client.coalescer.detach();
    b.socket.feed(halves[1]?.[0] as Buffer);
    b.client.coalescer.detach();
    c.socket.feed(halves[2]?.[0] as Buffer);
    for (const [index, { socket }] of [a, b, c].entries()) socket.feed(halves[index]?.[1] as Buffer);
    expect(await Promise.all(values)).toEqual(texts.map(String));
    for (const { client } of [a, b, c]) client.disconnect();
  });
});

describe('a long reply', () => {
  it.each([
    [SHORTEST - 1, 0],
    [SHORTEST, 1],
    [LONGEST, 1],
    [LONGEST + 1, 0],
  ])('of %i bytes: %i of one is ours', async (length, hot) => {
    const reply = bulk(filled('long ', length));
    const { plain, ours } = await playBoth({}, [{ command: ['get', 'k'], reply }], () =>
      cutAt(reply, [1_000, length - 50]),
    );
    expect(ours.seen).toStrictEqual(plain.seen);
    expect(ours.hot).toBe(hot);
  });

  it.each(EACH_HOST)('with another end than it should have: $hostName, RESP$protocol', async (options) => {
    for (const end of ['xx', '\rx', 'x\n', '\n\r', '$1', '\r\r']) {
      const reply = Buffer.concat([bulk(LONG).subarray(0, -2), Buffer.from(end)]);
      for (const behind of ['', bulk('next'), bulk(LONG), '-ERR no\r\n', 'not RESP\r\n']) {
        const steps: Step[] = [{ command: ['get', 'k'], reply }, { command: ['get', 'k'], reply: behind }, ...STEPS];
        // Host: ioredis 6 answers at the first byte behind the string.
        for (const cut of [HEADER, HEADER + 40, END - 2]) {
          const { plain, ours } = await playBoth(options, steps, () => cutAt(repliesOf(steps), [cut, END + 3]));
          expect(ours.seen, `${JSON.stringify(end)}, cut at ${cut}`).toStrictEqual(plain.seen);
        }
      }
    }
  });

  it('with another end than it should have: who waits behind it keeps his own time-out', async () => {
    const run = async (options: FakeOptions) => {
      const { client, socket } = await connectFake({ commandTimeout: 400, ...options });
      const first = client.get('k');
      await sleep(250);
      const second = client.get('k');
      await turn();
      socket.feed(bulk(LONG).subarray(0, 4_000));
      socket.feed(Buffer.concat([bulk(LONG).subarray(4_000, -2), Buffer.from('xx')]));
      expect(await first).toBe(LONG.toString());
      await sleep(250);
      socket.feed(bulk('in time'));
      expect(await second).toBe('in time');
      client.disconnect();
    };
    await Promise.all([run({}), run({ coalesce: {} })]);
  });

  it('is counted: later time-outs find their commands, and no others', async () => {
    const { client, socket } = await coalescedFake({}, { commandTimeout: 60 });
    const first = client.get('k');
    await turn();
    for (const chunk of cutAt(bulk(LONG), [4_000])) socket.feed(chunk);
    expect(await first).toBe(LONG.toString());
    await sleep(30);
    const from = performance.now();
    await expect(client.get('unanswered')).rejects.toThrow('Command timed out');
    expect(performance.now() - from).toBeGreaterThan(50);
    client.disconnect();
  });

  it.each(HOSTS)('$name: values of 1 byte to 2 MiB from a real server, cut at random', async (host) => {
    const proxy = await startProxy(redisUrl());
    const prefix = uniquePrefix('long');
    const writer = await ready(host.create(redisUrl()));
    const units = Object.entries(UNITS).filter(([title]) => title !== 'broken');
    const values = Array.from({ length: 200 }, (_, index) => {
      const length = Math.floor(2 ** (Math.random() * 21)) + 1;
      return `${index} ${filled(units[index % units.length]?.[1] as string, length)}`;
    });
    await Promise.all(values.map((value, index) => writer.set(`${prefix}${index}`, value)));
    const client = await ready(host.createCoalesced(proxy.url));
    let reading = true;
    const cutting = (async () => {
      for (; reading; await turn()) proxy.cutRepliesInto(1 + Math.floor(2 ** (7 + Math.random() * 10)));
    })();
    const keys = values.map((_, index) => `${prefix}${index}`);
    const all = await Promise.all([...keys, ...keys.toReversed()].map((key) => client.get(key)));
    const one = await client.mget(keys);
    reading = false;
    await cutting;
    const expected = [...values, ...values.toReversed()];
    expect(all.flatMap((value, index) => (value === expected[index] ? [] : [index]))).toEqual([]);
    expect(one.flatMap((value, index) => (value === values[index] ? [] : [index]))).toEqual([]);
    expect(client.coalescer.stats().replies.hot).toBeGreaterThan(values.length / 2);
    await writer.del(keys);
  });
});
