import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import type { ReplyMode } from '../../src/resp/decoder.js';

const require = createRequire(import.meta.url);

export type HostName = 'ioredis' | 'ioredis5' | 'iovalkey';

interface HostModules {
  DataHandler: new (redis: object, options: object) => unknown;
  Command: { prototype: { transformReply(this: object, reply: unknown): unknown }; checkFlag: unknown };
}

const modules = new Map<HostName, HostModules>();

function modulesOf(host: HostName): HostModules {
  let found = modules.get(host);
  if (found === undefined) {
    found = {
      DataHandler: require(`${host}/built/DataHandler.js`).default,
      Command: require(`${host}/built/Command.js`).default,
    };
    modules.set(host, found);
  }
  return found;
}

export type HostOutcome = { readonly value: unknown } | { readonly error: string } | { readonly fatal: string };

/** What the host itself makes of replies: its own `DataHandler`, then its own `Command#transformReply`. */
export function decodeWithHost(
  host: HostName,
  { replyMapping, stringNumbers }: ReplyMode,
  utf8: boolean,
  chunks: readonly Buffer[],
): HostOutcome[] {
  const { DataHandler, Command } = modulesOf(host);
  const outcomes: HostOutcome[] = [];
  const stream = Object.assign(new EventEmitter(), { resume() {} });
  const command = {
    name: 'get',
    args: ['key'],
    resolve(reply: unknown) {
      // Chunks are the test's; what the host keeps may share their memory.
      const context = { name: 'get', replyEncoding: utf8 ? 'utf8' : null, protocol: 3, replyMapping };
      outcomes.push({ value: Command.prototype.transformReply.call(context, reply) });
    },
  };
  const redis = {
    stream,
    status: 'ready',
    condition: { protocol: 3, replyMapping, subscriber: false },
    commandQueue: { shift: () => ({ command }) },
    handleReconnection: (error: Error) => outcomes.push({ error: error.message }),
    recoverFromFatalError: (error: Error) => outcomes.push({ fatal: error.message }),
  };
  new DataHandler(redis, { replyMapping, stringNumbers });
  for (const chunk of chunks) stream.emit('data', chunk);
  return outcomes;
}

/** Every way in which a connection's host can read replies. */
export const REPLY_MODES: readonly { host: HostName; mode: ReplyMode; title: string }[] = (
  ['ioredis', 'ioredis5', 'iovalkey'] as const
).flatMap((host) =>
  (host === 'ioredis' ? (['legacy', 'resp3'] as const) : (['legacy'] as const)).flatMap((replyMapping) =>
    [false, true].map((stringNumbers) => ({
      host,
      mode: { resp3Types: host === 'ioredis', replyMapping, stringNumbers },
      title: `${host}, ${replyMapping}${stringNumbers ? ', stringNumbers' : ''}`,
    })),
  ),
);
