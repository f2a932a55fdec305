/** What the cache takes commands for, compared with what the server says of each of its commands. */
import { describe, expect, it } from 'vitest';
import { type Arguments, type Effect, effectOf } from '../../src/commands/effects.js';
import { type Client, ioredis6, ready } from '../helpers/hosts.js';
import { startServer } from '../helpers/redis.js';

/** Where the keys of a command are, as `COMMAND` says. */
interface KeySpec {
  flags: string[];
  begin_search: { type: string; spec: { index?: number; keyword?: string; startfrom?: number } };
  find_keys: {
    type: string;
    spec: { lastkey?: number; keynumidx?: number; firstkey?: number; keystep?: number; limit?: number };
  };
}

interface ServerCommand {
  /** Its name, and that of its subcommand. */
  readonly words: readonly string[];
  readonly readOnly: boolean;
  readonly specs: readonly KeySpec[];
}

async function commandsOf(client: Client): Promise<ServerCommand[]> {
  type Row = [name: string, arity: number, flags: string[], ...unknown[]];
  const parse = (row: Row): ServerCommand[] => [
    {
      words: row[0].split('|'),
      readOnly: row[2].includes('readonly'),
      specs: (row[8] as unknown[]).map((spec) => entriesOf(spec) as KeySpec).filter((spec) => !isNoKey(spec)),
    },
    ...(row[9] as Row[]).flatMap(parse),
  ];
  return ((await client.call('COMMAND')) as Row[]).flatMap(parse);
}

const isNoKey = ({ flags }: KeySpec) => flags.includes('not_key');

/** RESP2 gives a map as a list of names and values in turn. */
function entriesOf(value: unknown): unknown {
  if (!Array.isArray(value) || value.length % 2 > 0 || typeof value[0] !== 'string') return value;
  if (!/^(?:notes|flags|type|index|keyword|lastkey|keynumidx)$/.test(value[0])) return value;
  const entries: [string, unknown][] = [];
  for (let index = 0; index < value.length; index += 2) entries.push([value[index], entriesOf(value[index + 1])]);
  return Object.fromEntries(entries);
}

/** A call with keys wherever the command has some, two where it takes several; undefined if the server cannot tell. */
function callOf({ words, specs }: ServerCommand): { args: string[]; keys: number[] } | undefined {
  const args = [...words];
  const keys: number[] = [];
  for (const { begin_search, find_keys } of specs) {
    const { index, keyword, startfrom = 0 } = begin_search.spec;
    const { lastkey, keynumidx = 0, firstkey = 0, keystep = 1, limit = 0 } = find_keys.spec;
    if (begin_search.type === 'unknown' || find_keys.type === 'unknown') return undefined;
    let first = index ?? Math.max(args.length, startfrom);
    if (keyword !== undefined) {
      args[first] = keyword;
      first += 1;
    }
    if (find_keys.type === 'keynum') {
      args[first + keynumidx] = '2';
      first += firstkey;
    }
    const several = find_keys.type === 'keynum' || lastkey !== 0;
    for (const position of several ? [first, first + keystep] : [first]) {
      args[position] = `key ${position}`;
      keys.push(position);
    }
    // What follows the keys.
    if (lastkey === -2) args.push('0');
    if (limit === 2) args.push('0', '0');
  }
  return { args: Array.from(args, (arg) => arg ?? 'x'), keys };
}

const textsOf = (args: readonly string[]): Arguments => ({ count: args.length, text: (index) => args[index] ?? '' });

/** It is flagged as one that reads data, and shows none. */
const DRAWS = 'lolwut';

function knows(effect: Effect, command: ServerCommand): boolean {
  const call = callOf(command);
  // Whatever its keys are, answers are held or dropped.
  if (typeof effect !== 'object' && effect !== 'none') return true;
  if (call === undefined) return false;
  if (call.keys.length === 0) return !command.readOnly || command.words[0] === DRAWS;
  if (effect === 'none') return false;
  const args = textsOf(call.args);
  const { start, end, step } = effect.range(args);
  const known = call.args.map((_, index) => index >= start && index < end && (index - start) % step === 0);
  return call.keys.every((position) => known[position]);
}

describe('each command of the server', () => {
  it('is known with all keys that it changes or shows, or taken for one that may change or show any key', async () => {
    const server = await startServer();
    try {
      const client = await ready(ioredis6.create(server.url, { protocol: 2 }));
      const commands = await commandsOf(client);
      const effect = (command: ServerCommand) => effectOf(textsOf(callOf(command)?.args ?? command.words));
      const unknown = commands.filter((command) => !knows(effect(command), command));
      expect(unknown.map(({ words }) => words.join(' '))).toEqual([]);
      // The server did tell where keys are.
      const xread = commands.find(({ words }) => words[0] === 'xread') as ServerCommand;
      expect(callOf(xread)).toEqual({ args: ['xread', 'STREAMS', 'key 2', 'key 3', '0', '0'], keys: [2, 3] });
      expect(commands.filter((command) => typeof effect(command) === 'object').length).toBeGreaterThan(100);
    } finally {
      await server.stop();
    }
  });
});
