import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { type Coalesced, coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import {
  coalescedFake,
  connectFake,
  disconnectFake,
  type FakeOptions,
  type Seen,
  Witness,
} from '../helpers/fake-connection.js';
import { REPLY_MODES } from '../helpers/host-decoder.js';
import { MALFORMED, REPLY_CASES } from '../helpers/reply-cases.js';
import { anyProgram, issue, PUSH, repliesOf, runProgram, type Step, SUBSCRIBE } from '../helpers/reply-programs.js';
import { bulk, cutAt, everyCut } from '../helpers/resp.js';
import { share } from '../helpers/share.js';

const GET = ['get', 'k'] as const;
const FOO = ['call', 'foo'] as const;

type Setting = { readonly title: string; readonly protocol: 2 | 3; readonly options: FakeOptions };

const SETTINGS: readonly Setting[] = REPLY_MODES.flatMap(({ host, mode, title }) => {
  const protocols =
    host !== 'ioredis' ? [2 as const] : mode.replyMapping === 'resp3' ? [3 as const] : [2 as const, 3 as const];
  return protocols.map((protocol) => ({
    title: `${title}, RESP${protocol}`,
    protocol,
    options: {
      hostName: host,
      protocol,
      replyMapping: mode.replyMapping,
      stringNumbers: mode.stringNumbers,
    },
  }));
});

describe.each(share(SETTINGS, 4))('reply reader: $title', ({ protocol, options }) => {
  const coalesced = { ...options, coalesce: {} };

  it('interleaves its replies with the host’s, however they are split', async () => {
    const pushes = protocol === 3 ? [PUSH] : [];
    const steps: Step[] = [
      ...(protocol === 3 ? [SUBSCRIBE] : []),
      { command: GET, reply: bulk('one') },
      { command: FOO, reply: bulk('foo') },
      ...pushes,
      { command: ['hgetall', 'h'], reply: '*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$-1\r\n' },
      { command: GET, reply: '-ERR of the server\r\n' },
      ...pushes,
      { command: ['incr', 'n'], reply: ':9223372036854775807\r\n' },
      { command: ['getBuffer', 'k'], reply: bulk('żółw') },
      { command: FOO, reply: '*2\r\n:1\r\n+two\r\n' },
      { command: GET, reply: '$-1\r\n' },
    ];
    const replies = repliesOf(steps);
    for (const { way, chunks } of everyCut(replies)) {
      const plain = await runProgram(options, steps, chunks);
      expect(plain.seen.length).toBe(steps.length);
      const outcome = await runProgram(coalesced, steps, chunks);
      expect(outcome.seen, way).toStrictEqual(plain.seen);
      if (way === 'whole') expect(outcome).toMatchObject({ written: plain.written, fast: 4 });
    }
  });

  it('gives every kind of reply as the host does, however it is split', async () => {
    const cases = REPLY_CASES.filter(({ resp3, bytes }) => (!resp3 || protocol === 3) && bytes.length < 200);
    for (const { title, bytes } of cases) {
      const steps: Step[] = [
        { command: GET, reply: bytes },
        { command: ['getBuffer', 'k'], reply: bytes },
        { command: FOO, reply: bytes },
        { command: GET, reply: bulk('behind') },
      ];
      const plain = await runProgram(options, steps, [repliesOf(steps)]);
      const positions = [1, 2, 3, bytes.length - 1, bytes.length, bytes.length + 1, bytes.length * 2 - 1];
      for (const cuts of [[], positions, [...Array(repliesOf(steps).length).keys()]]) {
        const { seen } = await runProgram(coalesced, steps, cutAt(repliesOf(steps), cuts));
        expect(seen, `${title} cut at ${cuts}`).toStrictEqual(plain.seen);
      }
    }
  });

  it('any program with any replies, split anywhere, gets the values of a plain client', async () => {
    let fast = 0;
    await fc.assert(
      fc.asyncProperty(
        anyProgram(protocol),
        fc.array(fc.nat({ max: 3000 }), { maxLength: 20 }),
        fc.boolean(),
        async (steps, cuts, atOnce) => {
          const chunks = cutAt(repliesOf(steps), cuts);
          const plain = await runProgram(options, steps, chunks, atOnce);
          const outcome = await runProgram(coalesced, steps, chunks, atOnce);
          expect(outcome.seen).toStrictEqual(plain.seen);
          expect(outcome.written).toBe(plain.written);
          fast += outcome.fast;
        },
      ),
      { numRuns: 60 },
    );
    expect(fast).toBeGreaterThan(50);
  });

  const malformed = MALFORMED.filter(([title]) => {
    // Host: it takes the sign for a digit, and reads at a place that depends on where in its chunk the reply is.
    if (title === 'a signed length') return options.hostName !== 'ioredis';
    // Host: `new Array` throws out of the socket's event.
    return title !== 'a count that nobody has room for' || options.hostName === 'ioredis';
  });

  it.each(malformed)('hands over at %s: the host’s own error and rejections', async (_title, reply) => {
    const steps: Step[] = [
      { command: GET, reply: bulk('first') },
      { command: GET, reply },
      { command: GET, reply: bulk('never read') },
      { command: FOO, reply: bulk('nor this') },
      { command: GET, reply: '' },
    ];
    const replies = repliesOf(steps);
    const positions = [...Array(reply.length + 2).keys()].map((offset) => bulk('first').length + offset);
    for (const cuts of [[], ...positions.map((position) => [position]), [...Array(replies.length).keys()]]) {
      const chunks = cutAt(replies, cuts);
      const plain = await runProgram(options, steps, chunks);
      const { seen } = await runProgram(coalesced, steps, chunks);
      expect(seen, `cut at ${cuts}`).toStrictEqual(plain.seen);
    }
  });

  it('joins a connection in use at any byte, with commands in flight', async () => {
    const before: Step[] = [
      { command: GET, reply: '*2\r\n$1\r\na\r\n$4\r\n\r\n\r\n\r\n' },
      { command: FOO, reply: ':1\r\n' },
    ];
    const after: Step[] = [
      { command: GET, reply: bulk('after') },
      { command: FOO, reply: '-ERR no\r\n' },
      { command: ['getBuffer', 'k'], reply: bulk('last') },
    ];
    const replies = repliesOf([...before, ...after]);
    for (let attached = 0; attached <= repliesOf(before).length; attached += 1) {
      for (const cut of [attached, attached + 1, attached + 2, attached + 7]) {
        const seen = await Promise.all(
          [false, true].map(async (coalesces): Promise<Seen[]> => {
            const { client, socket } = await connectFake(options);
            const witness = new Witness(client);
            issue(client, witness, before);
            await turn();
            socket.feed(replies.subarray(0, attached));
            if (coalesces) coalesce(client);
            issue(client, witness, after);
            await turn();
            for (const chunk of cutAt(replies.subarray(attached), [cut - attached])) socket.feed(chunk);
            await turn();
            await disconnectFake({ client, socket });
            return witness.seen;
          }),
        );
        expect(seen[1], `attached at ${attached}, cut at ${cut}`).toStrictEqual(seen[0]);
        expect(seen[1]?.length).toBe(5);
      }
    }
  });

  it('detaches at any byte, with commands in flight', async () => {
    const steps: Step[] = [
      { command: GET, reply: bulk('one') },
      { command: FOO, reply: bulk('foo') },
      { command: ['hgetall', 'h'], reply: '*2\r\n$1\r\na\r\n$1\r\nb\r\n' },
      { command: GET, reply: bulk('last') },
    ];
    const replies = repliesOf(steps);
    const plain = await runProgram(options, steps, [replies]);
    for (let position = 0; position <= replies.length; position += 1) {
      const { client, socket } = await coalescedFake({}, options);
      const witness = new Witness(client);
      issue(client, witness, steps);
      await turn();
      socket.feed(replies.subarray(0, position));
      client.coalescer.detach();
      socket.feed(replies.subarray(position));
      await turn();
      expect(witness.seen, `detached at ${position}`).toStrictEqual(plain.seen);
      client.disconnect();
    }
  });
});

describe('reply reader', () => {
  const RESP3: FakeOptions = { protocol: 3 };

  it('takes the fast path again after it has joined, wherever replies are split', async () => {
    const replies = [
      '$1\r\nx\r\n',
      '$-1\r\n',
      '*-1\r\n',
      '*2\r\n:1\r\n$-1\r\n',
      '+OK\r\n',
      ':12\r\n',
      '_\r\n',
      '#t\r\n',
    ];
    const cuts = replies.flatMap((reply) => Array.from(reply, (_, position) => [reply, position] as const));
    for (const [reply, position] of cuts) {
      const { client, socket } = await connectFake();
      client.get('a').catch(() => {});
      await turn();
      const [first = Buffer.alloc(0), second] = cutAt(Buffer.from(reply), [position]);
      coalesce(client);
      socket.feed(first);
      if (second !== undefined) socket.feed(second);
      const value = client.get('b');
      await turn();
      socket.feed('$1\r\ny\r\n');
      expect(await value).toBe('y');
      const { replies } = (client as typeof client & Coalesced).coalescer.stats();
      expect(replies.fast, `${reply} cut at ${position}`).toBe(1);
      client.disconnect();
    }
  });

  it('reads the reply after a string that does not end in CR LF, wherever that is split', async () => {
    const odd = '$3\r\nabcXY';
    for (let position = 1; position < odd.length; position += 1) {
      const { client, socket } = await coalescedFake({}, RESP3);
      const values = Promise.all([client.get('a'), client.get('b')]);
      await turn();
      for (const chunk of cutAt(Buffer.from(`${odd}$1\r\ny\r\n`), [position])) socket.feed(chunk);
      expect(await values).toEqual(['abc', 'y']);
      expect(client.coalescer.stats().replies.fast, `cut at ${position}`).toBe(1);
      client.disconnect();
    }
  });

  it('stops at once at the host’s fatal error: commands of its listener are not answered from the chunk', async () => {
    for (const { hostName, protocol, malformed } of [
      { hostName: 'ioredis', protocol: 3, malformed: 'hello\r\n' },
      { hostName: 'ioredis5', protocol: 2, malformed: 'hello\r\n' },
      // Whole replies to our scanner, and unknown to this host's parser.
      { hostName: 'ioredis5', protocol: 2, malformed: '_\r\n' },
      { hostName: 'iovalkey', protocol: 2, malformed: '#t\r\n' },
    ] as const) {
      const outcomes = await Promise.all(
        [undefined, {}].map(async (options) => {
          const { client, socket } = await connectFake({ hostName, protocol, coalesce: options });
          const witness = new Witness(client);
          let statusInListener = '';
          client.once('error', () => {
            statusInListener = client.status;
            witness.watch('issued in the listener', client.get('late'));
          });
          issue(client, witness, Array<Step>(3).fill({ command: GET, reply: '' }));
          await turn();
          socket.feed(`${bulk('first')}${malformed}${bulk('stale')}${bulk('stale')}`);
          await turn();
          await disconnectFake({ client, socket });
          // Nothing more is encoded on a stream whose reader is dead.
          if (options !== undefined) {
            expect((client as typeof client & Coalesced).coalescer.stats()).toMatchObject({
              fastCommands: 3,
              fallbacks: { connection: 1 },
            });
          }
          return { seen: witness.seen, statusInListener };
        }),
      );
      expect(outcomes[1], `${hostName} ${malformed}`).toStrictEqual(outcomes[0]);
      expect(outcomes[0]?.statusInListener).toBe('ready');
      expect(JSON.stringify(outcomes[1]?.seen)).not.toContain('stale');
    }
  });

  it('gives no caller a wrong value when a user’s listener removes the data listeners in the middle of a chunk', async () => {
    const { client, socket } = await coalescedFake({}, RESP3);
    const witness = new Witness(client);
    client.on('message', () => socket.removeAllListeners('data'));
    issue(client, witness, [
      SUBSCRIBE,
      { command: GET, reply: '' },
      { command: GET, reply: '' },
      { command: GET, reply: '' },
    ]);
    await turn();
    socket.feed(Buffer.concat([repliesOf([SUBSCRIBE]), bulk('one'), repliesOf([PUSH]), bulk('two')]));
    socket.feed(bulk('three'));
    await disconnectFake({ client, socket });
    const closed = expect.objectContaining({ message: 'Connection is closed.' });
    expect(witness.seen.slice(0, 3).map(([, what]) => what)).toEqual(['news: it is late', 1, 'one']);
    // The host's decoder goes on to the chunk's end; dropping the rest would be right as well.
    expect([
      ['two', closed],
      [closed, closed],
    ]).toContainEqual(witness.seen.slice(3).map(([, what]) => what));
  });

  it('lets a message listener detach while the chunk has more replies', async () => {
    const steps: Step[] = [SUBSCRIBE, { command: GET, reply: bulk('one') }, PUSH, { command: GET, reply: bulk('two') }];
    const all = [...steps, { command: FOO, reply: bulk('foo') }];
    const plain = await runProgram(RESP3, all, [repliesOf(all)]);
    for (const { way, chunks } of everyCut(repliesOf(all))) {
      const { client, socket } = await coalescedFake({}, RESP3);
      const witness = new Witness(client);
      client.once('message', () => client.coalescer.detach());
      issue(client, witness, all);
      await turn();
      for (const chunk of chunks) socket.feed(chunk);
      await turn();
      // Chunks came in one turn, so the message may be seen earlier than by the plain client: settled values are
      // compared.
      expect(
        witness.seen.filter(([who]) => who !== 'message'),
        way,
      ).toStrictEqual(plain.seen.filter(([who]) => who !== 'message'));
      client.disconnect();
    }
  });

  it('lets a message listener detach and attach again in the middle of a chunk', async () => {
    const { client, socket } = await coalescedFake({}, RESP3);
    const witness = new Witness(client);
    client.once('message', () => {
      client.coalescer.detach();
      coalesce(client);
    });
    issue(client, witness, [
      SUBSCRIBE,
      { command: GET, reply: '' },
      { command: GET, reply: '' },
      { command: FOO, reply: '' },
    ]);
    await turn();
    socket.feed(Buffer.concat([repliesOf([SUBSCRIBE, PUSH]), bulk('one'), Buffer.from('$3\r\nt')]));
    socket.feed(Buffer.concat([Buffer.from('wo\r\n'), bulk('three')]));
    issue(client, witness, [{ command: GET, reply: '' }]);
    await turn();
    socket.feed(bulk('four'));
    await turn();
    expect(witness.seen.slice(1).map(([, value]) => value)).toEqual([1, 'one', 'two', 'three', 'four']);
    expect(socket.listenerCount('data')).toBe(1);
    client.disconnect();
  });

  it.each([
    { hostName: 'ioredis', protocol: 3, marker: '>' },
    { hostName: 'ioredis5', protocol: 2, marker: '*' },
    { hostName: 'iovalkey', protocol: 2, marker: '*' },
  ] as const)('is not unwound by a listener that throws: $hostName', async ({ hostName, protocol, marker }) => {
    const thrown: unknown[] = [];
    const listeners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', (error) => thrown.push(error.message));
    const steps: Step[] = [SUBSCRIBE, { command: GET, reply: bulk('one') }, PUSH, { command: GET, reply: bulk('two') }];
    const { client, socket } = await coalescedFake({}, { hostName, protocol });
    const witness = new Witness(client);
    client.on('message', () => {
      throw new Error('from a listener');
    });
    issue(client, witness, steps);
    await turn();
    socket.feed(repliesOf(steps).toString().replaceAll('>', marker));
    await turn();
    process.removeAllListeners('uncaughtException');
    for (const listener of listeners) process.on('uncaughtException', listener);
    expect(thrown).toEqual(['from a listener']);
    expect(new Set(witness.seen.slice(1).map(([, value]) => value))).toEqual(new Set([1, 'one', 'two']));
    client.disconnect();
  });

  it('counts replies that the host settled: later timeouts find their own commands', async () => {
    const { client, socket } = await coalescedFake({}, { commandTimeout: 500 });
    const witness = new Witness(client);
    issue(client, witness, [
      { command: GET, reply: '' },
      { command: GET, reply: '' },
    ]);
    await turn();
    socket.feed('-ERR one\r\n-ERR two\r\n');
    await sleep(30);
    const from = performance.now();
    await expect(client.get('unanswered')).rejects.toThrow('Command timed out');
    expect(performance.now() - from).toBeGreaterThan(490);
    socket.feed(bulk('late'));
    const next = client.get('next');
    await turn();
    socket.feed(bulk('mine'));
    expect(await next).toBe('mine');
    client.disconnect();
  });

  it('reports a reply that answers no command as the host does', async () => {
    const chunks = [bulk('unasked'), bulk('again')];
    for (const steps of [[], [{ command: GET, reply: bulk('one') }], [{ command: FOO, reply: bulk('one') }]]) {
      const all = [...steps.map((step) => repliesOf([step])), ...chunks];
      for (const fed of [all, [Buffer.concat(all)]]) {
        const plain = await runProgram({}, steps, fed);
        expect((await runProgram({ coalesce: {} }, steps, fed)).seen).toStrictEqual(plain.seen);
        expect(JSON.stringify(plain.seen)).toContain('Command queue state error');
      }
    }
  });
});
