/**
 * Functions of the host that cannot be reached are recognized by behaviour: its encoder and decoder are run on a fixed
 * corpus, and must return the same as ours. Once per copy of the host, on objects that no client uses.
 */
import { isDeepStrictEqual } from 'node:util';
import calculateSlot from 'cluster-key-slot';
import { FAST_COMMANDS, KEY_POSITIONS } from '../commands/fast-commands.js';
import { NOT_DECODED, ReplyDecoder } from '../resp/decoder.js';
import { commandHead, encodeExactly, type Part, toBytes } from '../resp/encoder.js';
import { argumentTransformerOf, keysOf } from './command-class.js';
import type { Unopened } from './functions.js';
import { replyModeOf, replyProtocol } from './state.js';
import type { AnyFunction, HostCommand, HostCommandClass } from './types.js';

/** Arguments of one call, as users give them. */
const ARGUMENTS: readonly (readonly unknown[])[] = [
  [],
  ['key'],
  ['', 'é\u{1f600}', 'line\r\nend', 'x'.repeat(5000)],
  ['\ud800', '\u0000\u00ff'],
  [0, 7, -1, 1.5, 999_999_999_999_999, -0.25, 1e-5],
  ['key', Buffer.from([0, 13, 10, 255]), 'é', Buffer.alloc(0)],
  [Buffer.from('key')],
];

const blob = (text: string) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
const list = (...items: string[]) => `*${items.length}\r\n${items.join('')}`;
/** Replies of every RESP2 kind, then of the RESP3 kinds. */
const REPLIES: readonly string[] = [
  ...['+OK\r\n', '+\r\n', '+é\r\n', ':0\r\n', ':1\r\n', ':-42\r\n', ':999999999999999\r\n'],
  ...['$-1\r\n', '*-1\r\n', '*0\r\n', ...['', 'v', 'é\u{1f600}', 'a\r\nb', 'x'.repeat(600), '-1'].map(blob)],
  list(blob('a'), '$-1\r\n', ':3\r\n', '+OK\r\n', list(blob('é'), list(), '*-1\r\n', list(':-7\r\n', blob('')))),
  list('+message\r\n', blob('channel'), blob('text')),
  list(list(blob('1-1'), list(blob('f'), blob('v'))), list(blob('1-2'), '*-1\r\n')),
  list(blob('0'), list(blob('k1'), blob('k2'))),
];
const REPLIES_3: readonly string[] = [
  ...['_\r\n', '#t\r\n', '#f\r\n', ',1.5\r\n', ',-0.25\r\n', ',10\r\n', ',inf\r\n', ',-inf\r\n', '~0\r\n', '%0\r\n'],
  `%2\r\n${blob('a')}${blob('1')}+b\r\n:2\r\n`,
  `%2\r\n${blob('__proto__')}${blob('x')}${blob('k')}%1\r\n${blob('in')}_\r\n`,
  `~3\r\n${blob('a')}:1\r\n#t\r\n`,
  list(list(blob('m'), ',1.5\r\n'), '_\r\n', `%1\r\n${blob('k')}~1\r\n,2\r\n`),
];

/** The properties of a command that the host may read and set when it answers or aborts it; see `Entry`. */
const CONTRACT = new Set(
  ['name', 'args', 'resolve', 'reject', 'promise', 'pipelineIndex', 'inTransaction', 'isTraced'].concat(['ignore']),
);

/** A name for which users set no transformer, and which no release treats specially. */
const UNLISTED = 'ioredis-coalesce';

/** Options that change values, each in one mode, with the replies that it changes. */
const MODES: readonly (readonly [options: object, replies: readonly string[]])[] = [
  [{ protocol: 2, stringNumbers: false, replyMapping: 'legacy' }, [...REPLIES, ...REPLIES_3]],
  [{ protocol: 3, stringNumbers: true, replyMapping: 'legacy' }, [...REPLIES, ...REPLIES_3]],
  [{ protocol: 3, stringNumbers: false, replyMapping: 'resp3' }, REPLIES_3],
];

/** Describes how the host behaves differently from this package; undefined if it does not. */
export function disproof(
  commandClass: HostCommandClass,
  prototype: object,
  open: (options: object) => Unopened,
): string | undefined {
  let wrong = wrongEncoding(commandClass) ?? wrongKeys(commandClass, prototype) ?? wrongClosing(open({}));
  for (const [options, replies] of MODES) wrong ??= wrongReplies(commandClass, open(options), replies);
  return wrong;
}

interface Made extends HostCommand {
  toWritable(stream: object): string | Buffer;
  getSlot(): number | null;
}
type Maker = new (name: string, args: readonly unknown[], options?: object) => Made;

function wrongEncoding(commandClass: HostCommandClass): string | undefined {
  const make = commandClass as unknown as Maker;
  for (const args of ARGUMENTS) {
    const parts = encodeExactly(commandHead(UNLISTED, args.length), args) as Part[];
    const given = args.length > 1 ? [args.slice(0, 1), ...args.slice(1)] : args;
    const written = new make(UNLISTED, given, { replyEncoding: 'utf8' }).toWritable({});
    if (!Buffer.concat(parts.map(toBytes)).equals(Buffer.from(written as string))) return 'encodes otherwise';
  }
  const [text] = new make(UNLISTED, [null], {}).args;
  const [nothing, flag] = new make(UNLISTED, [undefined, true], {}).args;
  if (text !== '' || nothing !== '' || flag !== 'true') return 'converts arguments otherwise';
  const prefix = () => new make('get', ['{k}1'], { keyPrefix: 'p:' });
  const prefixed = argumentTransformerOf(commandClass, 'get') === undefined ? prefix() : undefined;
  if (prefixed === undefined) return undefined;
  if (prefixed.args[0] !== 'p:{k}1' || prefixed.getSlot() !== calculateSlot('p:{k}1')) return 'finds slots otherwise';
  return undefined;
}

/** The keys of fast commands that the client has methods for. */
function wrongKeys(commandClass: HostCommandClass, prototype: object): string | undefined {
  const found = (count: number, step: number) =>
    [0, 1, 2, 3].filter((at) => at % step === 0 && at < count * step).join();
  const expected = new Map(Object.entries(KEY_POSITIONS).map(([rule, at]) => [rule, at && found(at.count, at.step)]));
  for (const { name, keys } of FAST_COMMANDS) {
    const positions = expected.get(keys);
    if (positions === undefined || !(name in prototype)) continue;
    if (keysOf(commandClass, name, [0, 1, 2, 3]).join() !== positions) return `finds the keys of ${name} otherwise`;
  }
  if (keysOf(commandClass, 'evalsha', ['sha', '2', 'a', 'b', 'c']).join() !== 'a,b')
    return 'finds the keys of scripts otherwise';
  return undefined;
}

/** A command that shows which of its properties others use, and what they do to it. */
function watchedCommand(fields: object): { command: HostCommand; outcomes: unknown[]; others: PropertyKey[] } {
  const outcomes: unknown[] = [];
  const others: PropertyKey[] = [];
  const settle = (value: unknown) => void outcomes.push(value);
  const note = (name: PropertyKey) => {
    if (!CONTRACT.has(name as string)) others.push(name);
  };
  const command = new Proxy({ name: UNLISTED, args: [], resolve: settle, reject: settle, ...fields } as object, {
    get(target, name) {
      note(name);
      return Reflect.get(target, name);
    },
    set(target, name, value) {
      note(name);
      return Reflect.set(target, name, value);
    },
    has(target, name) {
      note(name);
      return name in target;
    },
  }) as HostCommand;
  return { command, outcomes, others };
}

function wrongReplies(
  commandClass: HostCommandClass,
  { client, listeners }: Unopened,
  replies: readonly string[],
): string | undefined {
  const mode = replyModeOf(client);
  const context = { name: UNLISTED, replyEncoding: 'utf8' as const, ...replyProtocol(client) };
  const { transformReply } = commandClass.prototype;
  const { commandQueue } = client;
  const decoder = new ReplyDecoder(mode);
  for (const reply of replies) {
    if (!mode.resp3Types && REPLIES_3.includes(reply)) continue;
    const bytes = Buffer.from(reply);
    const { command, outcomes, others } = watchedCommand({});
    const item = { command, select: 0, stream: undefined };
    commandQueue.push(item);
    if (commandQueue.peekFront() !== item || commandQueue.peekAt(0) !== item) return 'keeps commands otherwise';
    listeners.data.call(client.stream, bytes);
    if (commandQueue.length > 0 || outcomes.length !== 1 || others.length > 0) return 'answers otherwise';
    const raw = decoder.decode(bytes, 0, false, false);
    if (raw === NOT_DECODED) continue;
    const text = decoder.decode(bytes, 0, true, false);
    if (!isDeepStrictEqual(outcomes[0], raw) || !isDeepStrictEqual(transformReply.call(context, outcomes[0]), text)) {
      return `decodes ${JSON.stringify(reply).slice(0, 30)} otherwise`;
    }
  }
  return undefined;
}

/** After a lost connection: which commands of pipelines and transactions are sent again, and which aborted. */
function wrongClosing({ client, listeners }: Unopened): string | undefined {
  const { commandQueue, offlineQueue } = client as unknown as Record<string, Unopened['client']['commandQueue']>;
  const fill = (queue: typeof commandQueue, fields: readonly object[]) =>
    fields.map((each) => {
      const watched = watchedCommand(each);
      queue?.push({ command: watched.command, select: 0 });
      return watched;
    });
  const sent = fill(commandQueue, [{}, { pipelineIndex: 0 }, { pipelineIndex: 1 }, { pipelineIndex: 3 }, {}]);
  const waiting = fill(offlineQueue, [{}, { inTransaction: true }, { name: 'multi' }, { inTransaction: true }]);
  (client as { status: string }).status = 'ready';
  (listeners.close as AnyFunction).call(client.stream);
  const aborted = [...sent, ...waiting].map(({ outcomes }) => outcomes.length);
  const others = [...sent, ...waiting].flatMap((each) => each.others);
  if (aborted.join('') !== '000100100' || others.length > 0) {
    return 'keeps what a lost connection had otherwise';
  }
  return client.prevCommandQueue === commandQueue ? undefined : 'keeps the queue of a lost connection elsewhere';
}
