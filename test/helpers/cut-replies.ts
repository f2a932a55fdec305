import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import type { Coalesced } from 'ioredis-coalesce/coalesce';
import {
  connectFake,
  disconnectFake,
  type FakeConnection,
  type FakeOptions,
  type FakeSocket,
  type Seen,
  Witness,
} from './fake-connection.js';
import { REPLY_MODES } from './host-decoder.js';
import { issue, repliesOf, type Step } from './reply-programs.js';
import { bulk, bytes, cutAt } from './resp.js';

/** Exactly `length` bytes of `unit`, over and over; the last one may well be cut in the middle of a character. */
export const filled = (unit: string | Buffer, length: number): Buffer => Buffer.alloc(length, unit);

/** What is malformed UTF-8 in one way or another, and where it is cut. */
const BROKEN = Buffer.from('c32841f09f90e282fffeeda080c0aff490808080d0b6d0', 'hex');

export const UNITS: Readonly<Record<string, string | Buffer>> = {
  ASCII: 'all of it plain text. ',
  Cyrillic: 'жираф ',
  emoji: '🦒🐢x',
  broken: BROKEN,
  'line ends': '\r\n\r\r\n\n',
  'like RESP': '$-1\r\n*2\r\n:1\r\n+OK\r\n-ERR no\r\n$8192\r\n',
  'with NUL and a byte order mark': '\uFEFF\u0000é',
};

type Setting = { readonly title: string; readonly protocol: 2 | 3; readonly options: FakeOptions };

/** Every way in which a connection's host can read replies, under every protocol it speaks. */
export const SETTINGS: readonly Setting[] = REPLY_MODES.flatMap(({ host: hostName, mode, title }) => {
  const { replyMapping, stringNumbers } = mode;
  const protocols = hostName !== 'ioredis' ? [2 as const] : replyMapping === 'resp3' ? [3 as const] : ([2, 3] as const);
  return protocols.map((protocol) => ({
    title: `${title}, RESP${protocol}`,
    protocol,
    options: { hostName, protocol, replyMapping, stringNumbers },
  }));
});

export const EACH_HOST: readonly FakeOptions[] = [
  { hostName: 'ioredis', protocol: 3 },
  { hostName: 'ioredis', protocol: 2 },
  { hostName: 'ioredis5', protocol: 2 },
  { hostName: 'iovalkey', protocol: 2 },
];

export const LONG = filled('жираф ', 9_001);
export const HEADER = '$9001\r\n'.length;
export const END = bulk(LONG).length;
/** Where the reply `LONG` is cut: behind its header, in its text, and around its end. */
export const CUTS = [HEADER, HEADER + 1, 5_000, END - 3, END - 2, END - 1];
/** The reply `LONG` comes first. */
export const STEPS: readonly Step[] = [
  { command: ['get', 'a'], reply: bulk(LONG) },
  { command: ['get', 'b'], reply: bulk('small') },
  { command: ['call', 'foo'], reply: bulk('cold') },
  { command: ['get', 'c'], reply: bulk(filled('other ', 8_500)) },
  { command: ['getBuffer', 'd'], reply: bulk('last') },
];

/** Offsets around the header and the end of a bulk string of `length` bytes. */
export function edgesOf(length: number): number[] {
  const start = `$${length}\r\n`.length;
  const around = Array.from({ length: start + 3 }, (_, offset) => offset + 1);
  return [...around, ...[-4, -3, -2, -1, 0, 1, 2, 3].map((offset) => start + length + offset)];
}

interface Placed extends Step {
  readonly start: number;
  readonly end: number;
}

/** The steps with the places of their replies among all bytes. */
export function place(steps: readonly Step[]): Placed[] {
  let end = 0;
  return steps.map((step) => {
    const start = end;
    end += bytes(step.reply).length;
    return { ...step, start, end };
  });
}

const HOT = ['get', 'getBuffer', 'hgetall', 'mget', 'lrange'];

/** The most that a socket reads at once: a longer chunk comes in several reads. */
const MOST_READ = 64 * 1024;

/**
 * How many of the replies are ours by the rules of the reader, when they are cut into these chunks: strings, and arrays
 * of strings, unless they are cut within their own header. Host: ioredis 6 may answer when the end of a line is still
 * to come, so what is cut in the header of its last string, or lacks the last byte alone, is the host's.
 */
export function oursAmong(steps: readonly Step[], chunks: readonly Buffer[]): number {
  const ends = new Set<number>();
  let fed = 0;
  for (const { length } of chunks) {
    for (let read = MOST_READ; read < length; read += MOST_READ) ends.add(fed + read);
    fed += length;
    ends.add(fed);
  }
  const all = repliesOf(steps);
  return place(steps).filter(({ command, start, end }) => {
    if (command === undefined || !HOT.includes(command[0]) || all[start] === '-'.charCodeAt(0)) return false;
    const headers = headersIn(all.subarray(start, end));
    const last = headers.at(-1) as Header;
    const decisive = headers.length === 1 ? [last] : [headers[0] as Header, last];
    const isCut = (offset: number) => ends.has(start + offset);
    return (
      !isCut(end - start - 1) &&
      !decisive.some(({ at, length }) => Array.from({ length: length - 1 }, (_, n) => at + n + 1).some(isCut))
    );
  }).length;
}

type Header = { readonly at: number; readonly length: number };

/** The header lines of a string or of an array of strings. */
function headersIn(reply: Buffer): Header[] {
  const headers: Header[] = [];
  for (let at = 0; at < reply.length; ) {
    const lineEnd = reply.indexOf('\r\n', at) + 2;
    headers.push({ at, length: lineEnd - at });
    const content = reply[at] === '$'.charCodeAt(0) ? Number(reply.toString('latin1', at + 1, lineEnd - 2)) : -1;
    at = lineEnd + (content < 0 ? 0 : content + 2);
  }
  return headers;
}

/** A value in short, so that a failing comparison can be read: equal for equal values alone. */
export function inShort(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inShort);
  if (typeof value !== 'string' && !(value instanceof Buffer)) return value;
  if (value.length < 100) return value;
  // A lone surrogate is nothing that UTF-16 would lose.
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf16le') : value;
  const digest = createHash('sha1').update(bytes).digest('hex');
  return `${value.toString().slice(0, 8)}… ${typeof value} ${value.length} ${digest}`;
}

/** What is done to a connection after `after` chunks. */
export interface Interruption {
  readonly after: number;
  does(connection: FakeConnection & { client: Partial<Coalesced> }): unknown;
}

export type Outcome = { readonly seen: Seen[]; readonly written: string; readonly fast: number };

/** Like `runProgram`, with something that happens on the way. */
export async function play(
  options: FakeOptions,
  steps: readonly Step[],
  chunks: readonly Buffer[],
  interruption?: Interruption,
): Promise<Outcome> {
  const connection = await connectFake(options);
  const { client, socket } = connection;
  const witness = new Witness(client);
  const coalescer = (client as Partial<Coalesced>).coalescer;
  issue(client, witness, steps);
  await turn();
  for (const [index, chunk] of chunks.entries()) {
    if (socket.destroyed) break;
    socket.feed(chunk);
    await Promise.resolve();
    if (interruption?.after === index + 1) await interruption.does(connection);
  }
  await turn();
  const fast = coalescer?.stats().replies.fast ?? 0;
  await disconnectFake(connection);
  return {
    seen: witness.seen.map(([who, what]) => [who, inShort(what)]),
    written: socket.written.toString('latin1'),
    fast,
  };
}

/** Runs the same on a plain and on a coalesced client, each with chunks of its own. */
export async function playBoth(
  options: FakeOptions,
  steps: readonly Step[],
  chunks: () => Buffer[],
  interruption?: Interruption,
): Promise<{ readonly plain: Outcome; readonly ours: Outcome }> {
  const [plain, ours] = await Promise.all([
    play(options, steps, chunks(), interruption),
    play({ ...options, coalesce: options.coalesce ?? {} }, steps, chunks(), interruption),
  ]);
  return { plain, ours };
}

/** Loses the connection, and answers what is sent again on the next one, in pieces. */
export function lose(error?: Error): Interruption['does'] {
  return async ({ client, socket }) => {
    const again = new Promise((resolve) => client.once('ready', resolve));
    socket.destroy(error);
    await again;
    await turn();
    const { stream } = client as unknown as { stream: FakeSocket };
    const keys = stream.written.toString().match(/\b(?:[a-d]|foo)(?=\r\n)/g) ?? [];
    const replies = Buffer.concat(keys.map((key) => bulk(newValue(key))));
    for (const chunk of cutAt(replies, [4_000, 9_600, 17_000])) stream.feed(chunk);
    await turn();
  };
}

/** What the next connection answers. */
function newValue(key: string): Buffer {
  return filled(`new ${key} `, 9_500);
}
